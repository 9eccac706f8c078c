package decode_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

var shopOrders = decode.OrderMapping{ID: []string{"id"}, Items: "lines[*].sku", Quantity: "lines[*].n", Time: "placed",
	Kind: "kind", Customer: "who", Deleted: "status == cancelled", MaxItems: 3}

func orders(t *testing.T, m decode.OrderMapping) *decode.Decoder {
	t.Helper()
	d, err := decode.Orders(m, 4, attributeLimits, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func linesOf(items ...any) (lines []mutation.Line) {
	for i := 0; i < len(items); i += 2 {
		lines = append(lines, mutation.Line{Item: items[i].(string), Quantity: float32(items[i+1].(int))})
	}
	return lines
}

func TestOrders(t *testing.T) {
	add := func(m decode.OrderMapping) decode.OrderMapping { m.Mode = decode.Add; return m }
	row := decode.OrderMapping{ID: []string{"id"}, Items: "sku", Quantity: "n", Deleted: "gone", MaxItems: 3}
	lists := decode.OrderMapping{ID: []string{"id"}, Items: "skus", Quantity: "counts", MaxItems: 3, Mode: decode.Replace}
	const set, plus, minus = mutation.SetOrder, mutation.AddLines, mutation.RemoveLines
	for _, tt := range []struct {
		name    string
		mapping decode.OrderMapping
		value   string // "" is null
		op      mutation.Op
		lines   []mutation.Line
	}{
		{"lines are sorted", shopOrders, `{"id":"o","lines":[{"sku":"b","n":2},{"n":"1.0","sku":"a"}]}`, set,
			linesOf("a", 1, "b", 2)},
		{"an item twice", shopOrders, `{"id":"o","lines":[{"sku":"b","n":2},{"sku":"b","n":3}]}`, set, linesOf("b", 5)},
		{"a quantity is missing between others", shopOrders,
			`{"id":"o","lines":[{"sku":"a","n":2},{"sku":"b"},{"sku":"c","n":4}]}`, set, linesOf("a", 2, "b", 1, "c", 4)},
		{"an item is missing between others", shopOrders,
			`{"id":"o","lines":[{"sku":"a","n":2},{"n":7},{"sku":null,"n":8},{"sku":"c","n":4}]}`, set,
			linesOf("a", 2, "c", 4)},
		{"a null quantity, and an empty one", shopOrders, `{"id":"o","lines":[{"sku":"a","n":null},{"sku":"b","n":""}]}`,
			set, linesOf("a", 1, "b", 1)},
		{"an item came back", shopOrders, `{"id":"o","lines":[{"sku":"a","n":-1},{"sku":"b","n":0},{"sku":"c"}]}`, set,
			linesOf("c", 1)},
		{"an item came back by a line of its own", shopOrders,
			`{"id":"o","lines":[{"sku":"a","n":2},{"sku":"b"},{"sku":"a","n":-2}]}`, set, linesOf("b", 1)},
		{"a part of an item came back", shopOrders, `{"id":"o","lines":[{"sku":"b","n":3},{"sku":"b","n":"-1"}]}`, set,
			linesOf("b", 2)},
		{"quantities with a decimal comma", shopOrders,
			`{"id":"o","lines":[{"sku":"a","n":"2,5"},{"sku":"b","n":" 0,125 "},{"sku":"c","n":"1.234,500"}]}`, set,
			[]mutation.Line{{Item: "a", Quantity: 2.5}, {Item: "b", Quantity: 0.125}, {Item: "c", Quantity: 1234.5}}},
		{"no lines", shopOrders, `{"id":"o","lines":[]}`, set, nil},
		{"a deleted order", shopOrders, `{"id":"o","status":"cancelled","lines":[{"sku":"a"}]}`, set, nil},
		{"a tombstone", shopOrders, "", set, nil},
		{"added lines", add(shopOrders), `{"id":"o","lines":[{"sku":"b","n":2},{"sku":"a"}]}`, plus,
			linesOf("a", 1, "b", 2)},
		{"no lines to add", add(shopOrders), `{"id":"o","lines":[]}`, 0, nil},
		{"nothing but returns to add", add(shopOrders), `{"id":"o","lines":[{"sku":"a","n":-1}]}`, 0, nil},
		{"removed lines", add(shopOrders), `{"id":"o","status":"cancelled","lines":[{"sku":"a","n":-4}]}`, minus,
			linesOf("a", 1)},
		{"no lines to remove", add(shopOrders), `{"id":"o","status":"cancelled"}`, set, nil},
		{"a tombstone among added lines", add(shopOrders), "", set, nil},
		{"a line per record, as CSV has it", row, `{"id":"o","sku":"a","n":"6"}`, plus, linesOf("a", 6)},
		{"its deletion", row, `{"id":"o","sku":"a","n":"6","gone":"true"}`, minus, linesOf("a", 1)},
		{"an integer item with a fraction of zeros", row, `{"id":536365.0,"sku":71053.0}`, plus, linesOf("71053", 1)},
		{"parallel lists", lists, `{"id":"o","skus":["b",null,"a"],"counts":[1,9,3]}`, set, linesOf("a", 3, "b", 1)},
		{"a list of one item", lists, `{"id":"o","skus":["b"],"counts":3}`, set, linesOf("b", 3)},
		{"no quantities", lists, `{"id":"o","skus":["b","c"]}`, set, linesOf("b", 1, "c", 1)},
	} {
		r := decode.Record{Key: []byte("o"), Value: []byte(tt.value), Time: time.Unix(7, 0), Offset: 5}
		if tt.value == "" {
			r.Value = nil
		}
		got, fault := orders(t, tt.mapping).Decode(r, nil)
		switch {
		case fault != nil:
			t.Errorf("%s: %v", tt.name, fault)
		case tt.op == 0 && len(got) == 0:
		case len(got) != 1 || got[0].Op != tt.op || got[0].Order == nil || !slices.Equal(got[0].Order.Lines, tt.lines):
			t.Errorf("%s: %+v, want %d with %v", tt.name, got, tt.op, tt.lines)
		case got[0].Version != mutation.Version{EventTime: 7e6, Rank: 4, Offset: 5} || got[0].Order.Time != 7e6:
			t.Errorf("%s: %+v at %d", tt.name, got[0].Version, got[0].Order.Time)
		}
	}
}

// A record with anything that cannot be read states nothing: half an order would be another order.
func TestOrdersRefused(t *testing.T) {
	row := decode.OrderMapping{ID: []string{"id"}, Items: "sku", Mode: decode.Add, MaxItems: 3}
	lists := decode.OrderMapping{ID: []string{"id"}, Items: "skus", Quantity: "count", MaxItems: 3, Mode: decode.Replace}
	for _, tt := range []struct {
		mapping decode.OrderMapping
		value   string
		code    decode.Code
		says    string
	}{
		{shopOrders, `{"lines":[{"sku":"a"}]}`, decode.MissingID, "no id"},
		{shopOrders, `{"id":"` + strings.Repeat("x", decode.MaxIDBytes+1) + `"}`, decode.BadID, "limit"},
		{shopOrders, `{"id":"o","lines":[{"sku":"a","n":"many"}]}`, decode.BadType, `item "a" is "many"`},
		{shopOrders, `{"id":"o","lines":[{"sku":"a","n":"1,250"}]}`, decode.BadType, "decimals or thousands"},
		{shopOrders, `{"id":"o","lines":[{"sku":"a","n":"1,250,000"}]}`, decode.BadType, "finite"},
		{shopOrders, `{"id":"o","lines":[{"sku":"a","n":"NaN"}]}`, decode.BadType, "finite"},
		{shopOrders, `{"id":"o","lines":[{"sku":"a","n":1e300}]}`, decode.BadType, "finite"},
		{shopOrders, `{"id":"o","lines":[{"sku":"a","n":3e38},{"sku":"a","n":3e38}]}`, decode.BadType, "add up"},
		{shopOrders, `{"id":"o","lines":[{"sku":"a","n":true}]}`, decode.BadType, "true"},
		{shopOrders, `{"id":"o","lines":[{"sku":{}},{"sku":"a"}]}`, decode.BadType, "item is an object"},
		{shopOrders, `{"id":"o","lines":[{"sku":"a"},{"sku":"b"},{"sku":"c"},{"sku":"d"}]}`, decode.TooManyItems,
			"more than 3"},
		{shopOrders, `{"id":"o","lines":[],"placed":"yesterday"}`, decode.BadEventTime, "time of the order"},
		{shopOrders, `{"id":"o","lines":[],"who":["a"]}`, decode.BadType, "customer"},
		{shopOrders, `{"id":"o","lines":[],"kind":{}}`, decode.BadType, "kind"},
		{row, `{"id":"o"}`, decode.MissingItem, "no item"},
		{lists, `{"id":"o","skus":["a","b"],"count":3}`, decode.BadType, "one quantity"},
	} {
		got, fault := orders(t, tt.mapping).Decode(decode.Record{Value: []byte(tt.value)}, nil)
		if len(got) != 0 || fault == nil || fault.Code != tt.code || !strings.Contains(fault.Message, tt.says) {
			t.Errorf("%s: %+v, %v; want %s (%s)", tt.value, got, fault, tt.code, tt.says)
		}
	}
}

func TestOrderSaysWhenWhatAndWho(t *testing.T) {
	m := shopOrders
	m.EventTime = "at"
	sum := sha256.Sum256([]byte("17850"))
	for _, value := range []string{
		`{"id":"o","lines":[],"placed":"2010-12-01 08:26:00","at":9,"kind":"cart","who":17850.0}`,
		`{"id":"o","lines":[],"placed":"2010-12-01T09:26:00+01:00","at":9,"kind":"cart","who":"17850"}`,
		`{"id":"o","lines":[],"placed":1291191960000,"at":9,"kind":"cart","who":17850}`,
	} {
		got, fault := orders(t, m).Decode(decode.Record{Value: []byte(value), Time: time.Unix(7, 0)}, nil)
		if fault != nil || len(got) != 1 {
			t.Errorf("%s: %+v, %v", value, got, fault)
			continue
		}
		o := got[0].Order
		if o.Time != 1291191960e6 || o.Kind != "cart" || o.Customer != hex.EncodeToString(sum[:16]) ||
			got[0].Version.EventTime != 9e6 {
			t.Errorf("%s: %+v stated at %d", value, o, got[0].Version.EventTime)
		}
	}
	m.Kind = `"view"`
	got, fault := orders(t, m).Decode(decode.Record{Value: []byte(`{"id":"o","lines":[],"at":9,"who":""}`)}, nil)
	if fault != nil || got[0].Order.Kind != "view" || got[0].Order.Customer != "" || got[0].Order.Time != 9e6 {
		t.Errorf("%+v, %v", got, fault)
	}
}

func TestOrdersOfChangeEvents(t *testing.T) {
	row := decode.OrderMapping{Debezium: true, ID: []string{"order_id"}, Items: "sku", Quantity: "n",
		Mode: decode.Add, MaxItems: 3}
	whole := decode.OrderMapping{Debezium: true, ID: []string{"id"}, Items: "skus", MaxItems: 3, Mode: decode.Replace}
	for _, tt := range []struct {
		mapping    decode.OrderMapping
		key, value string
		want       string
	}{
		{row, "o", `{"before":null,"after":{"order_id":"o","sku":"a","n":2},"op":"c","ts_ms":1}`, "add a"},
		{row, "o", `{"before":{"order_id":"o","sku":"a","n":2},"after":{"order_id":"o","sku":"b","n":2},"op":"u","ts_ms":1}`,
			"remove a, add b"},
		{row, "o", `{"before":{"order_id":"o","sku":"a","n":2},"after":null,"op":"d","ts_ms":1}`, "remove a"},
		{row, `{"order_id":"o","sku":"a"}`, `{"before":{"order_id":"o"},"after":null,"op":"d","ts_ms":1}`, "bad_change"},
		{row, "o", `{"before":{"order_id":"o","sku":""},"after":null,"op":"d","ts_ms":1}`, "bad_change"},
		{whole, "o", `{"before":null,"after":{"id":"o","skus":["a","b"]},"op":"c","ts_ms":1}`, "set a b"},
		{whole, "o", `{"before":{"id":"o","skus":["a","b"]},"after":null,"op":"d","ts_ms":1}`, "set"},
	} {
		got, fault := orders(t, tt.mapping).Decode(decode.Record{Key: []byte(tt.key), Value: []byte(tt.value)}, nil)
		var parts []string
		for _, m := range got {
			words := []string{map[mutation.Op]string{mutation.SetOrder: "set", mutation.AddLines: "add",
				mutation.RemoveLines: "remove"}[m.Op]}
			for _, l := range m.Order.Lines {
				words = append(words, l.Item)
			}
			parts = append(parts, strings.Join(words, " "))
		}
		if fault != nil {
			parts = append(parts, string(fault.Code))
		}
		if said := strings.Join(parts, ", "); said != tt.want {
			t.Errorf("%s: %s (%v), want %s", tt.value, said, fault, tt.want)
		}
	}
}

func TestOrderMappingRefused(t *testing.T) {
	for _, tt := range []struct{ mapping, says string }{
		{"items", "both need a path"}, {"quantity", "same elements"}, {"kind", "constant"}, {"max", "max_items"},
		{"mode", "mode"}, {"id", "several values"},
	} {
		m := shopOrders
		switch tt.mapping {
		case "items":
			m.Items = ""
		case "quantity":
			m.Items, m.Quantity = "groups[*].lines[*].sku", "groups[*].n"
		case "kind":
			m.Kind = `"view`
		case "max":
			m.MaxItems = 0
		case "mode":
			m.Mode = "append"
		case "id":
			m.ID = []string{"ids[*]"}
		}
		if _, err := decode.Orders(m, 4, attributeLimits, 1); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.mapping, err)
		}
	}
}

// Fields that make up an id give different orders different ids, whatever characters they hold.
func TestOrdersOfSeveralFields(t *testing.T) {
	m := decode.OrderMapping{ID: []string{"who", "day"}, Items: "sku", MaxItems: 3}
	change := m
	change.Debezium = true
	for _, tt := range []struct {
		mapping decode.OrderMapping
		key     string
		value   string
		id      string // or what the fault says
	}{
		{m, "", `{"who":17,"day":"2026-03-01","sku":"a"}`, "17|2026-03-01"},
		{m, "", `{"who":"a|b","day":"c","sku":"a"}`, `a\|b|c`},
		{m, "", `{"who":"a","day":"b|c","sku":"a"}`, `a|b\|c`},
		{m, "", `{"who":"a\\","day":"b","sku":"a"}`, `a\\|b`},
		{m, "", `{"who":"a","day":"\\|b","sku":"a"}`, `a|\\\|b`},
		{m, "17|2026-03-01", "", "17|2026-03-01"}, // null deletes
		{change, "", `{"op":"u","before":{"who":17,"day":"2026-03-01","sku":"b"},
			"after":{"who":17,"day":"2026-03-01","sku":"a"}}`, "17|2026-03-01"},
		{change, "", `{"op":"u","before":{"who":17,"day":"","sku":""},
			"after":{"who":17,"day":"2026-03-01","sku":"a"}}`, "17|2026-03-01"}, // no REPLICA IDENTITY FULL
		{change, "", `{"op":"d","before":{"who":17,"day":"2026-03-01","sku":"a"},"after":null}`, "17|2026-03-01"},
		{change, "", `{"op":"d","before":{"who":17,"day":"","sku":"a"},"after":null}`, "no day in the value"},
		{change, "", `{"op":"u","before":{"who":17,"day":"2026-03-01","sku":"a"},
			"after":{"who":17,"day":"2026-03-02","sku":"a"}}`, `from "17|2026-03-01" to "17|2026-03-02"`},
		{m, "key", `{"who":17,"sku":"a"}`, "no day in the value"},
		{m, "", `{"who":"","day":"2026-03-01","sku":"a"}`, "who is empty"},
		{m, `{"who":17,"day":"2026-03-01"}`, "", "an object"},
	} {
		d, err := decode.Orders(tt.mapping, 4, attributeLimits, 1)
		if err != nil {
			t.Fatal(err)
		}
		r := decode.Record{Key: []byte(tt.key)}
		if tt.value != "" {
			r.Value = []byte(tt.value)
		}
		got, fault := d.Decode(r, nil)
		switch {
		case fault != nil:
			if !strings.Contains(fault.Message, tt.id) {
				t.Errorf("%s %s: %v", tt.key, tt.value, fault)
			}
		case len(got) == 0 || got[len(got)-1].ID != tt.id:
			t.Errorf("%s %s: %+v, want the id %s", tt.key, tt.value, got, tt.id)
		}
	}
	for _, ids := range [][]string{nil, {""}, {"who", ""}} {
		m.ID = ids
		if _, err := decode.Orders(m, 4, attributeLimits, 1); err == nil {
			t.Errorf("%q is taken for an id", ids)
		}
	}
}

func TestOrdersAreKeyed(t *testing.T) {
	d, err := decode.Orders(shopOrders, 4, attributeLimits, 2)
	if err != nil {
		t.Fatal(err)
	}
	wrong := 1 - client.Partition([]byte("o"), 2)
	_, fault := d.Decode(decode.Record{Value: []byte(`{"id":"o"}`), Partition: wrong}, nil)
	if fault == nil || fault.Code != decode.KeyMismatch {
		t.Errorf("%v", fault)
	}
}

func FuzzOrders(f *testing.F) {
	for _, s := range []string{`{"id":"a","lines":[{"sku":"x","n":2},{"sku":1},{"n":3}],"placed":"2020-01-01 00:00:00"}`,
		`{"id":"a","skus":["x",null,"x"],"counts":[1,-2,"3"],"gone":true}`, `{"id":1,"lines":[[{"sku":"a"}]]}`,
		`{"id":"a","lines":{"sku":"x"}}`,
		`{"before":{"id":"a","skus":"x"},"after":{"id":"a","skus":["y"]},"op":"u","ts_ms":1}`, "[[["} {
		f.Add([]byte(`{"id":"a","skus":"x"}`), []byte(s))
	}
	all := []decode.OrderMapping{shopOrders,
		{ID: []string{"id"}, Items: "skus", Quantity: "counts", Deleted: "gone", Mode: decode.Add, MaxItems: 3},
		{Debezium: true, ID: []string{"id"}, Items: "skus", Quantity: "counts", Mode: decode.Add, MaxItems: 3}}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		for _, m := range all {
			got, fault := orders(t, m).Decode(decode.Record{Key: key, Value: value, Time: stamp}, nil)
			if fault != nil && fault.Code.Explain() == "" {
				t.Fatalf("unknown code %s", fault.Code)
			}
			for _, g := range got {
				if g.ID == "" || g.Order == nil || len(g.Order.Lines) > 3 || g.Op != mutation.SetOrder && len(g.Order.Lines) == 0 {
					t.Fatalf("bad mutation %+v", g)
				}
				for i, l := range g.Order.Lines {
					if l.Item == "" || !(l.Quantity > 0) || l.Quantity > math.MaxFloat32 ||
						i > 0 && l.Item <= g.Order.Lines[i-1].Item {
						t.Fatalf("bad lines %+v", g.Order.Lines)
					}
				}
			}
		}
	})
}
