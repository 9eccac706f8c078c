package bert

import (
	"bufio"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

func open(t testing.TB, dir fs.FS, o Options) *Encoder {
	t.Helper()
	e, err := Open(dir, backend(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func encode(t testing.TB, e *Encoder, texts []string) []float32 {
	t.Helper()
	out := make([]float32, len(texts)*e.Dim())
	if err := e.Encode(texts, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEmbeddingsArePooledStatesOfLengthOne(t *testing.T) {
	texts := texts(t)
	for tensor, pooling := range map[string]compute.Pooling{"mean": compute.Mean, "cls": compute.First} {
		e := open(t, tiny(), Options{Pooling: pooling})
		if e.Kind() != "bert" || e.Dim() != 32 {
			t.Fatalf("a %q of %d dimensions", e.Kind(), e.Dim())
		}
		want := float32s(t, golden(t, "tiny.safetensors"), tensor, len(texts), 32)
		for i := 0; i < len(want); i += 32 {
			numeric.Normalize(want[i : i+32])
		}
		if far := farthest(t, encode(t, e, texts), want); far > tolerance {
			t.Errorf("%s: embeddings differ by %g", tensor, far)
		}
	}
}

// many repeats and mixes the golden texts: batches of all shapes.
func many(t testing.TB, n int) []string {
	t.Helper()
	base := texts(t)
	out := make([]string, n)
	for i := range out {
		out[i] = base[i%len(base)][:min(len(base[i%len(base)]), i*37%400)] + strings.Repeat(" box", i%7)
	}
	return out
}

func TestSameTextSameBits(t *testing.T) {
	texts := many(t, 300)
	want := encode(t, open(t, tiny(), Options{Workers: 1}), texts)
	for _, cpus := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(cpus)
		got := encode(t, open(t, tiny(), Options{}), texts)
		runtime.GOMAXPROCS(before)
		if !slices.Equal(got, want) {
			t.Errorf("%d CPUs give other embeddings than one worker", cpus)
		}
	}
	e := open(t, tiny(), Options{})
	for i, text := range texts {
		if !slices.Equal(encode(t, e, []string{text}), want[i*32:(i+1)*32]) {
			t.Errorf("text %d has another embedding alone than among others", i)
		}
	}
}

func TestEncodeFromManyGoroutines(t *testing.T) {
	texts := many(t, 100)
	e := open(t, tiny(), Options{Workers: 2})
	want := encode(t, e, texts)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out := make([]float32, len(want))
			if err := e.Encode(texts, out); err != nil || !slices.Equal(out, want) {
				t.Errorf("other embeddings than one call by itself (%v)", err)
			}
		})
	}
	wg.Wait()
}

func TestTextsAreCut(t *testing.T) {
	e := open(t, tiny(), Options{MaxTokens: 5})
	got := encode(t, e, []string{"box box box", "box box box box", strings.Repeat("box ", 1000)})
	if !slices.Equal(got[:32], got[32:64]) || !slices.Equal(got[:32], got[64:]) {
		t.Error("what lies behind the third token changes the embedding")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{MaxTokens: 41}, {MaxTokens: 2}, {MaxTokens: -1}, {Pooling: 7}} {
		if _, err := Open(tiny(), cpu.New(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if err := open(t, tiny(), Options{}).Encode([]string{"a"}, make([]float32, 31)); err == nil {
		t.Error("31 numbers were taken for an embedding of 32")
	}
}

// TestAmazonLinks compares the plain encoder with latent semantic analysis,
// the other embedding of text alone, on hidden links.
func TestAmazonLinks(t *testing.T) {
	if os.Getenv("GIANTSTREAM_LONG") == "" {
		t.Skip("takes minutes; set GIANTSTREAM_LONG=1")
	}
	dir := miniLM(t)
	g := graphtest.Shared(t, "amazon-products")
	e := open(t, dir, Options{Pooling: compute.Mean})
	began := time.Now()
	bert := encode(t, e, g.Texts)
	t.Logf("encoded in %.0f s", time.Since(began).Seconds())
	const rank = 256
	text := latent(t, g.Texts, rank)
	for seed := range uint64(3) {
		known, hidden := eval.Split(g, 0.1, seed+1)
		var auc []float64
		for _, x := range []struct {
			name string
			emb  []float32
			dim  int
		}{{"LSA", text, rank}, {"MiniLM", bert, e.Dim()}} {
			m, err := eval.Links(x.emb, x.dim, known, hidden, eval.LinkOptions{Seed: seed + 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("split %d: %-6s AUC %.4f ± %.4f  MRR %.4f  Hits@10 %.4f",
				seed+1, x.name, m.AUC, m.AUCStdErr, m.MRR, m.Hits10)
			auc = append(auc, m.AUC)
		}
		if auc[1] < 0.6 {
			t.Errorf("split %d: AUC of MiniLM %.4f, of LSA %.4f", seed+1, auc[1], auc[0])
		}
	}
}

// latent is the LSA of texts: TF-IDF, projected, of length 1.
func latent(t *testing.T, texts []string, rank int) []float32 {
	t.Helper()
	f, err := tfidf.NewFitter(tfidf.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	f.AddAll(texts, 0)
	v, err := f.Fit()
	if err != nil {
		t.Fatal(err)
	}
	x := v.TransformAll(texts, 0)
	p, err := projection.Fit(x, rank, projection.Options{})
	if err != nil {
		t.Fatal(err)
	}
	z := p.ApplyAll(x, 0)
	numeric.NormalizeRows(z, p.Dim())
	return z
}

// BenchmarkEncode encodes the texts, one a line, that GIANTSTREAM_TEXTS names,
// so that other programs can be measured on the same ones.
func BenchmarkEncode(b *testing.B) {
	texts := many(b, 64)
	if name := os.Getenv("GIANTSTREAM_TEXTS"); name != "" {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		texts = texts[:0]
		for s := bufio.NewScanner(f); s.Scan(); {
			texts = append(texts, s.Text())
		}
	}
	e := open(b, miniLM(b), Options{Pooling: compute.Mean})
	tokens := 0
	for _, t := range texts {
		tokens += len(e.tokenizer.Encode(t, e.options.MaxTokens, nil))
	}
	out := make([]float32, len(texts)*e.Dim())
	for b.Loop() {
		if err := e.Encode(texts, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tokens)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}
