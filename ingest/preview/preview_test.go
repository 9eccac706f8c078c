package preview

import (
	"errors"
	"fmt"
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
			`edges.dst: no record has the field "dst[*]"; 1 of the 1 records that were read would be dead letters; did you ` +
				`mean "dst"?`},
		"deeper": {`{"id":1,"tilte":"a","text":{"title":"b"},"tags":["x"]}`, `{"src":1,"dst":[2]}`,
			`nodes.text: no record has the field "title"; did you mean "text.title"?`},
		"most are dead letters": {`{"id":1,"title":"a","tags":["x"]}`, `{"src":"a\u0000","dst":[2]}`,
			`1 of the 1 records that were read would be dead letters, such as`},
		"a link to itself beside others": {`{"id":1,"title":"a","tags":["x"]}`, `{"src":1,"dst":[1,2]}`, ""},
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

// Orders and attributes of another system have other ids, which links nothing.
func TestMatchOfOrdersAndAttributes(t *testing.T) {
	m := mapping
	m.Orders = map[string]decode.OrderMapping{"orders": {ID: []string{"id"}, Items: "items[*]", MaxItems: 9}}
	m.Attributes = map[string]decode.AttributesMapping{"prices": {ID: "sku",
		Attributes: []decode.Attribute{{Name: "price", Type: decode.Number, Path: "price"}}}}
	for name, tt := range map[string]struct {
		ids, warning string
		known        int
	}{
		"alike":     {`"P-1","P-2"`, "", 2},
		"some":      {`"P-1","gone"`, "", 1},
		"others":    {`"10001","10002"`, `nodes such as "P-1"`, 0},
		"lowercase": {`"p-1","p-2"`, "in lower case", 0},
	} {
		c := collector(t, m)
		read(t, c.Nodes(), `{"id":"P-1","title":"a","tags":["x"]}`+"\n"+`{"id":"P-2","title":"b","tags":["x"]}`)
		read(t, c.Orders(), `{"id":1,"items":[`+tt.ids+`]}`)
		var prices strings.Builder
		for id := range strings.SplitSeq(tt.ids, ",") {
			fmt.Fprintf(&prices, `{"sku":%s,"price":1}`+"\n", id)
		}
		read(t, c.Attributes("prices"), prices.String())
		p := c.Result()
		orders, attributes := p.Orders.Match, p.Attributes[0].Match
		if orders == nil || attributes == nil || orders.Known != tt.known || attributes.Known != tt.known {
			t.Errorf("%s: %+v, %+v; want %d known", name, orders, attributes, tt.known)
		}
		for _, of := range []string{"orders", "attributes of topic prices"} {
			said := slices.ContainsFunc(p.Warnings(), func(w string) bool {
				return strings.Contains(w, of+" ") && strings.Contains(w, tt.warning)
			})
			if said != (tt.warning != "") {
				t.Errorf("%s of %s: warnings %q", name, of, p.Warnings())
			}
		}
	}
}

// Topics of one kind are mapped alike, and one of them may have weights where another has none.
func TestWeightsOfOneTopic(t *testing.T) {
	m := mapping
	m.Edges.Weight = "weight"
	m.EdgeTopics = map[string]decode.EdgeMapping{"sets": {Src: "src", Dst: "dst[*]", Weight: "weight", Kind: `"set"`}}
	for name, tt := range map[string]struct {
		edges, sets string
		refused     bool
	}{
		"one has":     {`{"src":1,"dst":[2],"weight":3}`, `{"src":1,"dst":[2]}`, false},
		"the other":   {`{"src":1,"dst":[2]}`, `{"src":1,"dst":[2],"weight":3}`, false},
		"none has":    {`{"src":1,"dst":[2]}`, `{"src":1,"dst":[2]}`, true},
		"a typo":      {`{"src":1,"dst":[2],"weight":3}`, `{"src":1,"dst":[2],"wieght":3}`, true},
		"without dst": {`{"src":1,"dst":[2],"weight":3}`, `{"src":1,"to":[2],"weight":3}`, true},
	} {
		c, err := New(Options{Mapping: m, Limits: decode.Limits{RecordBytes: 10_000, TextBytes: 1000, EdgesPerRecord: 100},
			Records: 100, Expected: []string{"edges.weight"}})
		if err != nil {
			t.Fatal(err)
		}
		read(t, c.Edges(), tt.edges)
		read(t, c.EdgeTopic("sets"), tt.sets)
		err = c.Result().Err(nil)
		if (err != nil) != tt.refused || err != nil && !errors.Is(err, ErrMapping) {
			t.Errorf("%s: %v", name, err)
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

// A field that people have named must be in some record; that of a condition for deletions is only looked for, among
// all that the condition may be meant for.
func TestNamedFields(t *testing.T) {
	m := mapping
	m.Nodes.Attributes = []decode.Attribute{{Name: "brand", Path: "brand"}}
	m.Nodes.Deleted, m.Edges.Deleted = "state == gone", "state == gone"
	preview := func(node, edge string, expected ...string) *Preview {
		c, err := New(Options{Mapping: m, Limits: decode.Limits{RecordBytes: 10_000, TextBytes: 1000, EdgesPerRecord: 100},
			Records: 100, Expected: expected})
		if err != nil {
			t.Fatal(err)
		}
		read(t, c.Nodes(), node)
		read(t, c.Edges(), edge)
		return c.Result()
	}
	const node, edge = `{"id":1,"title":"a","tags":["x"]}`, `{"src":1,"dst":[2]}`
	if err := preview(node, edge).Err(nil); err != nil {
		t.Errorf("a field that nobody has named: %v", err)
	}
	err := preview(node, edge, "nodes.attributes").Err(map[string]string{"nodes.attributes": "--attribute"})
	if !errors.Is(err, ErrMapping) || !strings.Contains(err.Error(), `--attribute: no record has the field "brand"`) {
		t.Errorf("%v", err)
	}
	p := preview(node, edge, "nodes.deleted", "edges.deleted")
	if err := p.Err(nil); err != nil {
		t.Errorf("a condition that no record meets: %v", err)
	}
	if w := p.Warnings(); len(w) != 2 || !strings.Contains(w[0], "right if none but deleted records have it") {
		t.Errorf("warnings %q", w)
	}
	p = preview(`{"id":1,"title":"a","tags":["x"],"state":"new"}`, edge, "nodes.deleted", "edges.deleted")
	if w := p.Warnings(); len(w) != 0 {
		t.Errorf("a condition that nodes have the field of: warnings %q", w)
	}
}

// Records need not have the field of a condition for deletions, unless its name looks like a mistake.
func TestMisspeltCondition(t *testing.T) {
	for deleted, want := range map[string][]string{
		"stauts == gone": {`nodes.deleted: no record has the field "stauts"; did you mean "status"? ` +
			"Fields seen: delete, id, status, tags[*], title"},
		"status == gone": nil, "withdrawn": nil, "deleted": nil,
	} {
		m := mapping
		m.Nodes.Deleted = deleted
		c := collector(t, m)
		read(t, c.Nodes(), `{"id":1,"title":"a","tags":["x"],"status":"new","delete":false}`)
		if got := c.Result().Warnings(); !slices.Equal(got, want) {
			t.Errorf("%q: warnings %q", deleted, got)
		}
	}
}

// Exports of shops leave out nodes without text, and are files of edges and orders as well, which have none.
func TestRecordsWithoutText(t *testing.T) {
	of := mapping
	of.Orders = map[string]decode.OrderMapping{"orders": {ID: []string{"id"}, Items: "items[*]", MaxItems: 9}}
	c := collector(t, of)
	for content, in := range map[string]*Input{
		`{"id":1,"title":"a"}` + "\n" + `{"id":1,"title":""}`: c.Nodes(),
		`{"src":1,"dst":[2]}`:      c.Edges(),
		`{"id":"o","items":["1"]}`: c.Orders(),
	} {
		name := filepath.Join(t.TempDir(), "f.jsonl")
		err := os.WriteFile(name, []byte(content), 0o600)
		inputs, filesErr := backfill.Files(name)
		if err = errors.Join(err, filesErr); err == nil {
			inputs[0].Read.SkipWithoutText = true
			err = in.Files(t.Context(), inputs)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := c.Result()
	if p.Nodes.Records != 1 || p.Edges.Records != 1 || p.Orders.Records != 1 {
		t.Errorf("%d nodes, %d edges, %d orders, want one of each", p.Nodes.Records, p.Edges.Records, p.Orders.Records)
	}
}
