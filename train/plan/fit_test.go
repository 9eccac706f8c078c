package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFitFindsTheRates of random costs of one to three terms, some of which are free, whatever their scale.
func TestFitFindsTheRates(t *testing.T) {
	terms := []term{perNode, perPiece, perLink}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		some := slices.Clone(terms[:1+r.IntN(3)])
		want := Rate{}
		for _, t := range some {
			if r.IntN(3) > 0 {
				want[t] = math.Exp(20*r.Float64() - 10)
			}
		}
		if len(want) == 0 {
			continue
		}
		var seen []observation
		for range 4 {
			q := map[term]float64{}
			for _, t := range some {
				q[t] = (0.1 + r.Float64()) / max(want[t], 1e-6)
			}
			seen = append(seen, observation{q, want.costOf(q)})
		}
		got := fitRate(some, seen)
		for _, o := range seen {
			if e := got.costOf(o.q) - o.cost; math.Abs(e) > 1e-6*o.cost {
				t.Errorf("seed %d: %v costs %g, not %g: rates %v, want %v", seed, o.q, got.costOf(o.q), o.cost, got, want)
			}
		}
	}
}

// TestFitIsNeverNegative: noise must not make a larger graph cheaper.
func TestFitIsNeverNegative(t *testing.T) {
	terms := []term{perNode, perPiece, perLink}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var seen []observation
		for range 3 {
			q := map[term]float64{}
			for _, t := range terms {
				q[t] = math.Exp(10 * r.Float64())
			}
			seen = append(seen, observation{q, math.Exp(3 * r.Float64())})
		}
		got := fitRate(terms, seen)
		if len(got) == 0 {
			t.Fatalf("seed %d: no rate", seed)
		}
		for term, each := range got {
			if !(each >= 0) || math.IsInf(each, 0) {
				t.Errorf("seed %d: %g for each %s", seed, each, term)
			}
		}
	}
}

// TestClassified: of 37,820 instances the classifiers learn a tenth five times, and six tenths, which are many, once.
func TestClassified(t *testing.T) {
	if got := classified(37_820, 1, learning); got != 5*3782+22_692 {
		t.Errorf("they learn from %.0f instances", got)
	}
	if got := classified(1e9, 0.8, choosing); got != 2*choosing {
		t.Errorf("they are chosen by %.0f instances", got)
	}
}

// TestInstancesOfASample: they and what they link to are as many as the sample has, by drawing graphs.
func TestInstancesOfASample(t *testing.T) {
	const nodes, degree, most = 20_000, 10, 4_000
	r := rand.New(rand.NewPCG(1, 3))
	taken := map[int]bool{}
	instances := 0
	for ; len(taken) < most; instances++ {
		for range 1 + degree {
			taken[r.IntN(nodes)] = true
		}
	}
	positions, got := sampled(Graph{Nodes: nodes, Links: nodes * degree}, 1, most)
	if positions != most || math.Abs(got/float64(instances)-1) > 0.05 {
		t.Errorf("%.0f instances among %.0f nodes; %d were drawn", got, positions, instances)
	}
	if got := reach(Graph{Nodes: nodes, Links: nodes * degree}, most, instances); math.Abs(got-1) > 0.1 {
		t.Errorf("a link brings %.2f nodes, and leads to any of them", got)
	}
	for _, want := range []float64{0, 0.1, 1, 3} {
		g := Graph{Nodes: 1e6, Links: 1e7}
		_, some := sampled(g, want, 1e5)
		if got := reach(g, 1e5, int(math.Round(some))); math.Abs(got-want) > 0.01*(1+want) {
			t.Errorf("reach %.3f of %.0f instances, want %.3f", got, some, want)
		}
	}
	if p, i := sampled(Graph{Nodes: 100, Links: 1000}, 1, 100); p != 100 || i != 100 {
		t.Errorf("%.0f instances among %.0f nodes where the sample is the graph", i, p)
	}
}
