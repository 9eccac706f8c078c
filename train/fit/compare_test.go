package fit

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/linear"
	"giantstream/train/lsa"
)

const labelDim = 256

// texts is what is fitted on texts alone, and so is the same for every split.
type texts struct {
	vectorizer *tfidf.Model
	features   *sparse.Matrix
	projection *projection.Projection
	projected  []float32
}

func fitTexts(t testing.TB, g *train.Graph, rank int) texts {
	t.Helper()
	f, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	f.AddAll(g.Texts, 0)
	x := texts{}
	if x.vectorizer, err = f.Fit(); err != nil {
		t.Fatal(err)
	}
	x.features = x.vectorizer.TransformAll(g.Texts, 0)
	if x.projection, err = projection.Fit(x.features, rank, projection.Options{}); err != nil {
		t.Fatal(err)
	}
	x.projected = x.projection.ApplyAll(x.features, 0)
	return x
}

// inputs adds what depends on the edges.
func (x texts) inputs(t testing.TB, g *train.Graph, dim int) Inputs {
	t.Helper()
	rank := x.projection.Dim()
	dim = min(dim, rank)
	sketch := make([]float32, 0, g.Len()*dim)
	for i := range g.Len() {
		sketch = append(sketch, x.projected[i*rank:i*rank+dim]...)
	}
	s, err := pifa.FromGraph(sketch, dim, g.Neighbours, pifa.Sum, 0)
	if err != nil {
		t.Fatal(err)
	}
	labels := s.Normalized()
	features, err := labeltree.Dense(labels, dim)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := labeltree.Build(features, labeltree.Options{MaxLeafSize: LeafSize})
	if err != nil {
		t.Fatal(err)
	}
	return Inputs{
		Graph: g, Vectorizer: x.vectorizer, Features: x.features, Projection: x.projection,
		Projected: func(i int, out []float32) { copy(out, x.projected[i*rank:(i+1)*rank]) }, Labels: labels, LabelDim: dim, Tree: tree,
	}
}

func encode(t testing.TB, e train.Encoder, texts []string) []float32 {
	t.Helper()
	out := make([]float32, len(texts)*e.Dim())
	if err := e.Encode(texts, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// stats is a mean and standard deviation over splits.
type stats []float64

func (s stats) String() string {
	var sum, squares float64
	for _, v := range s {
		sum += v
		squares += v * v
	}
	n := float64(len(s))
	mean := sum / n
	return fmt.Sprintf("%.4f ± %.4f", mean, math.Sqrt(max(0, squares/n-mean*mean)*n/max(1, n-1)))
}

// TestGraphBeatsText needs no data: on a graph whose texts are mostly filler,
// what the links teach must show on links that were hidden.
func TestGraphBeatsText(t *testing.T) {
	g := graphtest.Topics(1000, 4, 12, 1)
	known, hidden := eval.Split(g, 0.1, 1)
	x := fitTexts(t, g, 32)
	in := x.inputs(t, known, 16)
	r, err := Bag(t.Context(), in, bag.Options{Seed: 1}, bag.Checkpoints{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	auc := func(emb []float32) float64 {
		m, err := eval.Links(emb, in.LabelDim, known, hidden, eval.LinkOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m.AUC
	}
	text := auc(lsa.Truncate(x.projected, x.projection.Dim(), in.LabelDim))
	lin, trained := auc(encode(t, r.Start, g.Texts)), auc(encode(t, r.Encoder, g.Texts))
	t.Logf("AUC: text %.3f, linear %.3f, bag %.3f", text, lin, trained)
	if lin < text+0.1 || trained < text+0.1 {
		t.Errorf("AUC of linear %.3f, of the bag %.3f; of text alone %.3f", lin, trained, text)
	}
}

func TestEncoderAgreesWithTrainingFeatures(t *testing.T) {
	g := graphtest.Topics(300, 3, 8, 1)
	x := fitTexts(t, g, 16)
	r, err := Bag(t.Context(), x.inputs(t, g, 16), bag.Options{Epochs: 1}, bag.Checkpoints{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	alone := make([]float32, r.Encoder.Dim())
	all := encode(t, r.Encoder, g.Texts)
	if !slices.Equal(all, r.Encoder.Model().EmbedAll(x.features, 1)) {
		t.Error("texts and their features give different embeddings")
	}
	for i := range 20 {
		if err := r.Encoder.Encode(g.Texts[i:i+1], alone); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(alone, all[i*len(alone):(i+1)*len(alone)]) {
			t.Errorf("text %d has another embedding alone than among others", i)
		}
	}
}

// TestSameBitsOnAnyNumberOfCPUs goes through every stage, the linear algebra
// library's own goroutines included.
func TestSameBitsOnAnyNumberOfCPUs(t *testing.T) {
	g := graphtest.Topics(600, 4, 10, 1)
	var want []float32
	for _, cpus := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(cpus)
		r, err := Bag(t.Context(), fitTexts(t, g, 200).inputs(t, g, 130), bag.Options{Seed: 1, Epochs: 2}, bag.Checkpoints{}, nil)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		got := encode(t, r.Encoder, g.Texts)
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("%d CPUs give other embeddings than one", cpus)
		}
	}
}

// TestAmazonLinks is the comparison of the README: 10 % of the edges hidden,
// several splits.
func TestAmazonLinks(t *testing.T) {
	g := graphtest.Shared(t, "amazon-products")
	if testing.Short() {
		t.Skip("trains for a minute")
	}
	seeds := 1
	if os.Getenv("GIANTSTREAM_LONG") != "" {
		seeds = 5
	}
	x := fitTexts(t, g, 512)
	auc := map[string]stats{}
	mrr := map[string]stats{}
	hits := map[string]stats{}
	for seed := range uint64(seeds) {
		known, hidden := eval.Split(g, 0.1, seed+1)
		in := x.inputs(t, known, labelDim)
		began := time.Now()
		r, err := Bag(t.Context(), in, bag.Options{Seed: seed + 1}, bag.Checkpoints{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("split %d: %d hidden, trained in %.1f s; linear %+v; bag %+v", seed+1, len(hidden), time.Since(began).Seconds(), r.StartReport, r.Report)
		for _, e := range []struct {
			name string
			emb  []float32
		}{
			{"lsa", lsa.Truncate(x.projected, x.projection.Dim(), labelDim)},
			{"linear", encode(t, r.Start, g.Texts)},
			{"bag", r.Encoder.Model().EmbedAll(x.features, 0)},
		} {
			m, err := eval.Links(e.emb, labelDim, known, hidden, eval.LinkOptions{Seed: seed + 1})
			if err != nil {
				t.Fatal(err)
			}
			auc[e.name] = append(auc[e.name], m.AUC)
			mrr[e.name] = append(mrr[e.name], m.MRR)
			hits[e.name] = append(hits[e.name], m.Hits10)
		}
		if lin, bag := auc["linear"][seed], auc["bag"][seed]; bag < lin+0.02 {
			t.Errorf("split %d: AUC of the bag %.4f does not beat linear's %.4f by 0.02", seed+1, bag, lin)
		}
		if text, lin := auc["lsa"][seed], auc["linear"][seed]; lin < text+0.1 {
			t.Errorf("split %d: AUC of linear %.4f, of LSA %.4f", seed+1, lin, text)
		}
	}
	for _, e := range []string{"lsa", "linear", "bag"} {
		t.Logf("%-6s  AUC %v  MRR %v  Hits@10 %v  (%d splits)", e, auc[e], mrr[e], hits[e], seeds)
	}
}

// TestDebianSections probes the archive section of Debian packages.
func TestDebianSections(t *testing.T) {
	if os.Getenv("GIANTSTREAM_LONG") == "" {
		t.Skip("takes minutes; set GIANTSTREAM_LONG=1")
	}
	g := graphtest.Shared(t, "debian-packages")
	began := time.Now()
	lap := func(what string) {
		t.Logf("%5.1f s %s", time.Since(began).Seconds(), what)
		began = time.Now()
	}
	x := fitTexts(t, g, 512)
	lap("texts")
	in := x.inputs(t, g, labelDim)
	lap("PIFA and tree")
	_, _, err := Linear(t.Context(), in, linear.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	lap("linear")
	r, err := Bag(t.Context(), in, bag.Options{Seed: 1}, bag.Checkpoints{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	lap("linear and bag")
	t.Logf("linear %+v; bag %+v", r.StartReport, r.Report)
	bagged := r.Encoder.Model().EmbedAll(x.features, 0)
	lap("embed")
	encoded := encode(t, r.Start, g.Texts)
	lap("encode (linear)")
	for _, rate := range []float64{0.1, 0.6} {
		accuracy := map[string]float64{}
		for _, e := range []struct {
			name string
			emb  []float32
		}{{"lsa", lsa.Truncate(x.projected, x.projection.Dim(), labelDim)}, {"linear", encoded}, {"bag", bagged}} {
			m, err := eval.Probe(e.emb, labelDim, g.Classes, eval.ProbeOptions{Fraction: rate, Seed: 1, Repeats: 3})
			if err != nil {
				t.Fatal(err)
			}
			accuracy[e.name] = m.Accuracy
			lap(fmt.Sprintf("%s at %.0f %%: %+v", e.name, 100*rate, m))
		}
		if accuracy["bag"] <= accuracy["lsa"] {
			t.Errorf("at %.0f %% of the labels the bag has %.4f, LSA %.4f", 100*rate, accuracy["bag"], accuracy["lsa"])
		}
	}
}
