package pairs

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
)

// plainAssociation is the association in some orders by a triple loop.
func plainAssociation(orders []plainOrder, items, maxItems int) [][]float64 {
	weight, both := make([][]float64, items), make([][]float64, items)
	for i := range weight {
		weight[i], both[i] = make([]float64, items), make([]float64, items)
	}
	for _, o := range orders {
		for _, i := range o.items {
			for _, j := range o.items {
				if i != j && o.stated <= maxItems {
					weight[i][j] += math.Round(math.Exp2(24) * math.Pow(float64(o.stated), -0.5))
					both[i][j]++
				}
			}
		}
	}
	share, total, powers := make([]float64, items), 0.0, 0.0
	for i, row := range weight {
		for _, w := range row {
			share[i] += w
			total += w
		}
	}
	for i := range share {
		share[i] /= total
		powers += math.Pow(share[i], 0.75)
	}
	a := make([][]float64, items)
	for i := range a {
		a[i] = make([]float64, items)
		for j, w := range weight[i] {
			if w > 0 {
				q, r := math.Pow(share[i], 0.75)/powers, math.Pow(share[j], 0.75)/powers
				a[i][j] = max(0, math.Log(w/total/math.Sqrt(share[i]*r*share[j]*q))) * min(1, both[i][j]/5)
			}
		}
	}
	return a
}

// Rows are those of the plain association, of orders and customers together, without hidden pairs and, where there are
// too many, without the smallest. The number of goroutines changes nothing.
func TestAssociation(t *testing.T) {
	const items, maxItems = 40, 12
	r := rand.New(rand.NewPCG(3, 3))
	sums := make([][]float64, items)
	for i := range sums {
		sums[i] = make([]float64, items)
	}
	var all []*Incidence
	for range 2 {
		x := New(items, maxItems)
		var orders []plainOrder
		for range 300 {
			o := randomOrder(r, items)
			orders = append(orders, o)
			add(t, x, o)
		}
		taken := randomOrder(r, items) // and taken back
		x.Remove(add(t, x, taken))
		for i, row := range plainAssociation(orders, items, maxItems) {
			for j, v := range row {
				sums[i][j] += v
			}
		}
		all = append(all, x)
	}
	hidden := func(i, j int32) bool { return (i*j+i+j)%7 == 0 }
	a := NewAssociation(all...)
	rows := a.Rows(numbers(0, items), items, 1, hidden)
	entries := 0
	for i, row := range rows {
		if !slices.IsSorted(row.Index) {
			t.Fatalf("row %d: %v", i, row.Index)
		}
		got := make([]float64, items)
		for k, j := range row.Index {
			got[j] = float64(row.Value[k])
		}
		for j, want := range sums[i] {
			if hidden(int32(i), int32(j)) {
				want = 0
			}
			if want > 0 {
				entries++
			}
			if math.Abs(got[j]-want) > 1e-5 {
				t.Fatalf("%d and %d: %g, not %g", i, j, got[j], want)
			}
		}
	}
	if entries < items {
		t.Errorf("only %d entries were compared", entries)
	}
	if more := a.Rows(numbers(0, items), items, 5, hidden); !reflect.DeepEqual(more, rows) {
		t.Error("5 goroutines give other rows")
	}
	for i, few := range a.Rows(numbers(10, items), 3, 2, hidden) {
		if want := largest(rows[10+i], 3); !reflect.DeepEqual(few, want) {
			t.Errorf("row %d: %v, not %v", 10+i, few, want)
		}
	}
}

// largest returns the n largest entries of a row.
func largest(v sparse.Vector, n int) sparse.Vector {
	order := make([]int, len(v.Index))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case v.Value[a] > v.Value[b]:
			return -1
		case v.Value[a] < v.Value[b]:
			return 1
		}
		return 0
	})
	order = order[:min(n, len(order))]
	slices.Sort(order)
	out := sparse.Vector{Index: make([]int32, len(order)), Value: make([]float32, len(order))}
	for k, at := range order {
		out.Index[k], out.Value[k] = v.Index[at], v.Value[at]
	}
	return out
}

// Orders of single items associate nothing.
func TestNoAssociation(t *testing.T) {
	x := New(3, 0)
	add(t, x, plainOrder{[]int32{1}, 1})
	for _, row := range NewAssociation(x, New(3, 0)).Rows(numbers(0, 3), 9, 1, func(_, _ int32) bool { return false }) {
		if len(row.Index) != 0 {
			t.Errorf("row %v", row)
		}
	}
}
