package bert

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/numeric"
)

func tuner(t testing.TB, dir fs.FS, o TuneOptions) *Tuner {
	t.Helper()
	tok, err := wordpiece.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	u, err := NewTuner(load(t, dir), tok, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// backward runs one Forward and Backward of a loss with the given slope.
func backward(t testing.TB, u *Tuner, texts []string, slope []float32) []float32 {
	t.Helper()
	return backwardSeeded(t, u, texts, nil, slope)
}

func backwardSeeded(t testing.TB, u *Tuner, texts []string, seeds []uint64, slope []float32) []float32 {
	t.Helper()
	out := make([]float32, len(texts)*u.Dim())
	if err := u.Forward(texts, seeds, out); err != nil {
		t.Fatal(err)
	}
	if err := u.Backward(slope); err != nil {
		t.Fatal(err)
	}
	return out
}

// seedsOf returns seeds for n texts.
func seedsOf(n int, step int64) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = numeric.Mix(uint64(step)<<32 + uint64(i))
	}
	return seeds
}

func update(t testing.TB, u *Tuner, rate float64) float64 {
	t.Helper()
	norm, err := u.Update(rate)
	if err != nil {
		t.Fatal(err)
	}
	return norm
}

// reference is a model and what testdata/training.py made of it.
type reference struct {
	dir    fs.FS
	golden *safetensors.Archive
	max    int
}

func references(t *testing.T, run func(t *testing.T, r reference)) {
	t.Run("random weights", func(t *testing.T) { run(t, reference{tiny(), golden(t, "training.safetensors"), 40}) })
	t.Run("all-MiniLM-L6-v2", func(t *testing.T) {
		dir := miniLM(t)
		name := os.Getenv("GIANTSTREAM_MINILM_TRAINING")
		if name == "" {
			t.Skip("set GIANTSTREAM_MINILM_TRAINING to the output of: training.py $GIANTSTREAM_MINILM 128 1e-4 <output>")
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		a, err := safetensors.Open(f, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		run(t, reference{dir, a, 128})
	})
}

// compareTensors compares each tensor with the reference's, relative to its largest number.
func compareTensors(t *testing.T, r reference, prefix string, got []safetensors.Tensor, tolerance float64) {
	t.Helper()
	var worst float64
	for _, x := range got {
		want := float32s(t, r.golden, prefix+x.Name, x.Shape...)
		var largest float64
		for _, v := range want {
			largest = max(largest, math.Abs(float64(v)))
		}
		if strings.HasSuffix(x.Name, "key.bias") {
			// It moves all scores of a token alike, so its gradient is zero but
			// for rounding, and Adam makes steps of that.
			continue
		}
		far := farthest(t, x.Float32, want)
		if !(far <= tolerance*largest) {
			t.Errorf("%s: differs by %g, its largest number is %g", x.Name, far, largest)
		}
		if largest > 0 {
			worst = max(worst, far/largest)
		}
	}
	t.Logf("%d tensors, within %.1e of their largest numbers", len(got), worst)
}

func TestGradientsEqualTheReference(t *testing.T) {
	references(t, func(t *testing.T, r reference) {
		u := tuner(t, r.dir, TuneOptions{Pooling: compute.First, MaxTokens: r.max})
		texts := texts(t)
		slope := float32s(t, r.golden, "slope", len(texts), u.Dim())
		backward(t, u, texts, slope)
		got, err := u.pass.gradient.tensors(u.backend, u.encoder.model.config)
		runtime.KeepAlive(u) // whose end frees what is read
		if err != nil {
			t.Fatal(err)
		}
		compareTensors(t, r, "gradient.", got, 1e-3)
	})
}

func TestStepsEqualTheReference(t *testing.T) {
	references(t, func(t *testing.T, r reference) {
		u := tuner(t, r.dir, TuneOptions{Pooling: compute.Mean, MaxTokens: r.max})
		texts := texts(t)
		slope := float32s(t, r.golden, "slope", len(texts), u.Dim())
		norms := float32s(t, r.golden, "norms", 3)
		steps := float32s(t, r.golden, "steps", 3, 2)
		for i := range 3 {
			scaled := slices.Clone(slope)
			for j := range scaled {
				scaled[j] *= steps[2*i+1]
			}
			backward(t, u, texts, scaled)
			if norm := update(t, u, float64(steps[2*i])); math.Abs(norm-float64(norms[i])) > 1e-3*norm {
				t.Errorf("step %d: the gradient's norm is %v, want %v", i+1, norm, norms[i])
			}
		}
		got, err := u.encoder.model.tensors(u.backend, u.encoder.model.config)
		runtime.KeepAlive(u) // whose end frees the weights
		if err != nil {
			t.Fatal(err)
		}
		compareTensors(t, r, "trained.", got, 1e-3)
	})
}

// state is the tuner's weights, moments and step, as bytes.
func state(t testing.TB, u *Tuner) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := u.WriteState(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// slopes makes a slope from what Forward gave: that of the loss Σx⁴/4.
func slopes(x []float32) []float32 {
	s := make([]float32, len(x))
	for i, v := range x {
		s[i] = v * v * v
	}
	return s
}

func fit(t testing.TB, u *Tuner, texts []string, steps int) {
	t.Helper()
	out := make([]float32, len(texts)*u.Dim())
	for range steps {
		if err := u.Forward(texts, seedsOf(len(texts), u.steps), out); err != nil {
			t.Fatal(err)
		}
		if err := u.Backward(slopes(out)); err != nil {
			t.Fatal(err)
		}
		update(t, u, 1e-3)
	}
}

func TestForwardIsTheEncodersOutputBeforeNormalisation(t *testing.T) {
	texts := many(t, 60)
	for _, pooling := range []compute.Pooling{compute.First, compute.Mean} {
		u := tuner(t, tiny(), TuneOptions{Pooling: pooling, Dropout: 0.5, DropTokens: 0.5})
		got := make([]float32, len(texts)*u.Dim())
		if err := u.Forward(texts, nil, got); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(got); i += u.Dim() {
			numeric.Normalize(got[i : i+u.Dim()])
		}
		if !slices.Equal(got, encode(t, u.Encoder(), texts)) {
			t.Error("other vectors than the encoder's")
		}
	}
}

// TestMoreThanIsKept trains on a batch whose activations do not fit into what is kept.
func TestMoreThanIsKept(t *testing.T) {
	texts := many(t, 500)
	options := TuneOptions{Pooling: compute.Mean, Dropout: 0.1, DropTokens: 0.1}
	whole, halves := tuner(t, tiny(), options), tuner(t, tiny(), options)
	out, seeds := make([]float32, len(texts)*whole.Dim()), seedsOf(len(texts), 0)
	if err := whole.Forward(texts, seeds, out); err != nil {
		t.Fatal(err)
	}
	if n := len(whole.ends); n < keptBatches+3 {
		t.Fatalf("%d batches are too few for this test", n)
	}
	slope := slopes(out)
	if err := whole.Backward(slope); err != nil {
		t.Fatal(err)
	}
	// The same batches one by one: the sums are the same to the bit.
	for i := range whole.ends {
		first, end := whole.texts(i)
		backwardSeeded(t, halves, texts[first:end], seeds[first:end], slope[first*whole.Dim():end*whole.Dim()])
	}
	if a, b := update(t, whole, 1e-3), update(t, halves, 1e-3); a != b {
		t.Errorf("the gradient's norm is %v, in parts %v", a, b)
	}
	if !bytes.Equal(state(t, whole), state(t, halves)) {
		t.Error("other weights than from the same batches one by one")
	}
}

func TestWorkersDoNotChangeTraining(t *testing.T) {
	texts := many(t, 80)
	var want []byte
	for _, workers := range []int{1, 2, 5} {
		u := tuner(t, tiny(), TuneOptions{Pooling: compute.First, Dropout: 0.1, DropTokens: 0.3, Workers: workers})
		fit(t, u, texts, 2)
		got := state(t, u)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d workers give other weights than one", workers)
		}
	}
}

func TestResumedTrainingEndsAlike(t *testing.T) {
	texts := many(t, 20)
	for _, pooling := range []compute.Pooling{compute.First, compute.Mean} {
		o := TuneOptions{Pooling: pooling, Dropout: 0.1, DropTokens: 0.3}
		u := tuner(t, tiny(), o)
		fit(t, u, texts, 2)
		half := state(t, u)
		fit(t, u, texts, 2)

		resumed := tuner(t, tiny(), o)
		fit(t, resumed, texts[:3], 1) // whatever came before does not count
		if err := resumed.ReadState(bytes.NewReader(half)); err != nil {
			t.Fatal(err)
		}
		fit(t, resumed, texts, 2)
		if !bytes.Equal(state(t, resumed), state(t, u)) {
			t.Error("other weights than without the interruption")
		}
		if !slices.Equal(encode(t, resumed.Encoder(), texts), encode(t, u.Encoder(), texts)) {
			t.Error("other embeddings than without the interruption")
		}
	}
}

func TestTunerRefuses(t *testing.T) {
	for _, o := range []TuneOptions{{Beta1: 1}, {Beta2: -1}, {ClipNorm: math.NaN()}, {Epsilon: -1e-8},
		{WeightDecay: -1}, {Dropout: 1}, {DropTokens: -0.1}, {MaxTokens: 1000}, {Pooling: 9}} {
		tok, err := wordpiece.Load(tiny())
		if err != nil {
			t.Fatal(err)
		}
		m, err := Load(tiny(), cpu.New())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewTuner(m, tok, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	u := tuner(t, tiny(), TuneOptions{Pooling: compute.Mean})
	if err := u.Backward(nil); !errors.Is(err, ErrOrder) {
		t.Errorf("Backward without Forward: %v", err)
	}
	if err := u.Forward([]string{"box"}, nil, make([]float32, 31)); err == nil {
		t.Error("31 numbers were taken for a vector of 32")
	}
	if err := u.Forward([]string{"box"}, seedsOf(2, 0), make([]float32, 32)); err == nil {
		t.Error("two seeds were taken for one text")
	}
	out := backward(t, u, []string{"box"}, make([]float32, 32))
	if err := u.Backward(out); !errors.Is(err, ErrOrder) {
		t.Errorf("a second Backward: %v", err)
	}
	before := state(t, u)
	out[3] = float32(math.NaN())
	backward(t, u, []string{"box"}, out)
	if _, err := u.Update(1e-3); err == nil {
		t.Error("a gradient that is not a number was accepted")
	}
	if !bytes.Equal(state(t, u), before) {
		t.Error("a gradient that is not a number changed the weights")
	}
	fit(t, u, []string{"box"}, 1) // and is forgotten
}
