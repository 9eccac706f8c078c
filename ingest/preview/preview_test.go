package preview

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"giantstream/ingest/backfill"
	"giantstream/ingest/decode"
)

func previewOf(t *testing.T, m decode.Mapping, nodes, edges string) *Preview {
	t.Helper()
	c, err := New(Options{Mapping: m, Limits: decode.Limits{RecordBytes: 10_000, TextBytes: 1000, EdgesPerRecord: 100},
		Records: 100, Rows: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range []string{nodes, edges} {
		name := filepath.Join(t.TempDir(), "f.jsonl")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		inputs, err := backfill.Files(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Files(t.Context(), i == 1, inputs); err != nil {
			t.Fatal(err)
		}
	}
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
		"another id": {`{"sku":1,"title":"a","tags":["x"]}`, `{"src":1,"dst":[2]}`,
			`nodes.id: no record has the field "id"; 1 of the 1 records that were read would be dead letters. Fields ` +
				`seen: sku, tags[*], title`},
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
