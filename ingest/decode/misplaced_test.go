package decode_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

// leading is the plainest reading of a path, as steps: a name, an index, or "*" with the condition k == x or none.
type leading []any

type chosen struct{}

// follow returns the strings that the steps lead to, and whether a value stands in their way.
func (l leading) follow(v any) (found []string, stuck bool) {
	if v == nil {
		return nil, false
	}
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	if len(l) == 0 {
		if s, ok := v.(string); ok {
			return []string{s}, false
		}
		for _, e := range list { // a list counts as its elements
			if s, ok := e.(string); ok {
				found = append(found, s)
			} else if e != nil {
				stuck = true
			}
		}
		return found, stuck || isObject
	}
	name, isName := l[0].(string)
	switch {
	case isName && name != "*" && isObject:
		return l[1:].follow(object[name])
	case isName && name != "*":
		return nil, !isList || len(list) > 0
	case !isList:
		return nil, true
	}
	for i, e := range list {
		of, _ := e.(map[string]any)
		if index, ok := l[0].(int); ok && index != i || l[0] == (chosen{}) && of["k"] != "x" {
			continue
		}
		more, bad := l[1:].follow(e)
		if _, inner := e.([]any); inner && len(l) == 1 { // [*] gives the elements themselves
			more, bad = nil, true
		}
		found, stuck = append(found, more...), stuck || bad
	}
	return found, stuck
}

// document draws a value that is often, but not always, as the paths want it.
func document(r *rand.Rand, depth int) any {
	switch n := r.IntN(10); {
	case n == 0:
		return nil
	case n == 1 || depth == 0:
		return string(rune('p' + r.IntN(5)))
	case n < 6:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, document(r, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for _, name := range []string{"a", "b", "k"} {
		if name == "k" {
			object[name] = []string{"x", "y"}[r.IntN(2)]
		} else if r.IntN(4) > 0 {
			object[name] = document(r, depth-1)
		}
	}
	return object
}

// Only a value that is absent, null or an empty list says that there are no edges, or no items. One that the path
// cannot enter never takes anything away.
func TestAValueInTheWayOfAPathIsNoAbsence(t *testing.T) {
	paths := map[string]leading{
		"d[*].b": {"d", "*", "b"}, "d.b[*]": {"d", "b", "*"}, "d.b": {"d", "b"}, "d[0].b": {"d", 0, "b"},
		"d[k=x].b": {"d", chosen{}, "b"}, "d[*].a[k=x].b[*]": {"d", "*", "a", chosen{}, "b", "*"},
		"d[*].a[*].b": {"d", "*", "a", "*", "b"}, "d.a[*].b": {"d", "a", "*", "b"},
	}
	for path, steps := range paths {
		node, err := decode.Nodes(decode.NodeMapping{ID: "id", Edges: []decode.EdgePath{{Path: path}}}, attributeLimits, 1)
		if err != nil {
			t.Fatal(err)
		}
		edge, err := decode.Edges(decode.EdgeMapping{Src: "id", Dst: path, Mode: decode.Replace}, attributeLimits, 1)
		if err != nil {
			t.Fatal(err)
		}
		order := orders(t, decode.OrderMapping{ID: []string{"id"}, Items: path, Mode: decode.Replace, MaxItems: 1000})
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // draws documents
			value, err := json.Marshal(map[string]any{"id": "self", "d": document(r, 5)})
			if err != nil {
				t.Fatal(err)
			}
			var plain any
			if err := json.Unmarshal(value, &plain); err != nil {
				t.Fatal(err)
			}
			want, stuck := steps.follow(plain)
			for what, d := range map[string]*decode.Decoder{"node": node, "edges": edge, "order": order} {
				got, fault := d.Decode(decode.Record{Value: value, Time: stamp}, nil)
				refused := stuck && (len(want) == 0 || what == "order")
				switch {
				case (fault != nil) != stuck || fault != nil && fault.Code != decode.BadType:
					t.Fatalf("%s, %s of %s: fault %v, in the way: %v", path, what, value, fault, stuck)
				case refused && len(got) > 0, !refused && len(got) != 1:
					t.Fatalf("%s, %s of %s: %+v, refused: %v", path, what, value, got, refused)
				case !refused && !slices.Equal(stated(got[0]), unique(want, what)):
					t.Fatalf("%s, %s of %s: %+v, want %v", path, what, value, stated(got[0]), want)
				}
			}
		}
	}
}

// stated are the far ends or the items that a mutation states.
func stated(m mutation.Mutation) []string {
	if m.Order == nil {
		return m.Others
	}
	var items []string
	for _, l := range m.Order.Lines {
		items = append(items, l.Item)
	}
	return items
}

// unique sorts the items of an order.
func unique(found []string, what string) []string {
	if what != "order" {
		return found
	}
	return slices.Compact(slices.Sorted(slices.Values(found)))
}

func TestAQuantityInTheWrongPlaceIsRefused(t *testing.T) {
	parallel := decode.OrderMapping{ID: []string{"id"}, Items: "skus", Quantity: "counts[*].n", MaxItems: 3,
		Mode: decode.Replace}
	nested := decode.OrderMapping{ID: []string{"id"}, Items: "lines[*].sku", Quantity: "lines[*].n.value", MaxItems: 3}
	for _, c := range []struct {
		mapping decode.OrderMapping
		value   string
	}{
		{parallel, `{"id":"o","skus":["a"],"counts":"2"}`},
		{parallel, `{"id":"o","skus":["a"],"counts":{"n":2}}`},
		{nested, `{"id":"o","lines":[{"sku":"a","n":2}]}`},
		{shopOrders, `{"id":"o","lines":""}`},
		{shopOrders, `{"id":"o","lines":"N001"}`},
		{shopOrders, `{"id":"o","lines":{"sku":"N001"}}`},
		{shopOrders, `{"id":"o","lines":[["N001",1]]}`},
	} {
		got, fault := orders(t, c.mapping).Decode(decode.Record{Value: []byte(c.value), Time: stamp}, nil)
		if len(got) > 0 || fault == nil || fault.Code != decode.BadType {
			t.Errorf("%s: %+v, %v; want bad_type", c.value, got, fault)
		}
	}
}

// A large column that an update has not changed is no list without elements.
func TestAWithheldListIsNotEmpty(t *testing.T) {
	m := shopOrders
	m.Debezium = true
	got, fault := orders(t, m).Decode(decode.Record{Time: stamp, Value: []byte(event("u", "null",
		`{"id":"o","lines":"__debezium_unavailable_value"}`))}, nil)
	if len(got) > 0 || fault == nil || fault.Code != decode.BadChange {
		t.Errorf("%+v, %v; want bad_change", got, fault)
	}
}

// An update whose row cannot be read takes nothing back.
func TestAnUpdateThatCannotBeReadTakesNothingBack(t *testing.T) {
	d, err := decode.Edges(decode.EdgeMapping{Debezium: true, Src: "src", Dst: "to.id"}, kafkatest.Limits(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, fault := d.Decode(decode.Record{Time: stamp, Value: []byte(event("u", `{"src":"a","to":{"id":"b"}}`,
		`{"src":"a","to":"c"}`))}, nil)
	if len(got) > 0 || fault == nil || fault.Code != decode.BadType {
		t.Errorf("%+v, %v; want bad_type", got, fault)
	}
}
