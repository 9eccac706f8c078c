package eval

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/internal/graphdir"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

func TestSplitHidesBothDirectionsAndNothingElse(t *testing.T) {
	g := graphtest.Topics(300, 3, 8, 1)
	known, hidden := Split(g, 0.2, 7)
	if got, want := int64(2*len(hidden))+known.Neighbours.NNZ(), g.Neighbours.NNZ(); got != want {
		t.Errorf("known and hidden directions: %d, want %d", got, want)
	}
	for _, e := range hidden {
		if linked(known.Neighbours, int(e.Src), e.Dst) || linked(known.Neighbours, int(e.Dst), e.Src) {
			t.Errorf("edge %v is hidden and known", e)
		}
	}
	if share := float64(2*len(hidden)) / float64(g.Neighbours.NNZ()); math.Abs(share-0.2) > 0.05 {
		t.Errorf("hid %.3f of the edges, want about 0.2", share)
	}
	weights := make([]float32, 0, g.Neighbours.NNZ()) // a weight stays with its link
	for i := range g.Neighbours.Rows {
		for _, j := range g.Neighbours.Row(i).Index {
			weights = append(weights, float32(1+(i+int(j))%7))
		}
	}
	g.Neighbours.Value = weights
	known, _ = Split(g, 0.2, 7)
	for i := range known.Neighbours.Rows {
		row := known.Neighbours.Row(i)
		for k, j := range row.Index {
			if row.Value[k] != float32(1+(i+int(j))%7) {
				t.Fatalf("the link from %d to %d has the weight of another one", i, j)
			}
		}
	}
}

func TestSplitDoesNotDependOnTheOrderOfNodes(t *testing.T) {
	g := graphtest.Topics(200, 2, 6, 1)
	n := g.Len()
	reversed := &train.Graph{Neighbours: &sparse.Matrix{Rows: n, Cols: n, Start: []int64{0}}}
	for i := n - 1; i >= 0; i-- {
		reversed.IDs = append(reversed.IDs, g.IDs[i])
		for _, j := range slices.Backward(g.Neighbours.Row(i).Index) {
			reversed.Neighbours.Index = append(reversed.Neighbours.Index, int32(n-1)-j)
		}
		reversed.Neighbours.Start = append(reversed.Neighbours.Start, int64(len(reversed.Neighbours.Index)))
	}
	names := func(g *train.Graph) []string {
		_, hidden := Split(g, 0.1, 3)
		var list []string
		for _, e := range hidden {
			a, b := g.IDs[e.Src], g.IDs[e.Dst]
			list = append(list, min(a, b)+" "+max(a, b))
		}
		slices.Sort(list)
		return list
	}
	if a, b := names(g), names(reversed); !slices.Equal(a, b) {
		t.Errorf("hidden edges differ:\n%v\n%v", a, b)
	}
}

func TestSplitOfDirectedGraphListsEachEdgeOnce(t *testing.T) {
	g := &train.Graph{IDs: []string{"a", "b", "c"}, Texts: make([]string, 3), Neighbours: &sparse.Matrix{
		Rows: 3, Cols: 3, Start: []int64{0, 1, 2, 3}, Index: []int32{1, 0, 0}}}
	known, hidden := Split(g, 1, 0)
	if known.Neighbours.NNZ() != 0 || !slices.Equal(hidden, []Edge{{0, 1}, {2, 0}}) {
		t.Errorf("hidden %v, known %v", hidden, known.Neighbours.Index)
	}
}

func TestAUC(t *testing.T) {
	for _, c := range []struct {
		name     string
		pos, neg []float64
		want     float64
	}{
		{"separated", []float64{3, 4}, []float64{1, 2}, 1},
		{"reversed", []float64{1, 2}, []float64{3, 4}, 0},
		{"ties count half", []float64{1}, []float64{1}, 0.5},
		{"three of four pairs", []float64{2, 4}, []float64{1, 3}, 0.75},
	} {
		if got, _ := AUC(c.pos, c.neg); got != c.want {
			t.Errorf("%s: AUC %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAUCStandardErrorCoversRepeats(t *testing.T) {
	var aucs []float64
	var claimed float64
	for k := range 200 {
		r := numeric.NewRand(1, uint64(k))
		pos, neg := make([]float64, 100), make([]float64, 100)
		for i := range pos {
			pos[i], neg[i] = r.Float64()+0.2, r.Float64()
		}
		a, se := AUC(pos, neg)
		aucs = append(aucs, a)
		claimed += se / 200
	}
	var sum, squares float64
	for _, a := range aucs {
		sum += a
		squares += a * a
	}
	_, se := meanAndError(sum, squares, len(aucs))
	if seen := se * math.Sqrt(200); math.Abs(seen-claimed) > 0.15*seen {
		t.Errorf("standard error %.4f claimed, %.4f seen", claimed, seen)
	}
}

// topicVectors gives each node its topic's axis and a little noise.
func topicVectors(g *train.Graph, topics int) []float32 {
	emb := make([]float32, g.Len()*topics)
	r := numeric.NewRand(9)
	for i := range emb {
		emb[i] = float32(r.Float64() / 10)
	}
	for i := range g.Len() {
		emb[i*topics+i%topics] = 1
	}
	return emb
}

func TestLinksRewardsStructureOnly(t *testing.T) {
	g := graphtest.Topics(600, 4, 10, 1)
	known, hidden := Split(g, 0.1, 1)
	good, err := Links(topicVectors(g, 4), 4, known, hidden, LinkOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if good.AUC < 0.8 || good.Edges != len(hidden) {
		t.Errorf("topic embeddings: %+v", good)
	}
	noise := make([]float32, g.Len()*4)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range noise {
		noise[i] = float32(r.Float64() - 0.5)
	}
	bad, err := Links(noise, 4, known, hidden, LinkOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(bad.AUC-0.5) > 4*bad.AUCStdErr {
		t.Errorf("noise has AUC %.3f ± %.3f, want 0.5", bad.AUC, bad.AUCStdErr)
	}
	again, err := Links(noise, 4, known, hidden, LinkOptions{Seed: 1, Workers: 3})
	if err != nil || again != bad {
		t.Errorf("with 3 workers %+v, want %+v (%v)", again, bad, err)
	}
}

func TestLinksOfNothingHiddenSaysSo(t *testing.T) {
	g := graphtest.Topics(20, 2, 4, 1)
	if _, err := Links(topicVectors(g, 2), 2, g, nil, LinkOptions{}); !errors.Is(err, ErrNoLinks) {
		t.Errorf("got %v, want ErrNoLinks", err)
	}
}

func TestNegativesAreNoNeighboursAndFollowDegree(t *testing.T) {
	// A star: node 0 linked to 1..9; 10–11 a pair far from it.
	var edges [][2]int32
	for i := int32(1); i < 10; i++ {
		edges = append(edges, [2]int32{0, i})
	}
	edges = append(edges, [2]int32{10, 11})
	g := &train.Graph{IDs: make([]string, 12), Neighbours: graphdir.Undirected(12, edges)}
	s := NewSampler(g.Neighbours, []Edge{{Src: 0, Dst: 10}})
	r := numeric.NewRand(1)
	got := s.Negatives(nil, 0, 50, &r)
	for _, x := range got {
		if x != 11 {
			t.Fatalf("negative %d of the hub is itself, a neighbour or a hidden neighbour", x)
		}
	}
	hub := 0
	for _, x := range s.Negatives(nil, 11, 4000, &r) {
		if x == 0 {
			hub++
		}
	}
	if hub < 1800 || hub > 2200 {
		t.Errorf("the hub, with half of the other degrees, was drawn %d times in 4000", hub)
	}
}

func TestProbeLearnsClasses(t *testing.T) {
	g := graphtest.Topics(400, 4, 4, 1)
	emb := topicVectors(g, 4)
	m, err := Probe(emb, 4, g.Classes, ProbeOptions{Fraction: 0.1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if m.Accuracy < 0.99 || m.Train != 40 || m.Test != 360 || m.Classes != 4 || m.Majority != 0.25 {
		t.Errorf("got %+v", m)
	}
	again, err := Probe(emb, 4, g.Classes, ProbeOptions{Fraction: 0.1, Seed: 1, Workers: 1})
	if err != nil || again != m {
		t.Errorf("with one worker %+v, want %+v", again, m)
	}
	if _, err := Probe(emb, 4, make([]string, 400), ProbeOptions{Fraction: 0.1}); !errors.Is(err, ErrNoClasses) {
		t.Errorf("no classes: got %v, want ErrNoClasses", err)
	}
}

func TestNearestFindsTheBestInOrder(t *testing.T) {
	emb := []float32{1, 0, 2, 0.2, 0, 1, 1, 1, -1, 0}
	got := Nearest(emb, 2, []int32{0}, 3)[0]
	var nodes []int32
	for _, n := range got {
		nodes = append(nodes, n.Node)
	}
	if !slices.Equal(nodes, []int32{1, 3, 2}) {
		t.Errorf("nearest to the first: %v", got)
	}
}

// mixture returns embeddings around a centre per class, whose dimensions become smaller and smaller.
func mixture(n, dim, classes int, noise float64) (emb []float32, class []string) {
	r := numeric.NewRand(3)
	gauss := func() float64 { return math.Sqrt(-2*math.Log(1-r.Float64())) * math.Cos(2*math.Pi*r.Float64()) }
	centres := make([]float64, classes*dim)
	for i := range centres {
		centres[i] = gauss()
	}
	emb, class = make([]float32, n*dim), make([]string, n)
	for i := range n {
		k := int(float64(classes) * r.Float64() * r.Float64())
		class[i] = string(rune('A' + k))
		for d := range dim {
			emb[i*dim+d] = float32((centres[k*dim+d] + noise*gauss()) / math.Sqrt(float64(d+1)))
		}
	}
	return emb, class
}

// 63,666 nodes of 58 classes: the size of a Linux distribution.
func BenchmarkProbe(b *testing.B) {
	emb, classes := mixture(63666, 256, 58, 6)
	for b.Loop() {
		for _, rate := range []float64{0.1, 0.6} {
			m, err := Probe(emb, 256, classes, ProbeOptions{Fraction: rate, Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(m.Accuracy, "accuracy-"+map[float64]string{0.1: "10", 0.6: "60"}[rate])
		}
	}
}

// The error of a gain is that of the difference, over draws of the pairs: nothing for scores that agree on every pair,
// though both are uncertain.
func TestTheErrorOfAGain(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	draw := func(n int) (a, b Scores) {
		for range n {
			x, y, same := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
			a.positive, b.positive = append(a.positive, same+x), append(b.positive, same+y+0.5)
			x, y, same = r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
			a.negative, b.negative = append(a.negative, same+x), append(b.negative, same+y)
		}
		return a, b
	}
	const draws = 400
	var gains, squares, stated float64
	for range draws {
		a, b := draw(60)
		gain := b.AUC() - a.AUC()
		gains, squares, stated = gains+gain/draws, squares+gain*gain/draws, stated+b.GainError(a)/draws
	}
	if seen := math.Sqrt(squares - gains*gains); math.Abs(stated/seen-1) > 0.15 || gains < 0.05 {
		t.Errorf("gains of %.3f on average vary by %.4f, the stated error is %.4f", gains, seen, stated)
	}
	if a, _ := draw(60); a.GainError(a) != 0 {
		t.Errorf("the error of no difference is %g", a.GainError(a))
	}
}
