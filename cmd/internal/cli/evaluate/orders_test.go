package evaluate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"giantstream/cmd/internal/cli/command"
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

// Nothing that was asked is no recall of 0.
func TestNoQuestionsHaveNoRecall(t *testing.T) {
	orders := make([]rows.Order, 10)
	for i := range orders {
		orders[i] = rows.Order{OrderID: fmt.Sprint(i), Items: []string{fmt.Sprint(i % 3)}, Time: int64(i)}
	}
	got, err := complete(orders, 0.3, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	aged, err := age(t.Context(), orders, 0.3, 2, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	a := &command.App{Out: &b}
	if err := errors.Join(printCompleted(a, got), printAged(a, aged)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "0.000") || strings.Count(b.String(), command.TooFew) != 2*4+2*5 {
		t.Errorf("printed\n%s", b.String())
	}
}

// Answers that follow the orders learn what is new, and those that stand still age.
func TestAnswersAge(t *testing.T) {
	var orders []rows.Order
	for k := range 400 {
		set, season := k%10, 0
		if k >= 300 { // then other things go together
			season = 5
		}
		orders = append(orders, rows.Order{OrderID: fmt.Sprint(k), Time: int64(k), Items: []string{
			fmt.Sprintf("a%d", set), fmt.Sprintf("b%d", (set+season)%10), fmt.Sprintf("c%d", (set+season)%10)}})
	}
	got, err := age(t.Context(), orders, 0.5, 4, 1, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Orders != 200 || len(got.Windows) != 4 {
		t.Fatalf("%+v", got)
	}
	asked := 0
	for i, w := range got.Windows {
		asked += w.Asked
		current, frozen := w.Current, w.Frozen
		current.Method, frozen.Method = "", ""
		if i == 0 && current != frozen {
			t.Errorf("the same counts find %+v and %+v", current, frozen)
		}
		if i < 2 && current.All != 1 {
			t.Errorf("window %d: %+v", i, w)
		}
	}
	last := got.Windows[3]
	if asked != 200 || last.Current.One != 1 || last.Frozen.One > 0.9 {
		t.Errorf("%d asked; the last window finds %+v, and %+v without what came since", asked, last.Current, last.Frozen)
	}
	one, err := age(t.Context(), orders, 0.1, 1, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := complete(orders, 0.1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := all.Figures[len(all.Figures)-1]; one.Windows[0].Current != want || one.Windows[0].Asked != all.Asked {
		t.Errorf("one window is %+v, without windows %+v", one.Windows[0].Current, want)
	}
	if _, err := age(t.Context(), orders[:3], 0.5, 4, 1, 1, nil); err == nil {
		t.Error("three orders make four windows")
	}
}
