package relations

import (
	"math"
	"slices"
	"testing"

	"giantstream/train/numeric"
)

// planted is a graph of nodes whose texts tell topics apart, a little.
type planted struct {
	*numeric.Rand
	Sample
	topics int
}

func newPlanted(nodes, topics int, seed uint64) *planted {
	r := numeric.NewRand(seed)
	p := &planted{&r, Sample{Dim: 16, Seed: seed}, topics}
	centres := make([]float32, topics*p.Dim)
	for i := range centres {
		centres[i] = float32(r.Float64() - 0.5)
	}
	for i := range nodes {
		for k := range p.Dim {
			noise := float32(r.Float64()+r.Float64()-1) * 0.8
			p.Texts = append(p.Texts, centres[i%topics*p.Dim+k]+noise+0.3)
		}
	}
	return p
}

// link adds a relation of n undirected links. A share of them, which may depend on the weight, is within a topic.
func (p *planted) link(kind string, n int, share func(weight float32) float64, weight func() float32) {
	nodes := len(p.Texts) / p.Dim
	k := int32(len(p.Relations))
	p.Relations = append(p.Relations, Relation{Kind: kind})
	for t := range n {
		i, j, w := p.IntN(nodes), p.IntN(nodes), weight()
		if p.Float64() < share(w) {
			j = j/p.topics*p.topics + i%p.topics
		}
		if i == j || j >= nodes {
			continue
		}
		for _, ends := range [][2]int{{i, j}, {j, i}} {
			p.Links = append(p.Links, Link{From: int32(ends[0]), To: int32(ends[1]), Relation: k, Weight: w,
				Time: int64(t)})
		}
	}
}

func one() float32 { return 1 }

func always(share float64) func(float32) float64 { return func(float32) float64 { return share } }

func (p *planted) weigh(t *testing.T) []Relation {
	t.Helper()
	s := p.Sample
	s.Texts = slices.Clone(s.Texts)
	found, err := Weigh(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A kind weighs what share of its links means something; noise weighs nothing, however much of it there is.
func TestKindsWeighWhatTheySay(t *testing.T) {
	for seed := range uint64(8) {
		p := newPlanted(1500, 12, seed)
		p.link("half", 6000, always(0.5), one)
		p.link("noise", 20000, always(0), one)
		p.link("useful", 5000, always(1), one)
		p.link("few", 20, always(1), one)
		found := p.weigh(t)
		half, noise, useful, few := found[0], found[1], found[2], found[3]
		if useful.Weight != 1 || noise.Weight != 0 || math.Abs(half.Weight-0.5) > 0.12 || few.Weight != 1 {
			t.Errorf("seed %d: useful %.3f, half %.3f, noise %.3f (%.3f ± %.3f), few %.3f", seed, useful.Weight,
				half.Weight, noise.Weight, noise.Surplus, noise.Error, few.Weight)
		}
		if !useful.Dated || useful.Exponent != 0 || useful.Scale != 1 {
			t.Errorf("seed %d: %+v", seed, useful)
		}
	}
}

// Stated weights count where links of more weight mean more, and not where they say nothing. Their unit does not
// matter.
func TestStatedWeightsCountIfTheySaySomething(t *testing.T) {
	for seed := range uint64(4) {
		p := newPlanted(1500, 12, seed+100)
		heavy := func() float32 { return float32(math.Exp(3 * (p.Float64() - 0.5))) }
		p.link("telling", 12000, func(w float32) float64 { return min(1, 0.25*float64(w)) }, heavy)
		p.link("silent", 12000, always(0.8), heavy)
		found := p.weigh(t)
		if found[0].Exponent == 0 || found[1].Exponent != 0 {
			t.Errorf("seed %d: exponents %g and %g", seed, found[0].Exponent, found[1].Exponent)
		}
		mean := 0.0
		for _, l := range p.Links[:found[0].Links] {
			mean += found[0].WeightOf(l.Weight) / float64(found[0].Links)
		}
		if math.Abs(mean-found[0].Weight) > 1e-9 {
			t.Errorf("seed %d: links weigh %g on average, the relation %g", seed, mean, found[0].Weight)
		}
		for i := range p.Links {
			p.Links[i].Weight *= 1024
		}
		for k, r := range p.weigh(t) {
			if r.Exponent != found[k].Exponent || r.Weight != found[k].Weight ||
				math.Abs(r.WeightOf(1024)-found[k].WeightOf(1)) > 1e-9 {
				t.Errorf("seed %d: in another unit %+v, was %+v", seed, r, found[k])
			}
		}
	}
}

// The latest links are held out; links of one time by a hash, both directions alike.
func TestLinksAreHeldOutByTime(t *testing.T) {
	p := newPlanted(400, 4, 1)
	p.link("", 2000, always(1), one)
	known, held, dated := hold(p.Links, 1)
	if !dated || len(known)+len(held) != len(p.Links) {
		t.Errorf("dated %t, %d known and %d held out of %d", dated, len(known), len(held), len(p.Links))
	}
	for _, l := range known {
		if l.Time >= held[0].Time {
			t.Fatalf("a link of time %d is known, one of %d held out", l.Time, held[0].Time)
		}
	}
	for i := range p.Links {
		p.Links[i].Time = 7
	}
	_, held, dated = hold(p.Links, 1)
	if share := float64(len(held)) / float64(len(p.Links)); dated || math.Abs(share-heldOut) > 0.05 {
		t.Errorf("dated %t, a share of %.2f is held out", dated, share)
	}
	both := map[[2]int32]int{}
	for _, l := range held {
		both[[2]int32{min(l.From, l.To), max(l.From, l.To)}]++
	}
	for pair, n := range both {
		if n%2 != 0 {
			t.Errorf("%v is held out in one direction", pair)
		}
	}
}

// What no text predicts, or a single relation without weights, leaves all links as they are.
func TestNothingToWeigh(t *testing.T) {
	p := newPlanted(300, 4, 5)
	p.link("only", 1000, always(1), one)
	if r := p.weigh(t)[0]; r.Weight != 1 || r.Asked != 0 || r.WeightOf(3) != 1 || r.WeightOf(0) != 0 {
		t.Errorf("a single relation: %+v", r)
	}
	zero := newPlanted(300, 4, 5)
	zero.link("zero", 1000, always(1), func() float32 { return 0 })
	zero.link("one", 1000, always(1), one)
	for _, r := range zero.weigh(t) {
		if r.IsWeightless() != (r.Kind == "zero") {
			t.Errorf("of links that weigh nothing: %+v", r)
		}
	}
	p.link("other", 1000, always(1), one)
	clear(p.Texts)
	for _, r := range p.weigh(t) {
		if r.Weight != 1 || r.Why() == "" {
			t.Errorf("without texts: %+v", r)
		}
	}
	if _, err := Weigh(t.Context(), Sample{Relations: []Relation{{}, {Kind: "empty"}}, Dim: 4}); err != nil {
		t.Error(err)
	}
}
