package eval

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/internal/graphdir"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

func TestByDegreeCountsBothDirectionsOnce(t *testing.T) {
	// 0 → 1, 1 → 0, 2 → 0; 3 alone; a star of 12 around 4.
	m := &sparse.Matrix{Cols: 17, Start: []int64{0}}
	for i := range 17 {
		var row sparse.Vector
		switch {
		case i == 0:
			row.Index = []int32{1}
		case i == 1, i == 2:
			row.Index = []int32{0}
		case i > 4:
			row.Index = []int32{4}
		}
		m.Append(row)
	}
	got := ByDegree(m)
	want := []uint8{1, 1, 1, 0, 3, 1}
	if !slices.Equal(got[:6], want) {
		t.Errorf("buckets %v, want %v", got[:6], want)
	}
}

func TestIsolatedNodesHaveNoHiddenEdge(t *testing.T) {
	known := graphdir.Undirected(5, [][2]int32{{0, 1}})
	isolated, others := Isolated(known, []Edge{{2, 3}})
	if !slices.Equal(isolated, []int32{4}) || !slices.Equal(others, []int32{0, 1, 2, 3}) {
		t.Errorf("isolated %v, others %v", isolated, others)
	}
}

func TestUnseenNodesLeaveNoTrace(t *testing.T) {
	g := graphtest.Topics(300, 3, 8, 1)
	unseen, seen, links := SplitNodes(g, 0.1, 7)
	if len(unseen)+len(seen) != g.Len() || len(unseen) < 15 || len(unseen) > 50 {
		t.Fatalf("%d unseen and %d seen nodes of %d", len(unseen), len(seen), g.Len())
	}
	small, whole := Subgraph(g, seen), Only(g, seen)
	if small.Neighbours.NNZ() != whole.Neighbours.NNZ() || small.Len() != len(seen) || whole.Len() != g.Len() {
		t.Errorf("%d links among the seen nodes, %d in the whole graph", small.Neighbours.NNZ(), whole.Neighbours.NNZ())
	}
	for _, i := range unseen {
		if len(whole.Neighbours.Row(int(i)).Index) > 0 || slices.Contains(whole.Neighbours.Index, i) {
			t.Errorf("unseen node %d has links", i)
		}
	}
	for k, i := range seen {
		if small.IDs[k] != g.IDs[i] {
			t.Fatalf("node %d of the subgraph is %s, want %s", k, small.IDs[k], g.IDs[i])
		}
		for _, j := range small.Neighbours.Row(k).Index {
			if !linked(g.Neighbours, int(i), seen[j]) {
				t.Errorf("the subgraph links %d and %d", i, seen[j])
			}
		}
	}
	between := 0
	for _, i := range unseen {
		for _, j := range g.Neighbours.Row(int(i)).Index {
			if slices.Contains(seen, j) {
				between++
			}
		}
	}
	if between != len(links) {
		t.Errorf("%d links to ask about, want %d", len(links), between)
	}
	for _, e := range links {
		if !slices.Contains(unseen, e.Src) || !slices.Contains(seen, e.Dst) {
			t.Errorf("link %v does not go from an unseen to a seen node", e)
		}
	}
	if again, _, _ := SplitNodes(g, 0.1, 7); !slices.Equal(again, unseen) {
		t.Error("the same seed chooses other nodes")
	}
}

// A directed link counts as one, whichever end is unseen.
func TestUnseenNodesOfADirectedGraph(t *testing.T) {
	g := &train.Graph{IDs: []string{"a", "b"}, Classes: []string{"", ""}, Neighbours: &sparse.Matrix{
		Rows: 2, Cols: 2, Start: []int64{0, 1, 1}, Index: []int32{1}}}
	for seed := range uint64(200) {
		unseen, _, links := SplitNodes(g, 0.5, seed)
		if len(unseen) == 1 && !slices.Equal(links, []Edge{{unseen[0], 1 - unseen[0]}}) {
			t.Fatalf("unseen %v, links %v", unseen, links)
		}
	}
}

func TestLinksByDegreeAddUp(t *testing.T) {
	g := graphtest.Topics(600, 4, 6, 1)
	known, hidden := Split(g, 0.2, 1)
	scores, err := ScoreLinks(topicVectors(g, 4), 4, known, hidden, LinkOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	bucket := ByDegree(known.Neighbours)
	edges, reciprocal := 0, 0.0
	for k := range DegreeBuckets {
		m := scores.Where(bucket, k).Metrics()
		edges, reciprocal = edges+m.Edges, reciprocal+m.MRR*float64(m.Edges)
	}
	all := scores.Metrics()
	if edges != all.Edges || math.Abs(reciprocal-all.MRR*float64(edges)) > 1e-9 {
		t.Errorf("buckets: %d edges, reciprocal ranks %g; all: %+v", edges, reciprocal, all)
	}
}

func TestQueryIsTheUnseenEnd(t *testing.T) {
	g := graphtest.Topics(300, 3, 8, 1)
	_, seen, links := SplitNodes(g, 0.2, 1)
	scores, err := ScoreLinks(topicVectors(g, 3), 3, Only(g, seen), links, LinkOptions{Seed: 1, FromSource: true})
	if err != nil {
		t.Fatal(err)
	}
	for k, s := range scores {
		if s.Query != links[k].Src {
			t.Fatalf("edge %v was asked from %d", links[k], s.Query)
		}
	}
}

// Small trailing dimensions stay small: they cannot drown the ones that tell the class.
func TestProbeDoesNotInflateSmallDimensions(t *testing.T) {
	const n, dim = 300, 40
	emb, classes := make([]float32, n*dim), make([]string, n)
	r := numeric.NewRand(4)
	for i := range n {
		classes[i] = string(rune('a' + i%2))
		emb[i*dim] = 1
		emb[i*dim+1] = float32(i%2) - 0.5
		for d := 2; d < dim; d++ {
			emb[i*dim+d] = float32(r.Float64()-0.5) / 50
		}
	}
	m, err := Probe(emb, dim, classes, ProbeOptions{Fraction: 0.1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if m.Accuracy < 0.995 {
		t.Errorf("accuracy %.3f on classes that one dimension tells", m.Accuracy)
	}
}

// The fit stands where the objective's gradient is all but zero, and the origin does not matter.
func TestLogisticFitIsTheOptimum(t *testing.T) {
	emb, classes := mixture(500, 12, 4, 1)
	p, err := NewProber(emb, 12, classes)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []float64{0.1, 10} {
		l := newLogistic(p.unit, p.dim, p.label, len(p.names), p.nodes, 1)
		at := l.parameters()
		l.fit(at, c)
		g := make([]float64, len(at))
		reached := l.objective(at, g)
		for range 20 { // far beyond the tolerance
			l.fit(at, c)
		}
		if best := l.objective(at, g); reached-best > 2e-3*best {
			t.Errorf("C = %g: F is %g, and could be %g", c, reached, best)
		}
		if back := l.uncentred(at); reflect.DeepEqual(back, at) {
			t.Error("uncentred parameters are the same")
		} else if l.centred(back); math.Abs(back[len(back)-1]-at[len(at)-1]) > 1e-9 {
			t.Error("centring and back changes the bias")
		}
	}
}

// On more rows than one goroutine adds up, the gradient is that of F, whatever the number of workers.
func TestLogisticGradient(t *testing.T) {
	emb, classes := mixture(logisticRows+700, 6, 3, 1)
	p, err := NewProber(emb, 6, classes)
	if err != nil {
		t.Fatal(err)
	}
	l := newLogistic(p.unit, p.dim, p.label, len(p.names), p.nodes, 3)
	l.lambda = 0.01
	at := l.parameters()
	for i := range at {
		at[i] += math.Sin(float64(i))
	}
	g, scratch := make([]float64, len(at)), make([]float64, len(at))
	f := l.objective(at, g)
	_, loss := l.score(at, p.nodes)
	want := loss / float64(len(p.nodes))
	for _, w := range at[:l.classes*l.dim] {
		want += l.lambda * w * w / 2
	}
	if math.Abs(f-want) > 1e-5 {
		t.Errorf("F is %g, the loss of all rows and the weights' squares make it %g", f, want)
	}
	for i, want := range g {
		const h = 1e-3
		moved := slices.Clone(at)
		moved[i] += h
		up := l.objective(moved, scratch)
		moved[i] -= 2 * h
		if got := (up - l.objective(moved, scratch)) / (2 * h); math.Abs(got-want) > 1e-4 {
			t.Errorf("parameter %d: gradient %g, F says %g", i, want, got)
		}
	}
	l.workers = 1
	if again := l.objective(at, scratch); again != f || !slices.Equal(scratch, g) {
		t.Errorf("F is %v with one worker, %v with three", again, f)
	}
}

func TestProbeOfGroups(t *testing.T) {
	emb, classes := mixture(600, 8, 3, 1.5)
	group := make([]uint8, 600)
	for i := range group {
		group[i] = uint8(i % 3 / 2) // two thirds, one third
	}
	p, err := NewProber(emb, 8, classes)
	if err != nil {
		t.Fatal(err)
	}
	whole, parts, err := p.Probe(group, 3, ProbeOptions{Fraction: 0.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	low, high := min(parts[0].Accuracy, parts[1].Accuracy), max(parts[0].Accuracy, parts[1].Accuracy)
	asked := parts[0].Nodes + parts[1].Nodes // of 600 nodes, half of them five times
	if asked <= 300 || asked > 600 || whole.Accuracy < low || whole.Accuracy > high {
		t.Errorf("all %+v, groups %+v", whole, parts)
	}
	if _, once, err := p.Probe(group, 3, ProbeOptions{Fraction: 0.5, Seed: 1, Repeats: 1}); err != nil ||
		once[0].Nodes+once[1].Nodes != 300 {
		t.Errorf("half of 600 nodes are asked about once: %+v, %v", once, err)
	}
	if parts[2] != (ClassMetrics{}) {
		t.Errorf("an empty group has figures: %+v", parts[2])
	}
	again, same, err := p.Probe(group, 3, ProbeOptions{Fraction: 0.5, Seed: 1, Workers: 3})
	if err != nil || again != whole || !slices.Equal(same, parts) {
		t.Errorf("with 3 workers %+v %+v, want %+v %+v", again, same, whole, parts)
	}
}

func TestProbeBetweenNodes(t *testing.T) {
	g := graphtest.Topics(400, 4, 4, 1)
	g.Classes[399] = ""
	p, err := NewProber(topicVectors(g, 4), 4, g.Classes)
	if err != nil {
		t.Fatal(err)
	}
	var train, test []int32
	for i := range int32(400) {
		if i < 300 {
			train = append(train, i)
		} else {
			test = append(test, i)
		}
	}
	m, err := p.ProbeUnseen(train, test, 1, 1)
	if err != nil || m.Nodes != 99 || m.Accuracy < 0.99 {
		t.Errorf("%+v, %v; want 99 nodes, all right", m, err)
	}
	if m, err := p.ProbeUnseen(nil, test, 1, 1); err == nil {
		t.Errorf("nothing to learn from: %+v", m)
	}
	if m, err := p.ProbeUnseen(train, test[:MinCases-1], 1, 1); err == nil || m.Nodes != MinCases-1 {
		t.Errorf("%d nodes to ask about: %+v, %v", MinCases-1, m, err)
	}
}
