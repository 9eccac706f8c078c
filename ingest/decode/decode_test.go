package decode_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

var (
	stamp   = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	stampUs = stamp.UnixMicro()
)

// record is in the only partition, at offset 7.
func record(key, value string) decode.Record {
	r := decode.Record{Value: []byte(value), Time: stamp, Offset: 7}
	if key != "" {
		r.Key = []byte(key)
	}
	return r
}

func nodes(t testing.TB, m decode.NodeMapping) *decode.Decoder {
	t.Helper()
	d, err := decode.Nodes(m, kafkatest.Limits(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func edges(t testing.TB, m decode.EdgeMapping) *decode.Decoder {
	t.Helper()
	d, err := decode.Edges(m, kafkatest.Limits(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func node(m mutation.Mutation) []mutation.Mutation {
	if m.Op == 0 {
		m.Op = mutation.PutNode
	}
	if m.Version.EventTime == 0 {
		m.Version.EventTime = stampUs
	}
	m.Version.Offset = 7
	return []mutation.Mutation{m}
}

func TestNodes(t *testing.T) {
	def := kafkatest.Mapping().Nodes
	shop := decode.NodeMapping{
		ID: "asin", Text: []string{"title", "meta.brand", "description"}, Class: "categories[0]",
		EventTime: "updated", Deleted: "gone", Edges: []decode.EdgePath{{Path: "related.also_bought[*]"}},
	}
	cases := []struct {
		name    string
		mapping decode.NodeMapping
		key     string
		value   string
		want    []mutation.Mutation
	}{
		{"default fields", def, "", `{"id":"a","text":"red pen","label":"office"}`,
			node(mutation.Mutation{ID: "a", Text: "red pen", Class: "office"})},
		{"integer id", def, "", `{"id":42}`, node(mutation.Mutation{ID: "42"})},
		{"id from the key", def, "k", `{"text":"t"}`, node(mutation.Mutation{ID: "k", Text: "t"})},
		{"null is absent", def, "k", `{"id":null,"text":null,"label":null,"deleted":null}`,
			node(mutation.Mutation{ID: "k"})},
		{"deleted", def, "", `{"id":"a","text":"t","deleted":true}`,
			node(mutation.Mutation{Op: mutation.DeleteNode, ID: "a"})},
		{"not deleted", def, "", `{"id":"a","deleted":false}`, node(mutation.Mutation{ID: "a"})},
		{"escapes", def, "", `{"\u0069d":"\u00e9\ud83d\ude00","text":"a\tb\n\"c\"\/\\"}`,
			node(mutation.Mutation{ID: "é😀", Text: "a\tb\n\"c\"/\\"})},
		{"text is joined in the order of the mapping", shop, "",
			` { "description" : ["soft", "grip"], "meta":{"brand":"Bic","x":[{}]}, "title":"Pen", "asin":"B1", ` +
				`"categories":["office","pens"], "related":{"also_bought":["B2","B3"]} } `,
			node(mutation.Mutation{ID: "B1", Text: "Pen\nBic\nsoft\ngrip",
				Class: "office", HasEdges: true, Others: []string{"B2", "B3"}})},
		{"no edges replace earlier edges", shop, "", `{"asin":"B1"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true})},
		{"RFC 3339", shop, "", `{"asin":"B1","updated":"2020-02-03T04:05:06.5+01:00"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500000}})},
		{"PostgreSQL", shop, "", `{"asin":"B1","updated":"2020-02-03 04:05:06.5+01"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500000}})},
		{"Ruby", shop, "", `{"asin":"B1","updated":"2020-02-02 22:05:06 -0500"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106000000}})},
		{"Python", shop, "", `{"asin":"B1","updated":"2020-02-03 04:05:06+01:00"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106000000}})},
		{"BigQuery", shop, "", `{"asin":"B1","updated":"2020-02-03 03:05:06.5 UTC"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500000}})},
		{"a date key", shop, "", `{"asin":"B1","updated":20200203}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580688000000000}})},
		{"a date key in quotes", shop, "", `{"asin":"B1","updated":"20200203"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580688000000000}})},
		{"no date", shop, "", `{"asin":"B1","updated":20201303}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 20201303000000}})},
		{"microseconds in quotes", shop, "", `{"asin":"B1","updated":"1580699106500001"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500001}})},
		{"no offset", shop, "", `{"asin":"B1","updated":"2020-02-03T03:05:06"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106000000}})},
		{"no offset, and a space", shop, "", `{"asin":"B1","updated":"2020-02-03 03:05:06.5"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500000}})},
		{"seconds", shop, "", `{"asin":"B1","updated":1580699106}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106000000}})},
		{"milliseconds", shop, "", `{"asin":"B1","updated":1580699106500}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500000}})},
		{"microseconds", shop, "", `{"asin":"B1","updated":1580699106500001}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500001}})},
		{"nanoseconds", shop, "", `{"asin":"B1","updated":1580699106500001999}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106500001}})},
		{"a date", shop, "", `{"asin":"B1","updated":"2020-02-03"}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580688000000000}})},
		{"seconds as pandas writes them", shop, "", `{"asin":"B1","updated":1580699106.0}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: 1580699106000000}})},
		{"nanoseconds round down", shop, "", `{"asin":"B1","updated":-1580699106500001001}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: -1580699106500002}})},
		{"the least nanoseconds", shop, "", `{"asin":"B1","updated":-9223372036854775807}`,
			node(mutation.Mutation{ID: "B1", HasEdges: true, Version: mutation.Version{EventTime: -9223372036854776}})},
		{"minus zero", def, "", `{"id":-0.0}`, node(mutation.Mutation{ID: "0"})},
		{"deleted as a string", def, "", `{"id":"a","deleted":"True"}`,
			node(mutation.Mutation{Op: mutation.DeleteNode, ID: "a"})},
		{"not deleted as a string", def, "", `{"id":"a","deleted":"false"}`, node(mutation.Mutation{ID: "a"})},
		{"numbers are text too", def, "", `{"id":"a","text":12.50}`, node(mutation.Mutation{ID: "a", Text: "12.50"})},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, fault := nodes(t, c.mapping).Decode(record(c.key, c.value), nil)
			if fault != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, fault, c.want)
			}
		})
	}
}

func TestNullValues(t *testing.T) {
	m := kafkatest.Mapping()
	r := decode.Record{Key: []byte("a"), Time: stamp, Offset: 7}
	if got, fault := nodes(t, m.Nodes).Decode(r, nil); fault != nil || got[0].Op != mutation.DeleteNode ||
		got[0].ID != "a" {
		t.Errorf("nodes: %+v, %v", got, fault)
	}
	if got, fault := edges(t, m.Edges).Decode(r, nil); fault != nil || got[0].Op != mutation.ClearEdges ||
		got[0].ID != "a" {
		t.Errorf("edges: %+v, %v", got, fault)
	}
}

func TestEdges(t *testing.T) {
	v := mutation.Version{EventTime: stampUs, Rank: 1, Offset: 7}
	def := kafkatest.Mapping().Edges
	many := decode.EdgeMapping{Src: "asin", Dst: "related.also_bought[*].id", Deleted: "gone"}
	replace := decode.EdgeMapping{Src: "src", Dst: "dst", Deleted: "deleted", Mode: decode.Replace}
	cases := []struct {
		name    string
		mapping decode.EdgeMapping
		value   string
		want    []mutation.Mutation
	}{
		{"one", def, `{"src":"a","dst":"b"}`,
			[]mutation.Mutation{{Op: mutation.PutEdge, ID: "a", Other: "b", Version: v}}},
		{"src from the key", def, `{"dst":"b"}`,
			[]mutation.Mutation{{Op: mutation.PutEdge, ID: "key", Other: "b", Version: v}}},
		{"deleted", def, `{"src":"a","dst":"b","deleted":true}`,
			[]mutation.Mutation{{Op: mutation.DeleteEdge, ID: "a", Other: "b", Version: v}}},
		{"list at a plain path", def, `{"src":"a","dst":["b",3]}`, []mutation.Mutation{
			{Op: mutation.PutEdge, ID: "a", Other: "b", Version: v},
			{Op: mutation.PutEdge, ID: "a", Other: "3", Version: v}}},
		{"empty list", def, `{"src":"a","dst":[]}`, nil},
		{"objects in a list", many, `{"asin":"a","related":{"also_bought":[{"id":"b"},{},{"id":"c"}]}}`,
			[]mutation.Mutation{{Op: mutation.PutEdge, ID: "a", Other: "b", Version: v},
				{Op: mutation.PutEdge, ID: "a", Other: "c", Version: v}}},
		{"nothing at a path with [*]", many, `{"asin":"a"}`, nil},
		{"replace", replace, `{"src":"a","dst":["b","c"]}`,
			[]mutation.Mutation{{Op: mutation.SetEdges, ID: "a", Others: []string{"b", "c"}, Version: v}}},
		{"replace by nothing", replace, `{"src":"a"}`,
			[]mutation.Mutation{{Op: mutation.SetEdges, ID: "a", Version: v}}},
		{"replace, deleted", replace, `{"src":"a","deleted":true}`,
			[]mutation.Mutation{{Op: mutation.ClearEdges, ID: "a", Version: v}}},
		{"replace, some deleted", replace, `{"src":"a","dst":"b","deleted":true}`,
			[]mutation.Mutation{{Op: mutation.DeleteEdge, ID: "a", Other: "b", Version: v}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, fault := edges(t, c.mapping).Decode(record("key", c.value), nil)
			if fault != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, fault, c.want)
			}
		})
	}
}

func TestNodeFaults(t *testing.T) {
	m := kafkatest.Mapping().Nodes
	m.EventTime = "at"
	m.Edges = []decode.EdgePath{{Path: "edges"}}
	cases := []struct {
		name, key, value string
		want             decode.Code
	}{
		{"empty", "k", "", decode.BadJSON},
		{"cut off", "k", `{"id":"a"`, decode.BadJSON},
		{"more after the end", "k", `{"id":"a"} x`, decode.BadJSON},
		{"trailing comma", "k", `{"id":"a",}`, decode.BadJSON},
		{"leading zero", "k", `{"id":01}`, decode.BadJSON},
		{"control character", "k", "{\"id\":\"a\nb\"}", decode.BadJSON},
		{"unknown escape", "k", `{"id":"\x"}`, decode.BadJSON},
		{"deep", "k", strings.Repeat(`{"a":`, 1000), decode.BadJSON},
		{"NaN", "k", `{"id":NaN}`, decode.BadJSON},
		{"bad UTF-8", "k", "{\"id\":\"a\",\"x\":\"\xff\"}", decode.BadUTF8},
		{"half a surrogate pair", "k", `{"id":"\ud83d"}`, decode.BadUTF8},
		{"bad UTF-8 in the key", "\xff", `{"text":"t"}`, decode.BadUTF8},
		{"a list", "k", `[1]`, decode.BadType},
		{"a string", "k", ` "x"`, decode.BadType},
		{"no id", "", `{"text":"t"}`, decode.MissingID},
		{"id is a list", "k", `{"id":["a"]}`, decode.BadType},
		{"id is a fraction", "k", `{"id":1.5}`, decode.BadType},
		{"id is empty", "k", `{"id":""}`, decode.BadID},
		{"id is long", "k", `{"id":"` + strings.Repeat("x", 513) + `"}`, decode.BadID},
		{"id with NUL", "k", `{"id":"a\u0000"}`, decode.BadID},
		{"text is an object", "k", `{"id":"a","text":{}}`, decode.BadType},
		{"label is a list", "k", `{"id":"a","label":[]}`, decode.BadType},
		{"deleted is a string", "k", `{"id":"a","deleted":"yes"}`, decode.BadType},
		{"event time of pandas' NaT", "k", `{"id":"a","at":-9223372036854775808}`, decode.BadEventTime},
		{"event time with an exponent", "k", `{"id":"a","at":1.5e9}`, decode.BadEventTime},
		{"event time of a day that is none", "k", `{"id":"a","at":"2020-02-30"}`, decode.BadEventTime},
		{"event time of a day alone", "k", `{"id":"a","at":"12:00:00"}`, decode.BadEventTime},
		{"id with an exponent", "k", `{"id":1.012351e+06}`, decode.BadType},
		{"not a date", "k", `{"id":"a","at":"yesterday"}`, decode.BadEventTime},
		{"fraction of a second", "k", `{"id":"a","at":1.5}`, decode.BadEventTime},
		{"true is no time", "k", `{"id":"a","at":true}`, decode.BadEventTime},
		{"before the year 1", "k", `{"id":"a","at":-99999999999999}`, decode.BadEventTime},
		{"after the year 9999", "k", `{"id":"a","at":"+10000-01-01T00:00:00Z"}`, decode.BadEventTime},
		{"beyond 64 bits", "k", `{"id":"a","at":99999999999999999999}`, decode.BadEventTime},
		{"text over the limit", "k", `{"id":"a","text":"` + strings.Repeat("x", 256<<10+1) + `"}`, decode.TextTooLarge},
		{"record over the limit", "k", `{"id":"a","x":"` + strings.Repeat("x", 1<<20) + `"}`, decode.RecordTooLarge},
		{"too many edges", "k", `{"id":"a","edges":[` + strings.Repeat("1,", 10_000) + `1]}`, decode.TooManyEdges},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, fault := nodes(t, m).Decode(record(c.key, c.value), nil)
			if fault == nil || fault.Code != c.want || fault.Message == "" || len(got) > 0 {
				t.Errorf("got %+v, %v; want %s", got, fault, c.want)
			}
		})
	}
}

func TestGoodEdgesOfAPartlyBadRecordAreKept(t *testing.T) {
	def := kafkatest.Mapping()
	got, fault := edges(t, def.Edges).Decode(record("", `{"src":"a","dst":["b","a",{},"c"]}`), nil)
	if len(got) != 2 || got[0].Other != "b" || got[1].Other != "c" {
		t.Errorf("got %+v, want edges to b and c", got)
	}
	if fault == nil || fault.Code != decode.SelfLoop || !strings.Contains(fault.Message, "2 of 4") ||
		!strings.Contains(fault.Message, "[1]") || !strings.Contains(fault.Message, "[2] bad_type") {
		t.Errorf("fault %v, want self_loop that names edges 1 and 2", fault)
	}
	m := def.Nodes
	m.Edges = []decode.EdgePath{{Path: "edges"}}
	got, fault = nodes(t, m).Decode(record("", `{"id":"a","text":"t","edges":"a"}`), nil)
	if len(got) != 1 || got[0].Text != "t" || len(got[0].Others) != 0 || fault == nil || fault.Code != decode.SelfLoop {
		t.Errorf("got %+v, %v; want the node without its edge", got, fault)
	}
	for _, c := range []struct {
		value string
		want  decode.Code
	}{{`{"src":"a"}`, decode.MissingDst}, {`{"dst":"a"}`, decode.MissingSrc},
		{`{"src":"a","dst":"a"}`, decode.SelfLoop}, {`{"src":"a","dst":[["b"]]}`, decode.BadType}} {
		if got, fault := edges(t, def.Edges).Decode(record("", c.value), nil); fault == nil || fault.Code != c.want ||
			len(got) > 0 {
			t.Errorf("%s: got %+v, %v; want %s", c.value, got, fault, c.want)
		}
	}
}

func TestWrongPartition(t *testing.T) {
	d, err := decode.Nodes(kafkatest.Mapping().Nodes, kafkatest.Limits(), 8)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for p := range 8 {
		r := record("k", `{"id":"a"}`)
		r.Partition = p
		if _, fault := d.Decode(r, nil); fault == nil {
			right++
		} else if fault.Code != decode.KeyMismatch {
			t.Errorf("partition %d: %v", p, fault)
		}
	}
	if right != 1 {
		t.Errorf("the id is right in %d partitions", right)
	}
}

func TestMappingsThatCannotBe(t *testing.T) {
	for _, m := range []decode.NodeMapping{{}, {ID: "ids[*]"}, {ID: "a..b"}, {ID: "id", Text: []string{"t["}},
		{ID: "id", Edges: []decode.EdgePath{{Path: "x[y]"}}}} {
		if _, err := decode.Nodes(m, kafkatest.Limits(), 1); err == nil || !strings.Contains(err.Error(), "mapping of") {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for _, m := range []decode.EdgeMapping{{}, {Src: "s"}, {Src: "s", Dst: "d", Mode: "merge"}} {
		if _, err := decode.Edges(m, kafkatest.Limits(), 1); err == nil || !strings.Contains(err.Error(), "mapping of") {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestCodesExplainThemselves(t *testing.T) {
	for _, c := range decode.Codes() {
		if c.Explain() == "" {
			t.Errorf("%s has no explanation", c)
		}
	}
	if decode.Code("nonsense").Explain() != "" {
		t.Error("an unknown code is explained")
	}
}

func TestRoute(t *testing.T) {
	m := kafkatest.Mapping().Nodes
	m.EventTime = "at"
	d := nodes(t, m)
	id, at, ok := d.Route([]byte(`{"id":"a","text":{},"at":1580699106}`))
	if id != "a" || !at.Equal(time.Unix(1580699106, 0)) || !ok {
		t.Errorf("got %q, %v, %v", id, at, ok)
	}
	for _, v := range []string{"", "{", `{"text":"t"}`, `{"id":""}`, "\xff"} {
		if id, _, ok := d.Route([]byte(v)); ok {
			t.Errorf("%q routes to %q", v, id)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","text":["x",1,null],"label":true,"edges":["b",{"id":1}],"at":"2020-01-01T00:00:00Z"}`,
		`{"id":"\ud83d\ude00","text":"\u00e9\n","deleted":true}`, `{"src":"a","dst":[["x"]],"at":-1e9}`, "[[[",
		"{\"a\":\"\xff\"}", "\x00\x00\x00\x00\x07{\"id\":\"a\"}", ` {} `,
		`{"id":1,"a":{"b":[{"e":["x"],"c":{"d":1}},{"c":{"d":2},"e":"y"},[{"c":{"d":1}}]]}}`,
	} {
		f.Add([]byte("key"), []byte(s))
	}
	m := decode.NodeMapping{ID: "id", Text: []string{"text", "a.b[0].c", "a.b[*]", "a.b[c.d=1].e"}, Class: "label",
		EventTime: "at", Deleted: "deleted", Edges: []decode.EdgePath{{Path: "edges[*]"}, {Kind: "near", Path: "a.b[*]"}}}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r := decode.Record{Key: key, Value: value, Time: stamp}
		got, fault := nodes(t, m).Decode(r, nil)
		if len(got) == 0 && fault == nil {
			t.Fatal("nothing came of the record, without a fault")
		}
		if fault != nil && fault.Code == decode.BadJSON && json.Valid(value) && !strings.Contains(fault.Message, "deeply") {
			t.Fatalf("valid JSON refused: %v", fault)
		}
		if value != nil && !json.Valid(value) && !behindHeader(value) && fault == nil {
			t.Fatal("broken JSON accepted")
		}
		for _, g := range got {
			if g.ID == "" || slices.Contains(g.Others, g.ID) || slices.Contains(g.Others, "") {
				t.Fatalf("bad mutation %+v", g)
			}
		}
		if _, fault := edges(t, kafkatest.Mapping().Edges).Decode(r, nil); fault != nil && fault.Code.Explain() == "" {
			t.Fatalf("unknown code %s", fault.Code)
		}
	})
}

// behindHeader reports whether a value is JSON behind the header of Confluent's serializer for JSON Schema.
func behindHeader(v []byte) bool {
	return len(v) > 5 && v[0] == 0 && v[5] == '{' && json.Valid(v[5:])
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"id", "a.b", "a[*].b[0]", "a[", "a[*", "a]b", ".", "a..b", "[0]", "é", "a[b.c=d].e[*]",
		`a[b="]"]`, `a[b"=]"]`, "a[b==c", `["a.b"]`, `a["b]"][*]`, `["a"].b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := decode.ParsePath(s)
		if err != nil {
			return
		}
		again, err := decode.ParsePath(p.String())
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%q gave %v, which gave %v, %v", s, p, again, err)
		}
	})
}

func BenchmarkNodes600Bytes(b *testing.B) {
	value := fmt.Appendf(nil, `{"id":"B000123456","text":%q,"label":"office","price":12.99,"rank":[1,2,3],`+
		`"meta":{"brand":"Bic","color":null}}`, strings.Repeat("A pen that writes. ", 27))
	d := nodes(b, kafkatest.Mapping().Nodes)
	var ms []mutation.Mutation
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		var fault *decode.Fault
		if ms, fault = d.Decode(decode.Record{Value: value, Time: stamp}, ms[:0]); fault != nil {
			b.Fatal(fault)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
