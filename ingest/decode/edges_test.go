package decode_test

import (
	"slices"
	"strings"
	"testing"

	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

// What a record says of the weight of its edges.
func TestWeights(t *testing.T) {
	add := decode.EdgeMapping{Src: "src", Dst: "dst", Deleted: "deleted", Weight: "w"}
	replace := add
	replace.Mode = decode.Replace
	for value, want := range map[string]float32{
		`{"src":"a","dst":"b","w":2.5}`:                         2.5,
		`{"src":"a","dst":["b","c"],"w":3}`:                     3,
		`{"src":"a","dst":"b","w":0}`:                           0,
		`{"src":"a","dst":"b","w":-0.0}`:                        0,
		`{"src":"a","dst":"b","w":" 1e3 "}`:                     1000, // CSV has strings alone
		`{"src":"a","dst":"b","w":"0,5"}`:                       0.5,
		`{"src":"a","dst":"b","w":"1.250,75"}`:                  1250.75,
		`{"src":"a","dst":"b","w":""}`:                          1,
		`{"src":"a","dst":"b","w":null}`:                        1,
		`{"src":"a","dst":"b"}`:                                 1,
		`{"src":"a","dst":"b","w":1.0000000000000000000000001}`: 1,
	} {
		for _, m := range []decode.EdgeMapping{add, replace} {
			got, fault := edges(t, m).Decode(record("a", value), nil)
			if fault != nil || len(got) == 0 {
				t.Errorf("%s, mode %q: %+v, %v", value, m.Mode, got, fault)
			}
			for _, g := range got {
				if g.Weight != mutation.WeightOf(want) {
					t.Errorf("%s, mode %q: weight %v, want %v", value, m.Mode, g.Weight.Float(), want)
				}
			}
		}
	}
	for _, w := range []string{"-1", `"-0.5"`, "1e39", `"NaN"`, `"inf"`, `"heavy"`, `"1,250"`, `"-0,5"`, "true",
		"[]", "{}"} {
		value := `{"src":"a","dst":"b","w":` + w + `}`
		got, fault := edges(t, add).Decode(record("a", value), nil)
		if fault == nil || fault.Code != decode.BadWeight || len(got) > 0 {
			if w == "[]" && fault == nil && got[0].Weight == mutation.WeightOf(1) {
				continue // as if it were absent
			}
			t.Errorf("%s: %+v, %v; want %s", value, got, fault, decode.BadWeight)
		}
	}
	got, fault := edges(t, add).Decode(record("a", `{"src":"a","dst":"b","w":-1,"deleted":true}`), nil)
	if fault != nil || len(got) != 1 || got[0].Weight.Stated() {
		t.Errorf("a deletion becomes %+v, %v; its weight says nothing", got, fault)
	}
	add.Weight = ""
	if got, fault = edges(t, add).Decode(record("a", `{"src":"a","dst":"b","w":7}`), nil); fault != nil ||
		got[0].Weight.Stated() {
		t.Errorf("without a mapped weight: %+v, %v", got, fault)
	}
	add.Weight = "w[*]"
	if _, err := decode.Edges(add, decode.Limits{}, 1); err == nil {
		t.Error("several weights of one record are mapped")
	}
}

// Which kind the edges of a record have.
func TestKinds(t *testing.T) {
	field := decode.EdgeMapping{Src: "src", Dst: "dst", Deleted: "deleted", Kind: "k", Directed: []string{"part"}}
	constant := field
	constant.Kind, constant.Mode = `"also_bought"`, decode.Replace
	for _, c := range []struct {
		mapping decode.EdgeMapping
		value   string
		op      mutation.Op
		want    mutation.Kind
	}{
		{field, `{"src":"a","dst":"b","k":"seen"}`, mutation.PutEdge, mutation.Kind{Name: "seen"}},
		{field, `{"src":"a","dst":"b","k":"part"}`, mutation.PutEdge, mutation.Kind{Name: "part", Directed: true}},
		{field, `{"src":"a","dst":"b","k":"part","deleted":true}`, mutation.DeleteEdge,
			mutation.Kind{Name: "part", Directed: true}},
		{field, `{"src":"a","dst":"b","k":7}`, mutation.PutEdge, mutation.Kind{Name: "7"}},
		{field, `{"src":"a","dst":"b"}`, mutation.PutEdge, mutation.Kind{}},
		{constant, `{"src":"a","dst":["b","c"],"k":"seen"}`, mutation.SetEdges, mutation.Kind{Name: "also_bought"}},
	} {
		got, fault := edges(t, c.mapping).Decode(record("a", c.value), nil)
		if fault != nil || len(got) != 1 || got[0].Op != c.op || got[0].Kind != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.value, got, fault, c.want)
		}
	}
	for _, kind := range []string{`{}`, `"` + strings.Repeat("k", 65) + `"`, `"a\u0000b"`} {
		got, fault := edges(t, field).Decode(record("a", `{"src":"a","dst":"b","k":`+kind+`}`), nil)
		if fault == nil || fault.Code != decode.BadKind || len(got) > 0 {
			t.Errorf("kind %s: %+v, %v", kind, got, fault)
		}
	}
	for name, change := range map[string]func(*decode.EdgeMapping){
		"a field, and lists that replace": func(m *decode.EdgeMapping) { m.Mode = decode.Replace },
		"no constant":                     func(m *decode.EdgeMapping) { m.Kind = `"open` },
		"a long constant":                 func(m *decode.EdgeMapping) { m.Kind = `"` + strings.Repeat("k", 65) + `"` },
		"a long directed one":             func(m *decode.EdgeMapping) { m.Directed = []string{strings.Repeat("k", 65)} },
	} {
		m := field
		change(&m)
		if _, err := decode.Edges(m, decode.Limits{}, 1); err == nil {
			t.Errorf("%s is a mapping", name)
		}
	}
}

// A node record has lists of several kinds, which together are all that it states of links.
func TestKindsByPath(t *testing.T) {
	m := decode.NodeMapping{ID: "id", Text: []string{"title"}, Directed: []string{"part_of"}, Edges: []decode.EdgePath{
		{Kind: "bought", Path: "related.bought[*]"}, {Kind: "part_of", Path: "set"}, {Path: "near[*].id"}}}
	bought, part := mutation.Kind{Name: "bought"}, mutation.Kind{Name: "part_of", Directed: true}
	for _, c := range []struct {
		value string
		ends  []string
		kinds []mutation.Kind
		fault decode.Code
	}{
		{`{"near":[{"id":"b"}],"related":{"bought":["b","c"]},"set":"s"}`, []string{"b", "c", "s", "b"},
			[]mutation.Kind{bought, bought, part, {}}, ""},
		{`{"related":{"bought":["a","c"]},"near":[{"id":"d"}]}`, []string{"c", "d"}, []mutation.Kind{bought, {}},
			decode.SelfLoop},
		{`{"related":{"bought":[]}}`, nil, nil, ""},
		{`{}`, nil, nil, ""},
	} {
		got, fault := nodes(t, m).Decode(record("a", c.value), nil)
		if len(got) != 1 || got[0].Op != mutation.PutNode || !got[0].HasEdges || !slices.Equal(got[0].Others, c.ends) ||
			!slices.Equal(got[0].Kinds, c.kinds) || (fault == nil) != (c.fault == "") || fault != nil && fault.Code != c.fault {
			t.Errorf("%s: %+v, %v", c.value, got, fault)
		}
	}

	few, err := decode.Nodes(m, decode.Limits{RecordBytes: 1000, TextBytes: 100, EdgesPerRecord: 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, fault := few.Decode(record("a", `{"related":{"bought":["b","c"]},"set":"s"}`), nil)
	if fault == nil || fault.Code != decode.TooManyEdges || len(got) > 0 {
		t.Errorf("three edges of two that are allowed: %+v, %v", got, fault)
	}

	m.Edges = m.Edges[:1]
	got, fault = nodes(t, m).Decode(record("a", `{"related":{"bought":["b"]}}`), nil)
	if fault != nil || got[0].Kind != bought || got[0].Kinds != nil {
		t.Errorf("one path: %+v, %v", got, fault)
	}
	m.Edges = append(m.Edges, decode.EdgePath{Kind: "again", Path: m.Edges[0].Path})
	if _, err := decode.Nodes(m, decode.Limits{}, 1); err == nil {
		t.Error("a path has two kinds")
	}
}

func TestParseEdgePath(t *testing.T) {
	for text, want := range map[string]decode.EdgePath{
		"near[*]":       {Path: "near[*]"},
		"bought=r.b[*]": {Kind: "bought", Path: "r.b[*]"},
		"=a=b":          {Path: "a=b"},
	} {
		if got, err := decode.ParseEdgePath(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "bought=", "bought=a[", strings.Repeat("k", 65) + "=near"} {
		if got, err := decode.ParseEdgePath(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// An updated row of another kind takes the link of its former kind back.
func TestAChangeOfKindIsAnotherLink(t *testing.T) {
	m := decode.EdgeMapping{Debezium: true, Src: "src", Dst: "dst", Kind: "k"}
	got, fault := edges(t, m).Decode(record("a", `{"op":"u","before":{"src":"a","dst":"b","k":"seen"},`+
		`"after":{"src":"a","dst":"b","k":"bought"},"ts_ms":1}`), nil)
	if fault != nil || len(got) != 2 || got[0].Op != mutation.DeleteEdge || got[0].Kind.Name != "seen" ||
		got[1].Op != mutation.PutEdge || got[1].Kind.Name != "bought" {
		t.Errorf("%+v, %v", got, fault)
	}
	got, fault = edges(t, m).Decode(record("a", `{"op":"d","before":{"src":"a","dst":"b"},"ts_ms":1}`), nil)
	if fault == nil || fault.Code != decode.BadKind || len(got) > 0 {
		t.Errorf("a deletion that does not say the kind: %+v, %v", got, fault)
	}
}

// A topic that has edges of one kind.
func TestEdgeTopic(t *testing.T) {
	for text, want := range map[string]decode.EdgeTopic{
		"views/also_viewed":           {Topic: "views", Kind: "also_viewed"},
		"sets/part=set.id,parts[*].n": {Topic: "sets", Kind: "part", Src: "set.id", Dst: "parts[*].n"},
		"views":                       {}, "/k": {}, "views/": {}, "views/k=src": {},
		"views/k=,dst": {}, "views/k=a[*],b": {}, "views/k=a,b[": {},
		"views/" + strings.Repeat("k", 65): {},
	} {
		got, err := decode.ParseEdgeTopic(text)
		if (err != nil) != (want == decode.EdgeTopic{}) || err == nil && got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	m := decode.Mapping{EdgeTopics: map[string]decode.EdgeMapping{
		"views": {Src: "src", Dst: "dst", Deleted: "deleted", Kind: `"also_viewed"`}}}
	const in = mutation.Further + 2
	d, err := decode.Further(&m, "views", in, decode.Limits{RecordBytes: 1000, EdgesPerRecord: 9}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for value, op := range map[string]mutation.Op{`{"src":"a","dst":"b"}`: mutation.PutEdge,
		`{"src":"a","dst":"b","deleted":true}`: mutation.DeleteEdge} {
		got, fault := d.Decode(record("a", value), nil)
		if fault != nil || len(got) != 1 || got[0].Op != op || got[0].Kind.Name != "also_viewed" ||
			got[0].Version.Rank != uint8(in) || !got[0].OfFurther() {
			t.Errorf("%s: %+v, %v", value, got, fault)
		}
	}
	null := record("a", "")
	null.Value = nil
	if got, fault := d.Decode(null, nil); fault == nil || fault.Code != decode.BadKind || len(got) > 0 {
		t.Errorf("a null value, which would clear the edges of all kinds: %+v, %v", got, fault)
	}
}
