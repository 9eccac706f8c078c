package xrt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"testing"

	"giantstream/featurize/artifact"
	"giantstream/featurize/labeltree"
	"giantstream/featurize/targets"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/internal/optim"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
	"giantstream/train/xmc"
)

// words is the smallest Network: a text's pooled vector is the mean of its
// words' vectors, a word's vector a row of a table that it is hashed to.
type words struct {
	dim                       int
	table, grad, mean, square []float32
	step                      int64
	rows                      [][]int
}

const tableRows = 1024

func newWords(dim int, seed uint64) *words {
	n := tableRows * dim
	w := &words{dim: dim, table: make([]float32, n), grad: make([]float32, n), mean: make([]float32, n), square: make([]float32, n)}
	r := rng.New(seed)
	for i := range w.table {
		w.table[i] = float32(r.Float64() - 0.5)
	}
	return w
}

func (w *words) Dim() int { return w.dim }

// Forward drops a tenth of the words of a text with a seed.
func (w *words) Forward(texts []string, seeds []uint64, out []float32) error {
	w.rows = w.rows[:0]
	clear(out)
	for i, t := range texts {
		var rows []int
		var r rng.Source
		if seeds != nil {
			r = rng.New(seeds[i])
		}
		for word := range bytes.FieldsSeq([]byte(t)) {
			if seeds != nil && r.Float64() < 0.1 {
				continue
			}
			rows = append(rows, int(rng.String(string(word))%tableRows))
		}
		for _, r := range rows {
			vector.Axpy(1/float32(len(rows)), w.table[r*w.dim:(r+1)*w.dim], out[i*w.dim:(i+1)*w.dim])
		}
		w.rows = append(w.rows, rows)
	}
	return nil
}

func (w *words) Backward(grad []float32) error {
	for i, rows := range w.rows {
		for _, r := range rows {
			vector.Axpy(1/float32(len(rows)), grad[i*w.dim:(i+1)*w.dim], w.grad[r*w.dim:(r+1)*w.dim])
		}
	}
	return nil
}

func (w *words) Update(rate float64) (float64, error) {
	w.step++
	optim.Adam(w.table, w.mean, w.square, w.grad, optim.Rate(rate, w.step))
	norm := math.Sqrt(float64(vector.Dot(w.grad, w.grad)))
	clear(w.grad)
	return norm, nil
}

func (w *words) WriteState(to io.Writer) error {
	for _, v := range []any{w.step, w.table, w.mean, w.square} {
		if err := binary.Write(to, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	return nil
}

func (w *words) ReadState(from io.Reader) error {
	for _, v := range []any{&w.step, w.table, w.mean, w.square} {
		if err := binary.Read(from, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	return nil
}

// list is a Source in memory.
type list struct {
	examples []Example
	seed     uint64
}

func (l list) Instances() int64 { return int64(len(l.examples)) }

func (l list) Epoch(_ context.Context, epoch int, skip int64) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		r := rng.New(l.seed, uint64(epoch))
		for _, i := range r.Perm(len(l.examples))[skip:] {
			if !yield(l.examples[i], nil) {
				return
			}
		}
	}
}

// problem clusters the nodes of g by the mean vector of their neighbours'
// texts under net, and gives each node its targets.
func problem(t testing.TB, g *train.Graph, net Network, clusters ...int) (list, []xmc.Level) {
	t.Helper()
	d := net.Dim()
	z := make([]float32, g.Len()*d)
	if err := net.Forward(g.Texts, nil, z); err != nil {
		t.Fatal(err)
	}
	labels := make([]float32, len(z))
	for i := range g.Len() {
		for _, j := range g.Neighbours.Row(i).Index {
			vector.Axpy(1, z[int(j)*d:int(j+1)*d], labels[i*d:(i+1)*d])
		}
		vector.Normalize(labels[i*d : (i+1)*d])
	}
	features, err := labeltree.Dense(labels, d)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := labeltree.Build(features, labeltree.Options{Levels: clusters})
	if err != nil {
		t.Fatal(err)
	}
	src := list{seed: 1}
	for i := range g.Len() {
		if labels := g.Neighbours.Row(i).Index; len(labels) > 0 {
			e := Example{Text: g.Texts[i]}
			e.Targets, e.Counts = targets.Of(tree, labels)
			src.examples = append(src.examples, e)
		}
	}
	var levels []xmc.Level
	for l := range tree.Levels() {
		level := xmc.Level{Clusters: tree.Clusters(l)}
		for c := range tree.Clusters(l) {
			if l > 0 {
				level.Parent = append(level.Parent, tree.Parent(l, int32(c)))
			}
		}
		levels = append(levels, level)
	}
	return src, levels
}

// separation says how much nearer nodes of the same class are under net than
// others: the judge of these tests.
func separation(g *train.Graph, dim, nodes int) func(context.Context, func([]string, []float32) error) (float64, error) {
	return func(_ context.Context, embed func([]string, []float32) error) (float64, error) {
		z := make([]float32, nodes*dim)
		if err := embed(g.Texts[:nodes], z); err != nil {
			return 0, err
		}
		var sum [2]float64
		var count [2]float64
		for i := range nodes {
			for j := range i {
				same := 0
				if g.Classes[i] == g.Classes[j] {
					same = 1
				}
				sum[same] += float64(vector.Dot(z[i*dim:(i+1)*dim], z[j*dim:(j+1)*dim]))
				count[same]++
			}
		}
		return sum[1]/count[1] - sum[0]/count[0], nil
	}
}

const testDim = 12

func TestTrainingLearnsNeighbourhoods(t *testing.T) {
	g := graphtest.Topics(600, 4, 10, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 1, 4, 16)
	for name, o := range map[string]Options{
		"joint":                      {},
		"coarse to fine":             {Schedule: CoarseToFine},
		"squared hinge":              {Heads: xmc.Options{Loss: xmc.SquaredHinge}},
		"cross-entropy, raw vectors": {Heads: xmc.Options{Loss: xmc.CrossEntropy}, Raw: true},
		"inherited heads":            {Schedule: CoarseToFine, Start: Inherit, Heads: xmc.Options{Clip: 1, Decay: 0.01}},
		"random heads":               {Start: Random, Epochs: 12},
		"heads at centroids":         {Start: Centroid, Heads: xmc.Options{Scale: 5}},
		"classifiers as heads":       {Schedule: CoarseToFine, Start: Linear, Heads: xmc.Options{Loss: xmc.SquaredHinge}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Rate, o.Epochs, o.Batch = 0.01, max(o.Epochs, 8), 32
			net := newWords(testDim, 1)
			r, err := Train(t.Context(), net, src, levels, o, Hooks{Judge: separation(g, testDim, 120)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			first, best := r.Report.Judged[0].Score, -1.0
			for _, j := range r.Report.Judged {
				best = max(best, j.Score)
			}
			if best < first+0.1 {
				t.Errorf("same topic nearer by %.3f before training and %.3f at best", first, best)
			}
			if r.Report.Level < 1 || len(r.Report.Curve) == 0 || len(r.Matcher.Weights) != 2 {
				t.Errorf("report %+v", r.Report)
			}
			// The network holds the weights that were judged best.
			again, err := separation(g, testDim, 120)(t.Context(), (&trainer{net: net}).embed)
			if err != nil || again != best {
				t.Errorf("the returned weights score %.6f, the best ones %.6f (%v)", again, best, err)
			}
		})
	}
}

type outcome struct {
	table []float32
	heads [][]float32
	best  int64
}

func (a outcome) same(b outcome) bool {
	ok := slices.Equal(a.table, b.table) && a.best == b.best
	for l := range a.heads {
		ok = ok && slices.Equal(a.heads[l], b.heads[l])
	}
	return ok
}

func fit(t testing.TB, src Source, levels []xmc.Level, o Options, h Hooks) outcome {
	t.Helper()
	net := newWords(testDim, 1)
	r, err := Train(t.Context(), net, src, levels, o, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outcome{net.table, r.Matcher.Weights, r.Report.Step}
}

func TestSameBitsForAnyNumberOfWorkers(t *testing.T) {
	g := graphtest.Topics(300, 4, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 16, 256)
	want := fit(t, src, levels, Options{Epochs: 1, Workers: 1}, Hooks{})
	for _, workers := range []int{2, 5} {
		if !fit(t, src, levels, Options{Epochs: 1, Workers: workers}, Hooks{}).same(want) {
			t.Errorf("%d workers give other weights than one", workers)
		}
	}
}

// TestResumeAfterAnyStep stops a run after each of its steps and continues
// from the saved bytes.
func TestResumeAfterAnyStep(t *testing.T) {
	g := graphtest.Topics(150, 3, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4, 16)
	for name, o := range map[string]Options{
		"joint":                       {Epochs: 3, Batch: 50, Rate: 0.01},
		"coarse to fine":              {Epochs: 5, Batch: 40, Rate: 0.01, Schedule: CoarseToFine, Patience: 1},
		"batches as long as an epoch": {Steps: []int64{3}, Batch: 150, Rate: 0.01},
	} {
		for _, judge := range []func(context.Context, func([]string, []float32) error) (float64, error){nil, separation(g, testDim, 60)} {
			var saved [][]byte
			want := fit(t, src, levels, o, Hooks{
				Judge: judge,
				Due:   func(int64) bool { return true },
				Save: func(_ context.Context, step int64, s io.WriterTo) error {
					var b bytes.Buffer
					n, err := s.WriteTo(&b)
					if n != int64(b.Len()) || step != int64(len(saved)+1) {
						t.Errorf("checkpoint %d is of step %d; it says %d bytes, wrote %d", len(saved)+1, step, n, b.Len())
					}
					saved = append(saved, b.Bytes())
					return err
				},
			})
			if len(saved) < 3 {
				t.Fatalf("%s: %d checkpoints", name, len(saved))
			}
			for k, b := range saved {
				if !fit(t, src, levels, o, Hooks{Judge: judge, Resume: bytes.NewReader(b)}).same(want) {
					t.Errorf("%s: resumed after step %d of %d, the weights differ", name, k+1, len(saved))
				}
			}
		}
	}
}

func TestCheckpointOfAnotherRunIsRefused(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4)
	var b bytes.Buffer
	fit(t, src, levels, Options{Epochs: 1, Seed: 1}, Hooks{
		Due:  func(step int64) bool { return step == 1 },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error { _, err := s.WriteTo(&b); return err },
	})
	for name, c := range map[string]struct {
		b    []byte
		o    Options
		want error
	}{
		"other seed":   {b.Bytes(), Options{Epochs: 1, Seed: 2}, ErrOtherRun},
		"cut short":    {b.Bytes()[:b.Len()-9], Options{Epochs: 1, Seed: 1}, artifact.ErrCorrupt},
		"other format": {append([]byte("GSSTRANG"), b.Bytes()[8:]...), Options{Epochs: 1, Seed: 1}, artifact.ErrUnknown},
	} {
		_, err := Train(t.Context(), newWords(testDim, 1), src, levels, c.o, Hooks{Resume: bytes.NewReader(c.b)}, nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestUntrainedWeightsAreKeptIfTheyScoreBest(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4)
	score := 1.0
	worse := func(context.Context, func([]string, []float32) error) (float64, error) { score--; return score, nil }
	net := newWords(testDim, 1)
	r, err := Train(t.Context(), net, src, levels, Options{Epochs: 9, Patience: 2}, Hooks{Judge: worse}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Report.Level != -1 || r.Report.Step != 0 || len(r.Report.Judged) != 3 {
		t.Errorf("report %+v, want the start kept and two epochs tried", r.Report)
	}
	if !slices.Equal(net.table, newWords(testDim, 1).table) {
		t.Error("the network does not have the weights it started with")
	}
}

func TestFaultsAreReported(t *testing.T) {
	g := graphtest.Topics(100, 2, 8, 1)
	src, levels := problem(t, g, newWords(testDim, 1), 4)
	broken := errors.New("no network")
	one := func(e Example) Source { return list{examples: []Example{e}} }
	for name, c := range map[string]struct {
		src    Source
		levels []xmc.Level
		o      Options
		want   error
	}{
		"no instances":         {list{}, levels, Options{}, ErrEmpty},
		"tree of one cluster":  {src, []xmc.Level{{Clusters: 1}}, Options{}, xmc.ErrNoLevels},
		"source fails":         {failing{src, broken}, levels, Options{}, broken},
		"too few levels":       {one(Example{}), levels, Options{}, ErrTargets},
		"cluster out of range": {one(Example{Targets: [][]int32{{4}}, Counts: [][]int32{{1}}}), levels, Options{}, ErrTargets},
		"clusters not sorted":  {one(Example{Targets: [][]int32{{2, 1}}, Counts: [][]int32{{1, 1}}}), levels, Options{}, ErrTargets},
		"counts missing":       {one(Example{Targets: [][]int32{{2}}, Counts: [][]int32{{}}}), levels, Options{}, ErrTargets},
		"rate far too high":    {src, levels, Options{Rate: 1e30, HeadRate: 1e30, Raw: true, Start: Random}, ErrDiverged},
	} {
		if _, err := Train(t.Context(), newWords(testDim, 1), c.src, c.levels, c.o, Hooks{}, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	for name, o := range map[string]Options{
		"negative batch": {Batch: -1}, "negative rate": {Rate: -1}, "warm-up above one": {Warmup: 2},
		"steps for another schedule": {Steps: []int64{1, 2}}, "no steps": {Steps: []int64{0}}, "no epochs": {Epochs: math.NaN()},
	} {
		if _, err := Train(t.Context(), newWords(testDim, 1), src, levels, o, Hooks{}, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Train(ctx, newWords(testDim, 1), src, levels, Options{}, Hooks{Due: func(int64) bool { cancel(); return false }}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// failing yields one example of a source, then an error.
type failing struct {
	Source
	err error
}

func (f failing) Epoch(ctx context.Context, epoch int, skip int64) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		for e := range f.Source.Epoch(ctx, epoch, skip) {
			if !yield(e, nil) {
				return
			}
			break
		}
		yield(Example{}, f.err)
	}
}

func TestRateRisesAndFalls(t *testing.T) {
	o := Options{Warmup: 0.2}.withDefaults(1)
	var got []float64
	for s := range int64(10) {
		got = append(got, math.Round(o.fraction(s, 10)*1000)/1000)
	}
	if want := []float64{0.333, 0.667, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125}; !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
}

func FuzzResume(f *testing.F) {
	g := graphtest.Topics(60, 2, 8, 1)
	src, levels := problem(f, g, newWords(2, 1), 4, 8)
	start := func(h Hooks) error {
		_, err := Train(f.Context(), newWords(2, 1), src, levels, Options{Steps: []int64{2}, Batch: 30}, h, nil)
		return err
	}
	err := start(Hooks{
		Judge: separation(g, 2, 10),
		Due:   func(int64) bool { return true },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error {
			var b bytes.Buffer
			_, err := s.WriteTo(&b)
			f.Add(b.Bytes())
			f.Add(b.Bytes()[:b.Len()/2])
			return err
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		net := newWords(2, 1)
		tr, err := newTrainer(net, src, levels, Options{Steps: []int64{2}, Batch: 30}, Hooks{Resume: bytes.NewReader(data)}, train.OrDiscard(nil))
		if err != nil {
			t.Fatal(err)
		}
		defer tr.close()
		err = tr.restore(bytes.NewReader(data))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := (*state)(tr).WriteTo(&again); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(again.Bytes(), data) {
			t.Error("a state that was read is written otherwise")
		}
	})
}
