package bert

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/encoders/safetensors"
)

func TestSavedModelIsTheSame(t *testing.T) {
	texts := many(t, 30)
	for _, pooling := range []compute.Pooling{compute.First, compute.Mean} {
		u := tuner(t, tiny(), TuneOptions{Pooling: pooling})
		fit(t, u, texts, 1)
		want := encode(t, u.Encoder(), texts)
		dir := filepath.Join(t.TempDir(), "model")
		if err := u.Encoder().Save(dir); err != nil {
			t.Fatal(err)
		}
		fit(t, u, texts, 1) // does not reach what was saved
		if got := encode(t, open(t, os.DirFS(dir), Options{Pooling: pooling}), texts); !slices.Equal(got, want) {
			t.Error("the saved model gives other embeddings")
		}
	}
}

// TestFilesAreTheReferences saves a model of the reference and expects the same tensors, config and
// vocabulary.
func TestFilesAreTheReferences(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, tiny(), Options{}).Save(dir); err != nil {
		t.Fatal(err)
	}
	want, got := load(t, tiny()).Config(), load(t, os.DirFS(dir)).Config()
	got.Quantization = want.Quantization
	if !slices.Equal(mustJSON(t, got), mustJSON(t, want)) {
		t.Errorf("configuration %+v, want %+v", got, want)
	}
	a, err := os.ReadFile(filepath.Join(dir, "vocab.txt"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/tiny/vocab.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("another vocabulary")
	}
	ours, theirs := tensors(t, dir), tensors(t, "testdata/tiny")
	if !slices.Equal(ours.Names(), theirs.Names()) {
		t.Fatalf("tensors %v, want %v", ours.Names(), theirs.Names())
	}
	for _, name := range theirs.Names() {
		shape, _ := theirs.Shape(name)
		if !slices.Equal(float32Tensor(t, ours, name, shape), float32Tensor(t, theirs, name, shape)) {
			t.Errorf("%s has other numbers", name)
		}
	}
}

func tensors(t *testing.T, dir string) *safetensors.Model {
	t.Helper()
	m, err := safetensors.OpenModel(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func float32Tensor(t *testing.T, m *safetensors.Model, name string, shape []int) []float32 {
	t.Helper()
	x, err := m.Float32(name, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func mustJSON(t *testing.T, c Config) []byte {
	t.Helper()
	f, err := file("config.json", c)
	if err != nil {
		t.Fatal(err)
	}
	return f.WriterTo.(content)
}

func FuzzReadState(f *testing.F) {
	u := smallTuner(f)
	good := state(f, u)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("GSBERTRN"))
	for _, at := range []int{9, 12, 20, 30, 60, len(good) - 2} {
		bad := bytes.Clone(good)
		bad[at] ^= 0x81
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u := smallTuner(t)
		err := u.ReadState(bytes.NewReader(data))
		out := make([]float32, u.Dim())
		switch works := u.Forward([]string{"a"}, nil, out); {
		case err != nil && !errors.Is(works, ErrSpoilt):
			t.Errorf("after a refused state the tuner goes on: %v", works)
		case err == nil && works != nil:
			t.Errorf("after an accepted state the tuner does not work: %v", works)
		case err == nil && !bytes.Equal(state(t, u), data):
			t.Error("an accepted state is written differently")
		}
		if err := u.ReadState(bytes.NewReader(good)); err != nil || !bytes.Equal(state(t, u), good) {
			t.Errorf("a good state does not mend the tuner: %v", err)
		}
	})
}

// smallTuner is of a model of one layer and few numbers.
func smallTuner(t testing.TB) *Tuner {
	t.Helper()
	be := cpu.New()
	c := Config{
		ModelType: "bert", VocabSize: 3, HiddenSize: 1, Layers: 1, Heads: 1, IntermediateSize: 1, MaxPositions: 3,
		TypeVocabSize:    1,
		LayerNormEpsilon: 1e-12, Activation: "gelu", PositionType: "absolute",
	}
	one := func(n int) compute.Buffer { return be.New(n) }
	linear := func(out int) *compute.Linear {
		return &compute.Linear{In: 1, Out: out, Weight: one(out), Bias: one(out)}
	}
	norm := compute.Norm{Width: 1, Gain: one(1), Bias: one(1), Epsilon: 1e-12}
	m := &Model{config: c, backend: be, weights: weights{
		embedding: compute.Embedding{Words: one(3), Positions: one(3), Types: one(1), Norm: norm},
		layers: []layer{{qkv: linear(3), attend: linear(1), norm: norm, widen: linear(1), narrow: linear(1),
			last: norm}},
	}}
	tok, err := wordpiece.New([]string{"[UNK]", "[CLS]", "[SEP]"}, wordpiece.Uncased())
	if err != nil {
		t.Fatal(err)
	}
	u, err := NewTuner(m, tok, TuneOptions{Pooling: compute.Mean})
	if err != nil {
		t.Fatal(err)
	}
	return u
}
