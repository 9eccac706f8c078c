package fit

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"giantstream/featurize/labeltree"
	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
)

var rank, labelDim = dimensions()

// dimensions are those of the projection and of embeddings: half the default, since the comparison of encoders comes
// out the same, and the default's where a table is printed.
func dimensions() (projected, embedded int) {
	if os.Getenv("GIANTSTREAM_LONG") != "" {
		return 512, 256
	}
	return 256, 128
}

func resources() Resources {
	return Resources{Progress: ambient.OrDiscard(nil), Log: slog.New(slog.DiscardHandler), Now: time.Now}
}

// fitTexts runs the stages that need the texts alone, and so are the same for every split.
func fitTexts(t testing.TB, g *train.Graph, rank int, r Resources) Training {
	t.Helper()
	s := Settings{Profile: "default", MaxDegree: 1000, ProjectionDim: rank, Weighting: "sum",
		LabelFeatures: "pifa", Seed: 1}
	texts := NewTexts(r)
	order := make([]int32, g.Len())
	for i, text := range g.Texts {
		order[i] = int32(i)
		if err := texts.Append(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := texts.Arrange(order); err != nil {
		t.Fatal(err)
	}
	in := Inputs{Texts: texts}
	var err error
	if in.Vectorizer, err = Vectorizer(t.Context(), texts, s, r); err != nil {
		t.Fatal(err)
	}
	if in.Features, err = Vectorize(t.Context(), in.Vectorizer, texts, r); err != nil {
		t.Fatal(err)
	}
	if in.Projection, err = Projection(in.Features, s, r); err != nil {
		t.Fatal(err)
	}
	if in.Projected, err = Project(t.Context(), in.Projection, in.Features, r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(texts.Close(), in.Features.Close(), in.Projected.Close()) })
	return Training{Inputs: in, Settings: s, Resources: r, Journal: NoJournal{}}
}

// cluster adds what depends on the edges of g.
func cluster(t testing.TB, x Training, g *train.Graph, dim int, r Resources) Training {
	t.Helper()
	x.Graph, x.Dim = g, min(dim, x.Projection.Dim())
	labels, _, err := LabelFeatures(g, x.Projected, x.Dim, x.Settings, r.Workers)
	if err != nil {
		t.Fatal(err)
	}
	features, err := labeltree.Dense(labels, x.Dim)
	if err != nil {
		t.Fatal(err)
	}
	x.Labels = labels
	if x.Tree, err = BuildTree(features, x.Settings, r.Workers); err != nil {
		t.Fatal(err)
	}
	return x
}

// trained trains an encoder, with another seed or number of epochs.
func trained(t testing.TB, kind string, x Training, seed uint64, epochs int) *Trained {
	t.Helper()
	x.Settings.Seed, x.Settings.Epochs = seed, epochs
	r, err := Train(t.Context(), kind, x)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func textOnly(t testing.TB, x Training, dim int) []float32 {
	t.Helper()
	vectors, err := EmbedText(x.Projected, dim, 0)
	if err != nil {
		t.Fatal(err)
	}
	return vectors
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
	x := cluster(t, fitTexts(t, g, 32, resources()), known, 16, resources())
	auc := func(emb []float32) float64 {
		m, err := eval.Links(emb, x.Dim, known, hidden, eval.LinkOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m.AUC
	}
	text := auc(textOnly(t, x, x.Dim))
	lin, bag := auc(encode(t, trained(t, "linear", x, 1, 0).Encoder, g.Texts)), auc(encode(t, trained(t, "bag",
		x, 1, 0).Encoder, g.Texts))
	t.Logf("AUC: text %.3f, linear %.3f, bag %.3f", text, lin, bag)
	if lin < text+0.1 || bag < text+0.1 {
		t.Errorf("AUC of linear %.3f, of the bag %.3f; of text alone %.3f", lin, bag, text)
	}
}

func TestEncoderAgreesWithTrainingFeatures(t *testing.T) {
	g := graphtest.Topics(300, 3, 8, 1)
	x := cluster(t, fitTexts(t, g, 16, resources()), g, 16, resources())
	encoder := trained(t, "bag", x, 0, 1).Encoder.(*bag.Encoder)
	alone := make([]float32, encoder.Dim())
	all := encode(t, encoder, g.Texts)
	if !slices.Equal(all, encoder.Model().EmbedAll(x.Vectorizer.TransformAll(g.Texts, 0), 1)) {
		t.Error("texts and their features give different embeddings")
	}
	for i := range 20 {
		if err := encoder.Encode(g.Texts[i:i+1], alone); err != nil {
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
		r := trained(t, "hybrid", cluster(t, fitTexts(t, g, 200, resources()), g, 130, resources()), 1, 2)
		runtime.GOMAXPROCS(before)
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
	x := fitTexts(t, g, rank, resources())
	auc := map[string]stats{}
	mrr := map[string]stats{}
	hits := map[string]stats{}
	for seed := range uint64(seeds) {
		known, hidden := eval.Split(g, 0.1, seed+1)
		in := cluster(t, x, known, labelDim, resources())
		lin := trained(t, "linear", in, seed+1, 0)
		began := time.Now()
		r := trained(t, "bag", in, seed+1, 0)
		t.Logf("split %d: %d hidden, trained in %.1f s; linear %+v; bag %+v", seed+1, len(hidden),
			time.Since(began).Seconds(), lin.Metrics, r.Metrics)
		for _, e := range []struct {
			name string
			emb  []float32
		}{
			{"lsa", textOnly(t, x, labelDim)},
			{"linear", encode(t, lin.Encoder, g.Texts)},
			{"bag", encode(t, r.Encoder, g.Texts)},
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
	x := fitTexts(t, g, rank, resources())
	lap("texts")
	in := cluster(t, x, g, labelDim, resources())
	lap("PIFA and tree")
	lin := trained(t, "linear", in, 1, 0)
	lap("linear")
	r := trained(t, "bag", in, 1, 0)
	lap("linear and bag")
	t.Logf("linear %+v; bag %+v", lin.Metrics, r.Metrics)
	bagged := encode(t, r.Encoder, g.Texts)
	lap("encode (bag)")
	encoded := encode(t, lin.Encoder, g.Texts)
	lap("encode (linear)")
	for _, rate := range []float64{0.1, 0.6} {
		accuracy := map[string]float64{}
		for _, e := range []struct {
			name string
			emb  []float32
		}{{"lsa", textOnly(t, x, labelDim)}, {"linear", encoded}, {"bag", bagged}} {
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
