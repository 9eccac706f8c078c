package bert

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

func TestInt8IsNearFloat32(t *testing.T) {
	texts := many(t, 200)
	for _, pooling := range []compute.Pooling{compute.Mean, compute.First} {
		exact := encode(t, open(t, tiny(), Options{Pooling: pooling}), texts)
		e := open(t, tiny(), Options{Pooling: pooling, Precision: Int8})
		if e.Options().Precision != Int8 {
			t.Fatalf("precision %q", e.Options().Precision)
		}
		got := encode(t, e, texts)
		if slices.Equal(got, exact) {
			t.Error("int8 gives the bits of float32: nothing was quantized")
		}
		if mean, least := cosines(exact, got, e.Dim()); mean < 0.999 || least < 0.995 {
			t.Errorf("cosine to float32: mean %.5f, least %.5f", mean, least)
		}
	}
}

func TestInt8SameTextSameBits(t *testing.T) {
	texts := many(t, 150)
	want := encode(t, open(t, tiny(), Options{Workers: 1, Precision: Int8}), texts)
	for _, cpus := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(cpus)
		got := encode(t, open(t, tiny(), Options{Precision: Int8}), texts)
		runtime.GOMAXPROCS(before)
		if !slices.Equal(got, want) {
			t.Errorf("%d CPUs give other embeddings than one worker", cpus)
		}
	}
	e := open(t, tiny(), Options{Precision: Int8})
	for i, text := range texts {
		if !slices.Equal(encode(t, e, []string{text}), want[i*32:(i+1)*32]) {
			t.Errorf("text %d has another embedding alone than among others", i)
		}
	}
}

// An encoder goes to int8 and back, and can be saved unless it was opened in int8.
func TestSetPrecision(t *testing.T) {
	texts := many(t, 20)
	e := open(t, tiny(), Options{})
	exact, quantized := encode(t, e, texts), encode(t, open(t, tiny(), Options{Precision: Int8}), texts)
	for _, step := range []struct {
		precision Precision
		want      []float32
	}{{Int8, quantized}, {Float32, exact}, {Int8, quantized}, {"", exact}} {
		if err := e.SetPrecision(step.precision); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(encode(t, e, texts), step.want) {
			t.Errorf("precision %q gives other embeddings than an encoder opened in it", step.precision)
		}
		if _, err := e.Files(); err != nil {
			t.Errorf("precision %q: %v", step.precision, err)
		}
	}
	if err := e.SetPrecision("int4"); err == nil {
		t.Error("the precision int4 was accepted")
	}
	opened := open(t, tiny(), Options{Precision: Int8})
	if _, err := opened.Files(); err == nil {
		t.Error("an encoder without its weights was saved")
	}
	if err := opened.SetPrecision(Float32); err == nil {
		t.Error("an encoder without its weights went to float32")
	}
}

// TestInt8OnGraphs: what the precision int8 keeps of MiniLM.
func TestInt8OnGraphs(t *testing.T) {
	dir := miniLM(t)
	for _, name := range []string{"amazon-products", "debian-packages"} {
		texts := slices.Clone(graphtest.Shared(t, name).Texts)
		r := rand.New(rand.NewPCG(7, 7))
		r.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		texts = texts[:min(len(texts), 600)]
		o := Options{Pooling: compute.Mean, MaxTokens: 64}
		exact := encode(t, open(t, dir, o), texts)
		o.Precision = Int8
		got := encode(t, open(t, dir, o), texts)
		mean, least := cosines(exact, got, 384)
		share := recall(exact, got, 384)
		t.Logf("%s: cosine to float32 %.5f, least %.5f, recall@10 %.4f", name, mean, least, share)
		if mean < 0.9995 || share < 0.98 {
			t.Errorf("%s: cosine to float32 %.5f, want 0.9995; recall@10 %.4f, want 0.98", name, mean, share)
		}
	}
}

// cosines returns the mean and the least cosine of rows of length 1.
func cosines(a, b []float32, dim int) (mean, least float64) {
	n := len(a) / dim
	least = 1
	for i := range n {
		var s float64
		for j := range dim {
			s += float64(a[i*dim+j]) * float64(b[i*dim+j])
		}
		mean += s / float64(n)
		least = min(least, s)
	}
	return mean, least
}

// recall is the share of a row's ten nearest in a that are among its ten nearest in b.
func recall(a, b []float32, dim int) float64 {
	n, hits := len(a)/dim, 0
	top := func(x []float32, i int) []int {
		scores, order := make([]float32, n), make([]int, n)
		for j := range n {
			scores[j], order[j] = numeric.Dot(x[i*dim:(i+1)*dim], x[j*dim:(j+1)*dim]), j
		}
		scores[i] = -2
		sort.Slice(order, func(x, y int) bool { return scores[order[x]] > scores[order[y]] })
		return order[:10]
	}
	for i := range n {
		near := top(b, i)
		for _, j := range top(a, i) {
			if slices.Contains(near, j) {
				hits++
			}
		}
	}
	return float64(hits) / float64(10*n)
}
