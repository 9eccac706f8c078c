package preview

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"giantstream/ingest/backfill"
	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

func collector(t *testing.T, m decode.Mapping) *Collector {
	t.Helper()
	c, err := New(Options{Mapping: m, Limits: decode.Limits{RecordBytes: 10_000, TextBytes: 1000, EdgesPerRecord: 100},
		Records: 100, Rows: 2})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// read gives an input a file of JSON lines.
func read(t *testing.T, in *Input, content string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f.jsonl")
	err := os.WriteFile(name, []byte(content), 0o600)
	inputs, filesErr := backfill.Files(name)
	if err = errors.Join(err, filesErr); err == nil {
		err = in.Files(t.Context(), inputs)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func previewOf(t *testing.T, m decode.Mapping, nodes, edges string) *Preview {
	t.Helper()
	c := collector(t, m)
	read(t, c.Nodes(), nodes)
	read(t, c.Edges(), edges)
	return c.Result()
}

var mapping = decode.Mapping{
	Nodes: decode.NodeMapping{ID: "id", Text: []string{"title", "tags[*]"}, Deleted: "deleted"},
	Edges: decode.EdgeMapping{Src: "src", Dst: "dst[*]", Deleted: "deleted"},
}

func TestMissingFields(t *testing.T) {
	for name, c := range map[string]struct{ nodes, edges, want string }{
		"good": {`{"id":1,"title":"a","tags":["x"]}`, `{"src":1,"dst":[2]}`, ""},
		"typo": {`{"id":1,"titel":"a","tags":["x"]}`, `{"src":1,"dst":[2]}`,
			`nodes.text: no record has the field "title"; did you mean "titel"?`},
		"no list": {`{"id":1,"title":"a","tags":["x"]}`, `{"src":1,"dst":"2;3"}`,
			`edges.dst: no record has the field "dst[*]"; did you mean "dst"?`},
		"deeper": {`{"id":1,"tilte":"a","text":{"title":"b"},"tags":["x"]}`, `{"src":1,"dst":[2]}`,
			`nodes.text: no record has the field "title"; did you mean "text.title"?`},
		"most are dead letters": {`{"id":1,"title":"a","tags":["x"]}`, `{"src":"a\u0000","dst":[2]}`,
			`1 of the 1 records that were read would be dead letters, such as`},
		"another id": {`{"sku":1,"title":"a","tags":["x"]}`, `{"src":1,"dst":[2]}`,
			`nodes.id: no record has the field "id"; 1 of the 1 records that were read would be dead letters. Fields ` +
				`seen: sku, tags[*], title`},
		"one object with all records": {`{"products":[{"id":1,"title":"a","tags":["x"]}]}`, `{"src":1,"dst":[2]}`,
			`jq -c '.products[]' FILE`},
		"one object over several lines": {"{\n\"products\":[\n{\n\"id\":1\n}\n]\n}", `{"src":1,"dst":[2]}`,
			`jq -c '.products[]' FILE`},
		"one of two texts":     {`{"id":1,"title":"a"}`, `{"src":1,"dst":[2]}`, ""},
		"neither of two texts": {`{"id":1,"name":"a"}`, `{"src":1,"dst":[2]}`, `nodes.text: no record has the field "title"`},
		"deletions":            {`{"id":1,"deleted":true}`, `{"src":1,"dst":[2],"deleted":true}`, ""},
		"all edges of a node":  {`{"id":1,"title":"a","tags":["x"]}`, `{"src":1,"deleted":true}`, `edges.dst: no record`},
		"empty, which may be":  {`{"id":1,"title":"","tags":[]}`, `{"src":1,"dst":[]}`, ""},
		"no records":           {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := previewOf(t, mapping, c.nodes, c.edges).Err(nil)
			if c.want == "" {
				if err != nil {
					t.Errorf("%v", err)
				}
				return
			}
			if !errors.Is(err, ErrMapping) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestAttributes previews a topic that has prices and vectors alone.
func TestAttributes(t *testing.T) {
	m := mapping
	m.Attributes = map[string]decode.AttributesMapping{"prices": {ID: "sku",
		Attributes: []decode.Attribute{{Name: "price", Type: decode.Number, Path: "price"},
			{Name: "stock", Type: decode.Number, Path: "stock"}},
		Vectors: []decode.Vector{{Name: "image", Path: "image", Length: 2, Precision: mutation.Float32}}}}
	c := collector(t, m)
	read(t, c.Attributes("prices"), `{"sku":"a","price":3.5,"stok":1,"image":[3,4]}
{"sku":"b","price":"cheap"}
{"sku":"c","image":[0,1]}
`)
	p := c.Result()
	got := p.Attributes[0]
	stock := slices.IndexFunc(got.Fields, func(f Field) bool { return f.Path == "stock" })
	switch {
	case got.Topic != "prices" || got.Records != 3 || len(got.Rows) != 2 || got.Rows[0].ID != "a":
		t.Errorf("%+v", got)
	case string(got.Rows[0].Attributes) != `{"price":3.5}`:
		t.Errorf("the first record has %s", got.Rows[0].Attributes)
	case len(got.Faults) != 1 || got.Faults[0].Records != 1:
		t.Errorf("a price that is no number: %+v", got.Faults)
	case got.Fields[stock].DidYouMean != "stok":
		t.Errorf("stock is absent: %+v", got.Fields[stock])
	case got.Vectors[0].Records != 2 || got.Vectors[0].MinNorm != 1 || got.Vectors[0].MaxNorm != 5:
		t.Errorf("vectors: %+v", got.Vectors)
	case p.Err(nil) != nil:
		t.Error(p.Err(nil))
	}

	c = collector(t, m)
	read(t, c.Attributes("prices"), `{"id":"a","price":3.5}`)
	if err := c.Result().Err(nil); !errors.Is(err, ErrMapping) || !strings.Contains(err.Error(), "attributes.id") {
		t.Errorf("no record has the id: %v", err)
	}
}

func TestMatchHints(t *testing.T) {
	for name, c := range map[string]struct{ node, end, hint string }{
		"floats": {`"7"`, `"7.0"`, "pandas"}, "case": {`"ab"`, `"AB"`, "lower case"},
		"zeros": {`"007"`, `7`, "leading zeros"},
		"lists": {`"A"`, `"A;B"`, "--list-separator ';'"}, "others": {`"A"`, `"B"`, ""},
	} {
		p := previewOf(t, mapping, `{"id":`+c.node+`,"title":"x","tags":["y"]}`, `{"src":`+c.node+`,"dst":[`+c.end+`]}`)
		if p.Match == nil || !strings.Contains(p.Match.Hint, c.hint) || (c.hint == "") != (p.Match.Hint == "") {
			t.Errorf("%s: %+v", name, p.Match)
		}
		if (len(p.Warnings()) > 0) != (c.hint != "") {
			t.Errorf("%s: warnings %q", name, p.Warnings())
		}
	}
}

func TestTexts(t *testing.T) {
	var c textCounts
	for _, text := range []string{"the lamp and the chair for you", "der Stuhl und die Lampe für dich", "漢字", " "} {
		c.add(text)
	}
	got := c.result()
	if got.Nodes != 4 || got.Empty != 1 || got.Max != 32 || got.Scripts[0].Name != "Latin" || len(got.Scripts) != 2 ||
		len(got.Languages) != 2 {
		t.Errorf("%+v", got)
	}
}
