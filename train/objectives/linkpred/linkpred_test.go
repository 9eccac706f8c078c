package linkpred

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"giantstream/internal/graphdir"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
)

const (
	testDim = 12
	words   = graphtest.Words(512)
)

// table is a bag in training and its model.
type table struct {
	*bag.Network
	model *bag.Model
}

// newBag starts a bag for g's texts at random vectors.
func newBag(t testing.TB, g *train.Graph, o bag.NetworkOptions) table {
	t.Helper()
	features, vectors := make([]int32, 512), make([]float32, 512*testDim)
	r := numeric.NewRand(1)
	for f := range features {
		features[f] = int32(f)
	}
	for i := range vectors {
		vectors[i] = float32(r.Float64() - 0.5)
	}
	m, err := bag.NewModel(features, vectors, 512, testDim)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bag.NewNetwork(words.Matrix(g.Texts...), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return table{b, m}
}

// graphOf is a graph with all nodes as anchors.
func graphOf(g *train.Graph) Graph {
	out := Graph{Neighbours: g.Neighbours, Keys: numeric.Keys(g.IDs)}
	for i := range g.Len() {
		out.Anchors = append(out.Anchors, int32(i))
	}
	return out
}

// links is the AUC of g's hidden edges under b.
func links(t testing.TB, b table, known *train.Graph, hidden []eval.Edge) float64 {
	t.Helper()
	e, err := bag.NewEncoder(words, b.model)
	if err != nil {
		t.Fatal(err)
	}
	z := make([]float32, known.Len()*testDim)
	if err := e.Encode(known.Texts, z); err != nil {
		t.Fatal(err)
	}
	m, err := eval.Links(z, testDim, known, hidden, eval.LinkOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m.AUC
}

func TestHiddenLinksArePredicted(t *testing.T) {
	known, hidden := eval.Split(graphtest.Topics(600, 4, 10, 1), 0.1, 1)
	b := newBag(t, known, bag.NetworkOptions{Keep: 0.8})
	before := links(t, b, known, hidden)
	r, err := Train(t.Context(), b, graphOf(known), Options{Epochs: 15, Rate: 0.05}, trainer.Hooks{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := links(t, b, known, hidden)
	t.Logf("AUC of hidden links %.3f before training, %.3f after; loss %.3f to %.3f", before, after,
		r.Epochs[0].Loss, r.Epochs[14].Loss)
	if after < before+0.15 {
		t.Errorf("AUC of hidden links %.3f before training, %.3f after; want 0.15 more", before, after)
	}
	if r.Instances == 0 || r.Epochs[14].Loss > 0.7*r.Epochs[0].Loss {
		t.Errorf("report %+v, want the loss down by a third", r)
	}
}

func TestSameBitsForAnyNumberOfWorkers(t *testing.T) {
	g := graphtest.Topics(200, 4, 8, 1)
	var want []float32
	for _, workers := range []int{1, 2, 5} {
		b := newBag(t, g, bag.NetworkOptions{Workers: workers})
		if _, err := Train(t.Context(), b, graphOf(g), Options{Epochs: 2, Rate: 0.05}, trainer.Hooks{}, nil); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = b.model.Vectors()
		} else if !slices.Equal(b.model.Vectors(), want) {
			t.Errorf("%d workers give other vectors than one", workers)
		}
	}
}

// The network ends with the weights that scored best, and training with
// them once nothing better has come for Patience epochs.
func TestBestWeightsAreKept(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	for name, c := range map[string]struct {
		scores         []float64
		best, epochs   int
		patience, most int
	}{
		"the second epoch":  {[]float64{0.5, 0.6, 0.8, 0.7, 0.7}, 2, 4, 2, 9},
		"the start":         {[]float64{0.5, 0.4, 0.3}, 0, 2, 2, 9},
		"the last":          {[]float64{0.5, 0.6, 0.7}, 2, 2, 1, 2},
		"better after once": {[]float64{0.5, 0.4, 0.7, 0.6, 0.6}, 2, 4, 2, 9},
	} {
		b := newBag(t, g, bag.NetworkOptions{})
		var seen [][]float32
		validate := func(context.Context, trainer.Embed) (float64, error) {
			seen = append(seen, slices.Clone(b.model.Vectors()))
			return c.scores[len(seen)-1], nil
		}
		r, err := Train(t.Context(), b, graphOf(g), Options{Epochs: c.most, Patience: c.patience, Rate: 0.05},
			trainer.Hooks{Validate: validate}, nil)
		if err != nil {
			t.Fatal(err)
		}
		best := 0
		for k, e := range r.Epochs {
			if e.Step == r.Step {
				best = k + 1
			}
		}
		if best != c.best || len(r.Epochs) != c.epochs || r.Scores[0].Score != 0.5 {
			t.Errorf("%s: report %+v, want epoch %d of %d", name, r, c.best, c.epochs)
		}
		if !slices.Equal(b.model.Vectors(), seen[c.best]) {
			t.Errorf("%s: the network does not end with the weights that scored best", name)
		}
	}
}

// TestGradientThroughTheTriplet compares the gradient that reaches the network
// with differences of the loss.
func TestGradientThroughTheTriplet(t *testing.T) {
	g := graphtest.Topics(60, 2, 6, 1)
	net := &probe{dim: 5}
	r := numeric.NewRand(3)
	net.vectors = make([]float32, 3*4*5)
	for i := range net.vectors {
		net.vectors[i] = float32(r.Float64() - 0.5)
	}
	tr := &triplets{net: net, Graph: Graph{Neighbours: g.Neighbours, Keys: numeric.Keys(g.IDs)},
		o: Options{Margin: 1.5}.withDefaults()}
	anchors := []int32{1, 2, 3, 4}
	if _, err := tr.part(anchors, 0, len(anchors)); err != nil {
		t.Fatal(err)
	}
	got := slices.Clone(net.grad)
	loss := func() float64 {
		sum, err := tr.part(anchors, 0, len(anchors))
		if err != nil {
			t.Fatal(err)
		}
		return sum / float64(len(anchors))
	}
	for i, x := range net.vectors {
		const eps = 1e-3
		net.vectors[i] = x + eps
		more := loss()
		net.vectors[i] = x - eps
		less := loss()
		net.vectors[i] = x
		if want := (more - less) / (2 * eps); math.Abs(want-float64(got[i])) > 1e-3 {
			t.Errorf("gradient %d is %.5f, the difference %.5f", i, got[i], want)
		}
	}
}

// probe is a network whose vectors are given, whatever the instances.
type probe struct {
	dim           int
	vectors, grad []float32
}

func (p *probe) Dim() int    { return p.dim }
func (*probe) MaxBatch() int { return 0 }
func (p *probe) Forward(_ []int32, _ []uint64, out []float32) error {
	copy(out, p.vectors)
	return nil
}
func (p *probe) Backward(grad []float32) error { p.grad = slices.Clone(grad); return nil }
func (*probe) Update(float64) (float64, error) { return 0, nil }
func (*probe) WriteState(io.Writer) error      { return nil }
func (*probe) ReadState(io.Reader) error       { return nil }

func TestFaultsAreReported(t *testing.T) {
	nodes := graphtest.Topics(60, 2, 6, 1)
	g := graphOf(nodes)
	broken := errors.New("no disk")
	for name, c := range map[string]struct {
		g        Graph
		o        Options
		validate trainer.Validate
		want     error
	}{
		"no anchors": {Graph{Neighbours: g.Neighbours}, Options{}, nil, ErrEmpty},
		"no links": {Graph{Neighbours: graphdir.Undirected(3, nil), Anchors: []int32{0, 1}}, Options{}, nil,
			ErrEmpty},
		"validation fails": {g, Options{}, func(context.Context, trainer.Embed) (float64, error) {
			return 0,
				broken
		}, broken},
		"score is no number": {g, Options{}, func(context.Context, trainer.Embed) (float64,
			error) {
			return math.NaN(), nil
		}, train.ErrDiverged},
		"rate far too high": {g, Options{Rate: 1e38, Epochs: 20}, nil, train.ErrDiverged},
	} {
		if _, err := Train(t.Context(), newBag(t, nodes, bag.NetworkOptions{}), c.g, c.o,
			trainer.Hooks{Validate: c.validate}, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for name, o := range map[string]Options{"epochs": {Epochs: -1}, "rate": {Rate: math.NaN()}, "margin": {Margin: -1}} {
		if _, err := Train(t.Context(), newBag(t, nodes, bag.NetworkOptions{}), g, o, trainer.Hooks{}, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Train(ctx, newBag(t, nodes, bag.NetworkOptions{}), g, Options{}, trainer.Hooks{},
		nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
