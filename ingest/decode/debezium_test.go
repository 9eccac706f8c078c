package decode_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

// Events as Debezium 3 writes them for a table of PostgreSQL with the primary key sku. The database
// committed at committedUs, and Debezium read the change at processedUs.
const (
	committedUs = 1714521600123456
	processedUs = 1714521600125000
)

func event(op, before, after string) string {
	return fmt.Sprintf(`{"before":%s,"after":%s,"source":{"version":"3.0.0.Final","connector":"postgresql",`+
		`"name":"shop","ts_ms":1714521600123,"snapshot":"false","db":"shop","sequence":"[null,\"23876712\"]",`+
		`"ts_us":1714521600123456,"ts_ns":1714521600123456000,"schema":"inventory","table":"products","txId":555,`+
		`"lsn":23876712,"xmin":null},"transaction":null,"op":%q,"ts_ms":1714521600125,"ts_us":1714521600125678,`+
		`"ts_ns":1714521600125678901}`, before, after, op)
}

// enveloped is the event as JsonConverter writes it with schemas.enable.
func enveloped(event string) string {
	return `{"schema":{"type":"struct","fields":[{"type":"struct","fields":[{"type":"string","optional":false,` +
		`"field":"sku"},{"type":"string","optional":true,"field":"op"}],"optional":true,` +
		`"name":"shop.inventory.products.Value","field":"before"}],"optional":false,` +
		`"name":"shop.inventory.products.Envelope","version":2},"payload":` + event + `}`
}

// What a key says is said of its own record: the next one, which has its id in the value, names no edge.
func TestFarEndsOfAKeyAreForgotten(t *testing.T) {
	d, err := decode.Edges(decode.EdgeMapping{Debezium: true, Src: "src", Dst: "dst"}, kafkatest.Limits(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, fault := d.Decode(decode.Record{Key: []byte(`{"src":"a","dst":"b"}`),
		Value: []byte(event("d", "null", "null"))}, nil)
	if fault != nil || len(got) != 1 || got[0].Other != "b" {
		t.Fatalf("got %+v, %v", got, fault)
	}
	got, fault = d.Decode(decode.Record{Key: []byte("a"), Value: []byte(event("d", `{"src":"a"}`, "null"))}, nil)
	if len(got) != 0 || fault == nil || fault.Code != decode.MissingDst {
		t.Errorf("got %+v, %v; want missing_dst", got, fault)
	}
}

func TestChangeEvents(t *testing.T) {
	m := decode.NodeMapping{Debezium: true, ID: "sku", Text: []string{"name"}, Deleted: "status in [draft, archived]"}
	timed := m
	timed.EventTime = "updated"
	put := func(us int64) []mutation.Mutation {
		return node(mutation.Mutation{ID: "P1", Text: "pen", Version: mutation.Version{EventTime: us}})
	}
	gone := func(us int64) []mutation.Mutation {
		return node(mutation.Mutation{Op: mutation.DeleteNode, ID: "P1", Version: mutation.Version{EventTime: us}})
	}
	const row, laterRow = `{"sku":"P1","name":"pen","status":"active"}`, `{"sku":"P1","updated":1714521600124000}`
	for name, c := range map[string]struct {
		mapping decode.NodeMapping
		key     string
		event   string
		want    []mutation.Mutation
	}{
		"create": {m, debeziumKey, event("c", "null", row), put(processedUs)},
		"update": {m, debeziumKey, event("u", `{"sku":"P1","name":"pencil"}`, row),
			put(processedUs)},
		"snapshot": {m, debeziumKey, event("r", "null", row), put(processedUs)},
		"delete": {m, `{"sku":"P1"}`, event("d", `{"sku":"P1","name":"pen"}`, "null"),
			gone(processedUs)},
		"delete, only the key has the id": {m, `{"sku":"P1"}`, event("d", "null", "null"), gone(processedUs)},
		"delete, columns that are not logged are empty": {m, `{"sku":"P1"}`, event("d", `{"sku":"","name":""}`, "null"),
			gone(processedUs)},
		"delete, columns that are not logged are 0": {m, `{"sku":"P1"}`, event("d", `{"sku":0,"name":""}`, "null"),
			gone(processedUs)},
		"delete, UUIDs that are not logged are zeros": {m, `{"sku":"P1"}`, event("d",
			`{"sku":"00000000-0000-0000-0000-000000000000","name":""}`, "null"), gone(processedUs)},
		"delete, by a key of plain text": {m, "P1", event("d", "null", "null"), gone(processedUs)},
		"a row that meets the condition of deletions": {m, "", event("u", "null", `{"sku":"P1","status":"draft"}`),
			gone(processedUs)},
		"the row's own time": {timed, "", event("c", "null", `{"sku":"P1","name":"pen","updated":"2024-05-01"}`),
			put(1714521600000000)},
		"delete, beside times of the row": {timed, "", event("d", `{"sku":"P1","updated":"2024-05-01"}`, "null"),
			gone(committedUs)},
		"delete, the row's time is later": {timed, "", event("d", laterRow, "null"), gone(1714521600124000)},
		"delete, the row's time is not logged": {timed, "", event("d", `{"sku":"P1","updated":""}`, "null"),
			gone(committedUs)},
		"no times": {m, "", `{"before":null,"after":` + row + `,"op":"c"}`, put(stampUs)},
		"a column named op": {m, "", event("c", "null", `{"op":"d","sku":"P1","name":"pen","after":{}}`),
			put(processedUs)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, value := range []string{c.event, enveloped(c.event)} {
				got, fault := nodes(t, c.mapping).Decode(record(c.key, value), nil)
				if fault != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("got %+v, %v\nwant %+v\nof %s", got, fault, c.want, value)
				}
			}
		})
	}
}

// TestTombstonesSayNothing: the null after a deletion has a time of its own, which may be later than that
// of a row that was inserted again. It changes nothing and is no dead letter, on either topic.
func TestTombstonesSayNothing(t *testing.T) {
	null := record(debeziumKey, "")
	null.Value = nil
	for topic, d := range map[string]*decode.Decoder{
		"nodes": nodes(t, decode.NodeMapping{Debezium: true, ID: "sku"}),
		"edges": edges(t, decode.EdgeMapping{Debezium: true, Src: "sku", Dst: "other"}),
	} {
		if got, fault := d.Decode(null, nil); len(got) > 0 || fault != nil {
			t.Errorf("%s: %+v, %v", topic, got, fault)
		}
	}
}

func TestChangeEventsOfEdges(t *testing.T) {
	add := decode.EdgeMapping{Debezium: true, Src: "src", Dst: "dst"}
	replace := decode.EdgeMapping{Debezium: true, Src: "src", Dst: "dst", Mode: decode.Replace}
	const key, surrogate = `{"src":"a","dst":"b"}`, `{"id":7}`
	for name, c := range map[string]struct {
		mapping    decode.EdgeMapping
		key, event string
		want       string
		fault      decode.Code
	}{
		"create": {add, key, event("c", "null", `{"src":"a","dst":"b"}`), "put a-b", ""},
		"update of another column": {add, surrogate, event("u", `{"id":7,"src":"a","dst":"b"}`,
			`{"id":7,"src":"a","dst":"b"}`), "put a-b", ""},
		"update of the far end": {add, surrogate, event("u", `{"id":7,"src":"a","dst":"b"}`,
			`{"id":7,"src":"a","dst":"c"}`), "delete a-b, put a-c", ""},
		"update of the source": {add, surrogate, event("u", `{"id":7,"src":"x","dst":"b"}`,
			`{"id":7,"src":"a","dst":"b"}`), "put a-b", decode.IDChanged},
		"delete":                     {add, key, event("d", `{"src":"a","dst":"b"}`, "null"), "delete a-b", ""},
		"delete, by the key alone":   {add, key, event("d", "null", "null"), "delete a-b", ""},
		"delete, by a surrogate key": {add, surrogate, event("d", `{"id":7,"src":"a","dst":"b"}`, "null"), "delete a-b", ""},
		"delete without the ends": {add, surrogate, event("d", `{"id":7,"src":"","dst":""}`, "null"), "",
			decode.MissingSrc},
		"delete without the far end": {add, `{"src":"a"}`, event("d", `{"src":"a","dst":""}`, "null"), "",
			decode.MissingDst},
		"create of all of a source": {replace, "", event("c", "null", `{"src":"a","dst":["b","c"]}`), "set a-b,c", ""},
		"delete of all of a source": {replace, "", event("d", `{"src":"a","dst":["b"]}`, "null"), "clear a", ""},
		"update of all of its source": {replace, "", event("u", `{"src":"a","dst":["b"]}`, `{"src":"a","dst":["c"]}`),
			"set a-c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, fault := edges(t, c.mapping).Decode(record(c.key, enveloped(c.event)), nil)
			var said []string
			for _, m := range got {
				said = append(said, strings.TrimSuffix(map[mutation.Op]string{mutation.PutEdge: "put ",
					mutation.DeleteEdge: "delete ", mutation.SetEdges: "set ", mutation.ClearEdges: "clear "}[m.Op]+
					m.ID+"-"+m.Other+strings.Join(m.Others, ","), "-"))
				if m.Version != (mutation.Version{EventTime: processedUs, Rank: 1, Offset: 7}) {
					t.Errorf("version %+v", m.Version)
				}
			}
			var code decode.Code
			if fault != nil {
				code = fault.Code
			}
			if s := strings.Join(said, ", "); s != c.want || code != c.fault {
				t.Errorf("got %q, %v; want %q, %q", s, fault, c.want, c.fault)
			}
		})
	}
}

// TestRefusedChanges: what cannot be used is a dead letter that says what to do.
func TestRefusedChanges(t *testing.T) {
	m := decode.NodeMapping{Debezium: true, ID: "sku", Text: []string{"name"}}
	for name, c := range map[string]struct {
		value string
		code  decode.Code
		says  string
	}{
		"truncate":         {event("t", "null", "null"), decode.Truncated, `table "products" was truncated`},
		"message":          {`{"op":"m","ts_ms":1,"message":{}}`, decode.BadChange, `op is "m"`},
		"two letters":      {`{"op":"cr","ts_ms":1,"after":{"sku":"P1"}}`, decode.BadChange, `op is "cr"`},
		"a flattened row":  {`{"sku":"P1","name":"pen"}`, decode.BadChange, "format: json"},
		"MongoDB":          {event("c", "null", `"{\"sku\":\"P1\"}"`), decode.BadChange, "ExtractNewDocumentState"},
		"no row":           {event("u", "null", "null"), decode.BadChange, "op is u"},
		"a list of events": {`[` + event("c", "null", `{"sku":"P1"}`) + `]`, decode.BadChange, "no op"},
		"Avro":             {"\x00\x00\x00\x00\x07abc", decode.BadEncoding, "ingest.schema_registry.url"},
		"half of an event": {event("c", "null", `{"sku":"P1"}`)[:80], decode.BadJSON, ""},
		"no UTF-8":         {event("c", "null", `{"sku":"P`+"\xff"+`"}`), decode.BadUTF8, ""},
		"no id":            {event("d", `{"name":"pen"}`, "null"), decode.MissingID, ""},
		"a text that was not logged": {event("u", "null", `{"sku":"P1","name":"__debezium_unavailable_value"}`),
			decode.BadChange, "REPLICA IDENTITY FULL"},
		"too large": {event("c", "null", `{"sku":"P1","name":"`+strings.Repeat("x", 1<<20)+`"}`),
			decode.RecordTooLarge, ""},
	} {
		got, fault := nodes(t, m).Decode(record("", c.value), nil)
		if fault == nil || fault.Code != c.code || !strings.Contains(fault.Message, c.says) || len(got) > 0 {
			t.Errorf("%s: got %+v, %v; want %s with %q", name, got, fault, c.code, c.says)
		}
	}
	got, fault := nodes(t, m).Decode(record("", event("u", `{"sku":"P0"}`, `{"sku":"P1","name":"pen"}`)), nil)
	if fault == nil || fault.Code != decode.IDChanged || len(got) != 1 || got[0].ID != "P1" ||
		!strings.Contains(fault.Message, `"P0" stays`) {
		t.Errorf("an id that changed: %+v, %v", got, fault)
	}
}

// TestColumnsThatEventsLack: Debezium sends every column of a row, so one that is absent is no null. The record is a
// dead letter, and what earlier rows have given stays.
func TestColumnsThatEventsLack(t *testing.T) {
	vector, err := decode.ParseVector("picture=vectors.picture:2")
	if err != nil {
		t.Fatal(err)
	}
	products := nodes(t, decode.NodeMapping{Debezium: true, ID: "sku", Text: []string{"name", `["de.name"]`},
		Class: "class", EventTime: "updated", Deleted: "status == gone", Attributes: mapped(t, "price:number=info.price"),
		Vectors: []decode.Vector{vector}, Edges: []decode.EdgePath{{Path: "links[*].to"}}})
	links := edges(t, decode.EdgeMapping{Debezium: true, Src: "src", Dst: "dst[*]", Weight: "weight", Kind: "kind"})
	sales, err := decode.Orders(decode.OrderMapping{Debezium: true, ID: []string{"customer", "day"}, Items: "lines[*].sku",
		Quantity: "lines[*].quantity", Time: "placed", Kind: "kind", Customer: "customer", MaxItems: 9}, 9,
		kafkatest.Limits(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []struct {
		name    string
		decoder *decode.Decoder
		row     map[string]any // with all columns
		needed  []string
	}{
		{"nodes", products, map[string]any{"sku": "P1", "name": "pen", "de.name": nil, "class": nil, "updated": nil,
			"info": map[string]any{}, "vectors": nil, "links": nil, "status": nil},
			[]string{"name", "de.name", "class", "updated", "info", "vectors", "links"}},
		{"edges", links, map[string]any{"src": "a", "dst": []string{"b"}, "weight": nil, "kind": nil},
			[]string{"dst", "weight", "kind"}},
		{"orders", sales, map[string]any{"customer": 7, "day": 1, "lines": []any{map[string]any{"sku": "P1"}},
			"placed": nil, "kind": nil}, []string{"lines", "placed", "kind"}},
	} {
		decoded := func(op, row string) ([]mutation.Mutation, *decode.Fault) {
			return topic.decoder.Decode(record("P1", event(op, "null", row)), nil)
		}
		whole, err := json.Marshal(topic.row)
		if err != nil {
			t.Fatal(err)
		}
		if got, fault := decoded("u", string(whole)); fault != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", topic.name, got, fault)
		}
		for column := range topic.row {
			row := maps.Clone(topic.row)
			delete(row, column)
			b, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range []string{"c", "r", "u"} {
				got, fault := decoded(op, string(b))
				refused := fault != nil && fault.Code == decode.BadChange && len(got) == 0 && len(fault.Message) < 200 &&
					strings.Contains(fault.Message, fmt.Sprintf("no column %q (ingest.", column))
				if want := slices.Contains(topic.needed, column); refused != want {
					t.Errorf("%s, %s without %s: %+v, %v; want a dead letter: %v", topic.name, op, column, got, fault, want)
				}
			}
		}
		// Rows of files have the columns of their file, and a row that deletes needs no more than its id.
		b, err := json.Marshal(map[string]any{"sku": "P1", "src": "a", "dst": nil, "customer": 7, "day": 1, "lines": nil})
		if err != nil {
			t.Fatal(err)
		}
		if got, fault := topic.decoder.Decode(record("P1", string(topic.decoder.Enclose(b))), nil); fault != nil {
			t.Errorf("%s, a row of a file: %+v, %v", topic.name, got, fault)
		}
	}
	usual := nodes(t, decode.NodeMapping{Debezium: true, ID: "sku", Class: "label", UsualClass: true})
	if got, fault := usual.Decode(record("", event("u", "null", `{"sku":"P1"}`)), nil); fault != nil || len(got) != 1 {
		t.Errorf("a class that nobody has named: %+v, %v", got, fault)
	}
	got, fault := products.Decode(record("", event("u", "null", `{"sku":"P1","status":"gone","updated":null}`)), nil)
	if fault != nil || len(got) != 1 || got[0].Op != mutation.DeleteNode {
		t.Errorf("a row that deletes: %+v, %v", got, fault)
	}
}

// TestPathsIntoChangeEvents: a mapping into the event, as older releases needed it, is refused.
func TestPathsIntoChangeEvents(t *testing.T) {
	for path, rest := range map[string]string{"after.sku": "sku", "payload.after.product.sku": "product.sku"} {
		for _, debezium := range []bool{false, true} {
			_, err := decode.Nodes(decode.NodeMapping{Debezium: debezium, ID: path}, kafkatest.Limits(), 1)
			if err == nil || !strings.HasSuffix(err.Error(), "in the row: "+rest) {
				t.Errorf("%s, %v: %v", path, debezium, err)
			}
		}
	}
}

// TestRowsOfFilesAsChangeEvents: a row of a file is sent as a row of a snapshot, and an event as it is. Both
// are keyed and stamped by what they say.
func TestRowsOfFilesAsChangeEvents(t *testing.T) {
	m := decode.NodeMapping{Debezium: true, ID: "sku", Text: []string{"name"}}
	d := nodes(t, m)
	for value, at := range map[string]int64{
		`{"sku":"P1","name":"pen"}`:                                0,
		`{"sku":"P1","name":"pen","op":"t"}`:                       0,
		`{"sku":"P1","name":"pen","op":"d"}`:                       0,
		event("r", "null", `{"sku":"P1","name":"pen"}`):            processedUs,
		enveloped(event("c", "null", `{"sku":"P1","name":"pen"}`)): processedUs,
	} {
		sent := d.Enclose([]byte(value))
		id, stamp, ok := d.Route(sent)
		if want := time.UnixMicro(at); id != "P1" || !ok || at > 0 && !stamp.Equal(want) || at == 0 && !stamp.IsZero() {
			t.Errorf("%s is routed to %q at %v: %v", value, id, stamp, ok)
		}
		got, fault := d.Decode(record("", string(sent)), nil)
		if fault != nil || len(got) != 1 || got[0].ID != "P1" || got[0].Text != "pen" {
			t.Errorf("%s: %+v, %v", sent, got, fault)
		}
		if row := string(d.Row(sent)); !strings.HasPrefix(row, `{"sku":"P1","name":"pen"`) {
			t.Errorf("the row of %s is %s", sent, row)
		}
	}
	for _, value := range []string{event("t", "null", "null"), `{"op":"m","ts_ms":1}`} {
		if got := d.Enclose([]byte(value)); string(got) != value {
			t.Errorf("%s was taken for a row", value)
		}
	}
	if d.Enclose(nil) != nil {
		t.Error("null was taken for a row")
	}
	plain := nodes(t, decode.NodeMapping{ID: "sku"})
	if row := []byte(`{"sku":"P1"}`); string(plain.Enclose(row)) != string(row) {
		t.Error("a topic of JSON has rows as they are")
	}
}

// FuzzChangeEvents: any value becomes mutations or a fault; a change event in its envelope says what it says
// without.
func FuzzChangeEvents(f *testing.F) {
	f.Add([]byte(event("u", `{"sku":"P0"}`, `{"sku":"P1","name":"pen"}`)))
	f.Add([]byte(event("d", `{"sku":"P1"}`, "null")))
	f.Add([]byte(`{"op":"r","after":{"sku":1}}`))
	f.Add([]byte(`{"payload":{"op":"t"}}`))
	m := decode.NodeMapping{Debezium: true, ID: "sku", Text: []string{"name"},
		Edges: []decode.EdgePath{{Path: "links[*]"}}}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, fault := nodes(t, m).Decode(record("k", string(value)), nil)
		if len(got) == 0 && fault == nil {
			t.Errorf("%s says nothing", value)
		}
		if fault != nil || strings.Contains(string(value), "payload") {
			return
		}
		again, fault := nodes(t, m).Decode(record("k", enveloped(string(value))), nil)
		if fault != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("in its envelope: %+v, %v; without: %+v", again, fault, got)
		}
	})
}
