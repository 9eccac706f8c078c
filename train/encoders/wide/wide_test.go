package wide

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/encoders/bag"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

const (
	testDim  = 8 // shorter arrays are aligned anyhow, and sums depend on that (package vector)
	features = 32
	words    = graphtest.Words(features)
)

// scaled is a network and an encoder: number j of a text's vector is weight j
// times a number that text and j decide.
type scaled struct{ weights, grad, inputs []float32 }

func newScaled() *scaled {
	s := &scaled{weights: make([]float32, testDim), grad: make([]float32, testDim)}
	r := numeric.NewRand(5)
	for j := range s.weights {
		s.weights[j] = float32(r.Float64() + 0.5)
	}
	return s
}

func (*scaled) Kind() string     { return "scaled" }
func (*scaled) Dim() int         { return testDim }
func (*scaled) Rotate([]float32) {}

func (*scaled) MaxBatch() int { return 0 }

func (s *scaled) Forward(instances []int32, _ []uint64, out []float32) error {
	batch := make([]string, len(instances))
	for k, i := range instances {
		batch[k] = texts[i]
	}
	return s.forward(batch, out)
}

func (s *scaled) forward(texts []string, out []float32) error {
	s.inputs = s.inputs[:0]
	for i, text := range texts {
		r := numeric.NewRand(numeric.HashString(text))
		for j, w := range s.weights {
			x := float32(r.Float64() - 0.4)
			s.inputs = append(s.inputs, x)
			out[i*testDim+j] = w * x
		}
	}
	return nil
}

func (s *scaled) Encode(texts []string, out []float32) error {
	err := s.forward(texts, out)
	for z := range slices.Chunk(out, testDim) {
		numeric.Normalize(z)
	}
	return err
}

func (s *scaled) Backward(grad []float32) error {
	for i, g := range grad {
		s.grad[i%testDim] += g * s.inputs[i]
	}
	return nil
}

func (s *scaled) Update(rate float64) (float64, error) {
	norm := numeric.Dot(s.grad, s.grad)
	numeric.Axpy(-float32(rate), s.grad, s.weights)
	clear(s.grad)
	return math.Sqrt(float64(norm)), nil
}

func (s *scaled) WriteState(w io.Writer) error {
	return binary.Write(w, binary.LittleEndian, s.weights)
}
func (s *scaled) ReadState(r io.Reader) error { return binary.Read(r, binary.LittleEndian, s.weights) }

// randomTable has vectors for all of the features but the first.
func randomTable(t testing.TB, features int) *bag.Model {
	t.Helper()
	index, vectors := make([]int32, features-1), make([]float32, (features-1)*testDim)
	r := numeric.NewRand(1)
	for k := range index {
		index[k] = int32(k + 1)
	}
	for i := range vectors {
		vectors[i] = float32(r.Float64() - 0.5)
	}
	m, err := bag.NewModel(index, vectors, features, testDim)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newTuner(t testing.TB, o Options) (*Tuner, *scaled, *bag.Model) {
	t.Helper()
	deep, table := newScaled(), randomTable(t, features)
	u, err := NewTuner(deep, words.Matrix(texts...), table, o)
	if err != nil {
		t.Fatal(err)
	}
	return u, deep, table
}

var (
	texts = []string{"red wool socks", "blue wool hat", "steel bolts m8", "", "steel nuts m8"}
	all   = []int32{0, 1, 2, 3, 4}
)

func forward(t testing.TB, u *Tuner, seeds []uint64) []float32 {
	t.Helper()
	out := make([]float32, len(texts)*testDim)
	if err := u.Forward(all, seeds, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The encoder of what a tuner trains says what the tuner does, at length 1.
func TestEncoderIsWhatIsTrained(t *testing.T) {
	u, deep, table := newTuner(t, Options{})
	e, err := New(deep, words, table)
	if err != nil {
		t.Fatal(err)
	}
	want := forward(t, u, nil)
	for z := range slices.Chunk(want, testDim) {
		numeric.Normalize(z)
	}
	got := make([]float32, len(want))
	if err := e.Encode(texts, got); err != nil {
		t.Fatal(err)
	}
	for i := range want { // the parts are added in another order
		if math.Abs(float64(got[i]-want[i])) > 1e-6 {
			t.Errorf("number %d of text %d is %v, the tuner's %v", i%testDim, i/testDim, got[i], want[i])
		}
	}
	if e.Kind() != "scaled" || e.Dim() != testDim || e.Table() != table {
		t.Errorf("kind %q, dimension %d", e.Kind(), e.Dim())
	}
	alone := make([]float32, len(want))
	if err := deep.Encode(texts, alone); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(got, alone) {
		t.Error("the n-grams make no difference")
	}
}

// TestGradientsReachBothParts compares them with differences of the loss Σ cᵢ hᵢ, with
// n-grams left out and without.
func TestGradientsReachBothParts(t *testing.T) {
	for _, seeds := range [][]uint64{nil, {1, 2, 3, 4, 5}} {
		u, deep, table := newTuner(t, Options{Keep: 0.7, RateFactor: 33})
		r := numeric.NewRand(9)
		c := make([]float32, len(texts)*testDim)
		for i := range c {
			c[i] = float32(r.Float64() - 0.5)
		}
		loss := func() (sum float64) {
			for i, h := range forward(t, u, seeds) {
				sum += float64(c[i]) * float64(h)
			}
			return sum
		}
		slope := func(x *float32) float64 {
			const eps = 1e-2
			was := *x
			*x = was + eps
			more := loss()
			*x = was - eps
			less := loss()
			*x = was
			return (more - less) / (2 * eps)
		}
		forward(t, u, seeds)
		if err := u.Backward(c); err != nil {
			t.Fatal(err)
		}
		got, largest := slices.Clone(deep.grad), 0.0
		for j := range deep.weights {
			want := slope(&deep.weights[j])
			largest = max(largest, math.Abs(want))
			if math.Abs(float64(got[j])-want) > 2e-3 {
				t.Errorf("seeds %v: the network's gradient %d is %.5f, the difference %.5f", seeds, j, got[j], want)
			}
		}
		if largest < 0.01 {
			t.Errorf("seeds %v: the loss hardly depends on the network: %v", seeds, largest)
		}
		// Of a row, an update of Adagrad shows the direction of the gradient.
		before, want := slices.Clone(table.Vectors()), make([]float64, len(table.Vectors()))
		for i := range want {
			want[i] = slope(&table.Vectors()[i])
		}
		if _, err := u.Update(0.001); err != nil {
			t.Fatal(err)
		}
		for row := 0; row < len(want); row += testDim {
			var square float64
			for _, g := range want[row : row+testDim] {
				square += g * g / testDim
			}
			for i := row; i < row+testDim; i++ {
				moved, along := float64(table.Vectors()[i]-before[i]), 0.0
				if square > 1e-8 {
					along = -0.001 * 33 * want[i] / math.Sqrt(square)
				}
				if math.Abs(moved-along) > 1e-3 {
					t.Errorf("seeds %v: number %d of row %d moved by %.5f, want %.5f",
						seeds, i-row, row/testDim, moved, along)
				}
			}
		}
	}
}

func TestStateComesBack(t *testing.T) {
	step := func(u *Tuner) {
		z := forward(t, u, []uint64{1, 2, 3, 4, 5})
		if err := u.Backward(z); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Update(0.01); err != nil {
			t.Fatal(err)
		}
	}
	u, _, _ := newTuner(t, Options{})
	step(u)
	var state bytes.Buffer
	if err := u.WriteState(&state); err != nil {
		t.Fatal(err)
	}
	again, _, _ := newTuner(t, Options{Workers: 3})
	if err := again.ReadState(&state); err != nil {
		t.Fatal(err)
	}
	step(u)
	step(again)
	if !slices.Equal(forward(t, u, nil), forward(t, again, nil)) {
		t.Error("a tuner that took over another's state trains on otherwise")
	}
	if err := again.ReadState(strings.NewReader("short")); err == nil {
		t.Error("a state cut short: accepted")
	}
}

// firstThree projects to the weights of features 1 to 3.
type firstThree struct{}

func (firstThree) Dim() int { return 3 }

func (firstThree) Apply(v sparse.Vector, out []float32) {
	clear(out)
	for k, f := range v.Index {
		if f >= 1 && f <= 3 {
			out[f-1] = v.Value[k]
		}
	}
}

func empty() *sparse.Matrix { return &sparse.Matrix{Cols: features} }

// The table starts at the linear solution, cut or filled up with zeros, at a mean
// length of 1.
func TestStart(t *testing.T) {
	x := empty()
	for i := range 50 {
		x.Append(sparse.Vector{Index: []int32{int32(1 + i%3)}, Value: []float32{float32(1 + i%2)}})
	}
	weights := []float32{1, 2, 0, -1, 3, 3}
	for _, dim := range []int{1, 2, 5} {
		m, err := Start(x, firstThree{}, weights, 2, dim, 10, 1)
		if err != nil {
			t.Fatal(err)
		}
		var mean float64
		h := make([]float32, dim)
		for i := range x.Rows {
			clear(h)
			m.Add(x.Row(i), h)
			mean += math.Sqrt(float64(numeric.Dot(h, h))) / float64(x.Rows)
		}
		if math.Abs(mean-1) > 1e-3 {
			t.Errorf("dimension %d: mean length %v, want 1", dim, mean)
		}
		first := m.Vectors()[0]
		for r := range 3 {
			for k := range dim {
				want := float32(0)
				if k < 2 {
					want = weights[r*2+k] * first // weights[0] is 1
				}
				if got := m.Vectors()[r*dim+k]; math.Abs(float64(got-want)) > 1e-5 {
					t.Errorf("dimension %d: number %d of row %d is %v, want %v", dim, k, r, got, want)
				}
			}
		}
	}
	m, err := Start(x, firstThree{}, nil, 0, 2, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	if v := m.Vectors(); v[0] == 0 || v[1] != 0 || v[2] != 0 || v[3] != v[0] || v[4] != 0 || v[5] != 0 {
		t.Errorf("without a solution the table is %v, want the projection's first numbers", v)
	}
}

func TestMismatchesAreRefused(t *testing.T) {
	other, err := bag.NewModel(nil, nil, features, testDim+1)
	if err != nil {
		t.Fatal(err)
	}
	_, dimension := New(newScaled(), words, other)
	_, tunerDimension := NewTuner(newScaled(), words.Matrix(texts...), other, Options{})
	_, factor := NewTuner(newScaled(), words.Matrix(texts...), randomTable(t, features), Options{RateFactor: -1})
	_, keep := NewTuner(newScaled(), words.Matrix(texts...), randomTable(t, features), Options{Keep: 2})
	_, solution := Start(empty(), firstThree{}, []float32{1}, 2, 2, 10, 1)
	_, none := Start(empty(), firstThree{}, nil, 0, 0, 10, 1)
	for name, err := range map[string]error{
		"encoder of another dimension": dimension, "network of another dimension": tunerDimension,
		"factor below zero": factor,
		"keep above one":    keep, "solution of another size": solution, "no dimensions": none,
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	broken := errors.New("broken")
	u, err := NewTuner(failing{newScaled(), broken}, words.Matrix(texts...), randomTable(t, features), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Forward(all, nil, make([]float32, len(texts)*testDim)); !errors.Is(err, broken) {
		t.Errorf("a network that fails: %v", err)
	}
}

type failing struct {
	*scaled
	err error
}

func (f failing) Forward([]int32, []uint64, []float32) error { return f.err }
