package completion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/pairs"
)

// setsOrders are orders of three items each that always come together, and now and then a popular one.
func setsOrders(n, sets int) (orders [][]int32) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		s := int32(3 * r.IntN(sets))
		o := []int32{s, s + 1, s + 2}
		if r.IntN(2) == 0 {
			o = append(o, int32(3*sets))
		}
		orders = append(orders, o)
	}
	return orders
}

func incidence(t *testing.T, orders [][]int32, items int) *pairs.Incidence {
	t.Helper()
	x := pairs.New(items, 0)
	for _, o := range orders {
		if _, err := x.Add(o, len(o)); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func TestMethodsFindWhatComesTogether(t *testing.T) {
	const sets, items = 40, 3*40 + 1
	orders := setsOrders(2000, sets)
	x := incidence(t, orders[:1800], items)
	questions := Questions(orders[1800:], 1)
	dense, err := Dense(orders[:1800], items, pairs.DefaultMaxItems, 5)
	if err != nil {
		t.Fatal(err)
	}
	vectors := make([]float32, items*sets) // of a set, the same
	for i := range 3 * sets {
		vectors[i*sets+i/3] = 2
	}
	none := Method{"nothing", func([]int32, []float64) {}}
	got := Recall(questions, items, []Method{Popularity(x), Cosine(x, questions),
		Ridge(x, questions, pairs.DefaultRidge, 2), dense, WithTexts(none, "texts", 0.1, vectors, sets), none}, 3)
	for k, want := range [][2]float64{{0.1, 0.5}, {1, 1}, {0.9, 1}, {1, 1}, {0.6, 1}, {0, 0}} {
		if f := got[k]; f.All < want[0] || f.All > want[1] || f.One > want[1] {
			t.Errorf("%+v, want a recall from %g to %g", f, want[0], want[1])
		}
	}
}

// If all items are partners, the ridge scores as the dense inverse does what scores above 0.
func TestRidgeOfAllItemsIsDense(t *testing.T) {
	const items = 31
	orders := setsOrders(300, 10)
	x := incidence(t, orders, items)
	questions := Questions(orders, 1)
	ridge := Ridge(x, questions, pairs.Ridge{Partners: items, Penalty: 5, Keep: items}, 1)
	dense, err := Dense(orders, items, pairs.DefaultMaxItems, 5)
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]float64, items), make([]float64, items)
	ridge.Score([]int32{0}, a)
	dense.Score([]int32{0}, b)
	for _, i := range []int{1, 2} { // what comes with it; with others it has no pair, and the ridge no partner
		if math.Abs(a[i]-b[i]) > 0.02 || a[i] <= 0 {
			t.Errorf("item %d: %g by the ridge, %g by the dense inverse", i, a[i], b[i])
		}
	}
}

func TestQuestions(t *testing.T) {
	orders := [][]int32{{1}, {1, 2}, nil, {-1, -1, 3}}
	got := Questions(orders, 1)
	if len(got) != 2 || len(got[0].Asked) != 1 || got[0].Asked[0]+got[0].Hidden != 3 || got[0].One != got[0].Asked[0] {
		t.Errorf("%+v", got)
	}
	if slices.Contains(got[1].Asked, -1) {
		t.Errorf("unknown items are asked: %+v", got[1])
	}
	if f := Recall(nil, 3, []Method{{"nothing", func([]int32, []float64) {}}}, 1); f[0].All != 0 {
		t.Errorf("of no questions: %v", f)
	}
	many := setsOrders(2*MaxQuestions, 5)
	if got := Questions(many, 1); len(got) != MaxQuestions {
		t.Errorf("%d questions", len(got))
	}
}
