package evaluate

import (
	"context"
	"iter"
	"reflect"
	"testing"

	"giantstream/featurize/pairs"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/eval"
)

// fixedLog has some rows and orders.
type fixedLog struct {
	work.Log
	rows   []generation.Row
	orders []rows.Order
}

func (l fixedLog) Rows(context.Context, stages.Split) iter.Seq2[generation.Row, error] {
	return each(l.rows)
}

func (l fixedLog) Orders(context.Context, int) iter.Seq2[rows.Order, error] { return each(l.orders) }

func each[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// What a generation of the past is built of has neither later orders nor nodes that these order first.
func TestBeforeHasNothingLater(t *testing.T) {
	node := func(id string) generation.Row { return generation.Row{Row: rows.Row{NodeID: id}} }
	log := before{fixedLog{rows: []generation.Row{node("a"), node("later"), node("never")},
		orders: []rows.Order{{OrderID: "1", Time: 9}, {OrderID: "2", Time: 10}, {OrderID: "3", Time: 8}}},
		10, map[string]bool{"later": true}}
	var ids, orders []string
	for r, err := range log.Rows(t.Context(), stages.Split{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.NodeID)
	}
	for o, err := range log.Orders(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		orders = append(orders, o.OrderID)
	}
	if !reflect.DeepEqual(ids, []string{"a", "never"}) || !reflect.DeepEqual(orders, []string{"1", "3"}) {
		t.Errorf("nodes %v, orders %v", ids, orders)
	}
}

// Links of a window that there were before are not asked about, nor are those between two items that are new.
func TestNewLinks(t *testing.T) {
	x := pairs.New(5, 0)
	if err := addTo([]int32{0, 1, 2}, x); err != nil {
		t.Fatal(err)
	}
	known, added := new(ager).newLinks(x, [][2]int32{{0, 1}}, [][2]int32{{0, 1}, {0, 2}, {1, 3}, {3, 4}})
	if !reflect.DeepEqual(known, []eval.Edge{{Src: 0, Dst: 2}}) ||
		!reflect.DeepEqual(added, []eval.Edge{{Src: 3, Dst: 1}}) {
		t.Errorf("%v between known items, %v with a new one", known, added)
	}
}
