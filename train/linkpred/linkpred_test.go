package linkpred

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"giantstream/featurize/graphdir"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/internal/rng"
)

const (
	testDim = 12
	words   = graphtest.Words(512)
)

// newBag starts a bag at random vectors.
func newBag(t testing.TB, o bag.NetworkOptions) *bag.Network {
	t.Helper()
	features, vectors := make([]int32, 512), make([]float32, 512*testDim)
	r := rng.New(1)
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
	b, err := bag.NewNetwork(words, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func vectors(t testing.TB, b *bag.Network) []float32 {
	t.Helper()
	e, err := b.Encoder()
	if err != nil {
		t.Fatal(err)
	}
	return e.Model().Vectors()
}

// graphOf is a graph with all nodes as anchors.
func graphOf(g *train.Graph) Graph {
	out := Graph{Neighbours: g.Neighbours, Text: func(i int) (string, error) { return g.Texts[i], nil }}
	for i := range g.Len() {
		out.Anchors = append(out.Anchors, int32(i))
	}
	return out
}

// links is the AUC of g's hidden edges under b.
func links(t testing.TB, b *bag.Network, known *train.Graph, hidden []eval.Edge) float64 {
	t.Helper()
	e, err := b.Encoder()
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
	b := newBag(t, bag.NetworkOptions{Keep: 0.8})
	before := links(t, b, known, hidden)
	r, err := Train(t.Context(), b, graphOf(known), Options{Epochs: 15, Rate: 0.05}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := links(t, b, known, hidden)
	t.Logf("AUC of hidden links %.3f before training, %.3f after; loss %.3f to %.3f", before, after, r.Epochs[0].Loss, r.Epochs[14].Loss)
	if after < before+0.15 {
		t.Errorf("AUC of hidden links %.3f before training, %.3f after; want 0.15 more", before, after)
	}
	if r.Anchors == 0 || r.Epochs[14].Loss > 0.7*r.Epochs[0].Loss {
		t.Errorf("report %+v, want the loss down by a third", r)
	}
}

func TestSameBitsForAnyNumberOfWorkers(t *testing.T) {
	g := graphtest.Topics(200, 4, 8, 1)
	var want []float32
	for _, workers := range []int{1, 2, 5} {
		b := newBag(t, bag.NetworkOptions{Workers: workers})
		if _, err := Train(t.Context(), b, graphOf(g), Options{Epochs: 2, Rate: 0.05}, nil, nil); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = vectors(t, b)
		} else if !slices.Equal(vectors(t, b), want) {
			t.Errorf("%d workers give other vectors than one", workers)
		}
	}
}

// The network ends with the weights that were judged best, and training with
// them once nothing better has come for Patience epochs.
func TestBestWeightsAreKept(t *testing.T) {
	g := graphOf(graphtest.Topics(100, 2, 8, 1))
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
		b := newBag(t, bag.NetworkOptions{})
		var seen [][]float32
		judge := func(context.Context) (float64, error) {
			seen = append(seen, slices.Clone(vectors(t, b)))
			return c.scores[len(seen)-1], nil
		}
		r, err := Train(t.Context(), b, g, Options{Epochs: c.most, Patience: c.patience, Rate: 0.05}, judge, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Best != c.best || len(r.Epochs) != c.epochs || r.Start != 0.5 {
			t.Errorf("%s: report %+v, want epoch %d of %d", name, r, c.best, c.epochs)
		}
		if !slices.Equal(vectors(t, b), seen[c.best]) {
			t.Errorf("%s: the network does not end with the weights judged best", name)
		}
	}
}

// TestGradientThroughTheTriplet compares the gradient that reaches the network
// with differences of the loss.
func TestGradientThroughTheTriplet(t *testing.T) {
	g := graphtest.Topics(60, 2, 6, 1)
	net := &probe{dim: 5}
	r := rng.New(3)
	net.vectors = make([]float32, 3*4*5)
	for i := range net.vectors {
		net.vectors[i] = float32(r.Float64() - 0.5)
	}
	tr := &trainer{net: net, g: graphOf(g), o: Options{Margin: 1.5}.withDefaults(),
		z: make([]float32, 3*piece*5), dz: make([]float32, 3*piece*5)}
	anchors := []int32{1, 2, 3, 4}
	if _, err := tr.piece(anchors, 0, len(anchors)); err != nil {
		t.Fatal(err)
	}
	got := slices.Clone(net.grad)
	loss := func() float64 {
		sum, err := tr.piece(anchors, 0, len(anchors))
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

// probe is a network whose vectors are given, whatever the texts.
type probe struct {
	dim           int
	vectors, grad []float32
}

func (p *probe) Dim() int { return p.dim }
func (p *probe) Forward(_ []string, _ []uint64, out []float32) error {
	copy(out, p.vectors)
	return nil
}
func (p *probe) Backward(grad []float32) error { p.grad = slices.Clone(grad); return nil }
func (*probe) Update(float64) (float64, error) { return 0, nil }
func (*probe) WriteState(io.Writer) error      { return nil }
func (*probe) ReadState(io.Reader) error       { return nil }

func TestFaultsAreReported(t *testing.T) {
	g := graphOf(graphtest.Topics(60, 2, 6, 1))
	broken := errors.New("no disk")
	unreadable := g
	unreadable.Text = func(int) (string, error) { return "", broken }
	for name, c := range map[string]struct {
		g     Graph
		o     Options
		judge Judge
		want  error
	}{
		"no anchors":        {Graph{Neighbours: g.Neighbours}, Options{}, nil, ErrEmpty},
		"no links":          {Graph{Neighbours: graphdir.Undirected(3, nil), Anchors: []int32{0, 1}}, Options{}, nil, ErrEmpty},
		"text unreadable":   {unreadable, Options{}, nil, broken},
		"judge fails":       {g, Options{}, func(context.Context) (float64, error) { return 0, broken }, broken},
		"judge is no help":  {g, Options{}, func(context.Context) (float64, error) { return math.NaN(), nil }, ErrDiverged},
		"rate far too high": {g, Options{Rate: 1e38, Epochs: 20}, nil, ErrDiverged},
	} {
		if _, err := Train(t.Context(), newBag(t, bag.NetworkOptions{}), c.g, c.o, c.judge, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for name, o := range map[string]Options{"epochs": {Epochs: -1}, "rate": {Rate: math.NaN()}, "margin": {Margin: -1}} {
		if _, err := Train(t.Context(), newBag(t, bag.NetworkOptions{}), g, o, nil, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Train(ctx, newBag(t, bag.NetworkOptions{}), g, Options{}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
