package bag

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

const (
	words   = graphtest.Words(64)
	testDim = 16
)

// network is one for texts, of random vectors for all features but the first.
func network(t testing.TB, o NetworkOptions, texts ...string) *Network {
	t.Helper()
	features, vectors := make([]int32, 63), make([]float32, 63*testDim)
	r := numeric.NewRand(1)
	for k := range features {
		features[k] = int32(k + 1)
	}
	for i := range vectors {
		vectors[i] = float32(r.Float64() - 0.5)
	}
	m, err := NewModel(features, vectors, 64, testDim)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(words.Matrix(texts...), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// step pulls the vectors of some instances towards zero.
func step(t testing.TB, n *Network, instances []int32, seeds []uint64) {
	t.Helper()
	z := make([]float32, len(instances)*testDim)
	if err := errors.Join(n.Forward(instances, seeds, z), n.Backward(z)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Update(0.1); err != nil {
		t.Fatal(err)
	}
}

// An update moves only the rows that a text used.
func TestNetworkMovesOnlyWhatWasUsed(t *testing.T) {
	n := network(t, NetworkOptions{Keep: 1}, "one")
	before := slices.Clone(n.model.Vectors())
	out, grad := make([]float32, testDim), make([]float32, testDim)
	grad[0] = 1
	if err := errors.Join(n.Forward([]int32{0}, nil, out), n.Backward(grad)); err != nil {
		t.Fatal(err)
	}
	norm, err := n.Update(0.1)
	if err != nil || math.Abs(norm-1) > 1e-6 {
		t.Errorf("norm %v, %v; want 1", norm, err)
	}
	moved := int(words.Feature("one")-1) * testDim
	for i := range before {
		// Row-wise Adagrad: rate·g/√(mean g²), g of one number.
		want := before[i]
		if i == moved {
			want -= float32(0.1 * math.Sqrt(testDim))
		}
		if d := n.model.Vectors()[i] - want; math.Abs(float64(d)) > 1e-5 {
			t.Errorf("number %d of row %d is off by %v", i%testDim, i/testDim, d)
		}
	}
}

// With a seed some n-grams are left out and the others weigh more, so that the sum
// is on average what it is without.
func TestNetworkLeavesNGramsOut(t *testing.T) {
	n := network(t, NetworkOptions{Keep: 0.5}, "a b c d e f g h")
	text := []int32{0}
	whole := make([]float32, testDim)
	if err := n.Forward(text, nil, whole); err != nil {
		t.Fatal(err)
	}
	var mean [testDim]float64
	const draws = 100_000
	z, other := make([]float32, testDim), 0
	for seed := range uint64(draws) {
		if err := n.Forward(text, []uint64{seed}, z); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(z, whole) {
			other++
		}
		for i, x := range z {
			mean[i] += float64(x) / draws
		}
	}
	if other < draws/2 {
		t.Errorf("%d of %d draws differ from the whole text", other, draws)
	}
	for i, x := range whole {
		if math.Abs(mean[i]-float64(x)) > 0.02 {
			t.Errorf("number %d is %.3f on average, %.3f of the whole text", i, mean[i], x)
		}
	}
}

func TestNetworkStateComesBack(t *testing.T) {
	texts, seeds := []string{"a b c", "c d", "", "e f g h"}, []uint64{1, 2, 3, 4}
	instances := []int32{0, 1, 2, 3}
	n := network(t, NetworkOptions{}, texts...)
	step(t, n, instances, seeds)
	var state bytes.Buffer
	if err := n.WriteState(&state); err != nil {
		t.Fatal(err)
	}
	again := network(t, NetworkOptions{Workers: 3}, texts...)
	if err := again.ReadState(io.MultiReader(&state, strings.NewReader("more"))); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Network{n, again} {
		step(t, x, instances, seeds)
	}
	if !slices.Equal(n.model.Vectors(), again.model.Vectors()) {
		t.Error("a network that took over another's state trains on otherwise")
	}
	if err := again.ReadState(strings.NewReader("short")); err == nil {
		t.Error("a state cut short: accepted")
	}
}

func TestNetworkRefuses(t *testing.T) {
	m := network(t, NetworkOptions{}).model
	if _, err := NewNetwork(words.Matrix(), m, NetworkOptions{Keep: 2}); err == nil {
		t.Error("keep above one: accepted")
	}
	other, err := NewModel(nil, nil, 63, testDim)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewNetwork(words.Matrix(), other, NetworkOptions{}); err == nil {
		t.Error("a model of another vectorizer: accepted")
	}
}
