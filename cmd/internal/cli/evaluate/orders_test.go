package evaluate

import (
	"fmt"
	"testing"

	"giantstream/sink/rows"
)

// Of the orders, the newest are asked about, by the counts of the others alone.
func TestTheNewestOrdersAreAskedAbout(t *testing.T) {
	var orders []rows.Order
	for k := range 200 {
		set := k % 10
		orders = append(orders, rows.Order{OrderID: fmt.Sprint(k), Time: int64(k),
			Items: []string{fmt.Sprintf("a%d", set), fmt.Sprintf("b%d", set), fmt.Sprintf("c%d", set)}})
	}
	for k := 190; k < 200; k++ {
		orders[k].Items = append(orders[k].Items, "new")
	}
	got, err := complete(orders, 0.1, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Orders != 180 || got.Asked != 20 || got.Items != 30 || got.Unknown > 10 || len(got.Figures) != 4 {
		t.Errorf("%+v", got)
	}
	for _, f := range got.Figures[1:] {
		if want := 1 - float64(got.Unknown)/20; f.All != want {
			t.Errorf("%s finds %g of what can be known, which is %g", f.Method, f.All, want)
		}
	}
	for _, few := range [][]rows.Order{nil, orders[:1]} {
		if _, err := complete(few, 0.1, 1, 1); err == nil {
			t.Errorf("%d orders are evaluated", len(few))
		}
	}
	if got, err := complete([]rows.Order{{Items: []string{"a"}}, {Items: []string{"b"}}}, 0.5, 1, 1); err != nil ||
		got.Asked != 0 {
		t.Errorf("orders of one item: %+v, %v", got, err)
	}
}
