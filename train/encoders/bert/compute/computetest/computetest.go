// Package computetest checks a compute.Backend against float64 references
// written for plainness: outcomes against the reference's, gradients against
// finite differences of it. It also checks that a text's numbers do not depend,
// to the bit, on the batch it is in, nor any number on the workers.
//
// Products of a backend that multiplies in another Math than compute.Float32 may be off by as much as
// its rounding of operands explains, no more; all else is held to float32.
//
// Buffers that an operation overwrites hold NaN before, which reveals a number that the operation
// leaves out or adds to.
package computetest

import (
	"math"
	"slices"
	"testing"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/numeric"
)

// tolerance is how far float32 sums of these sizes may be off.
const tolerance = 2e-5

// Run runs the suite.
func Run(t *testing.T, b compute.Backend) {
	t.Run("Memory", func(t *testing.T) { memory(t, b) })
	t.Run("Embed", func(t *testing.T) { embed(t, b) })
	t.Run("Linear", func(t *testing.T) { linear(t, b) })
	t.Run("Activate", func(t *testing.T) { activate(t, b) })
	t.Run("Attend", func(t *testing.T) { attend(t, b) })
	t.Run("AddNorm", func(t *testing.T) { addNorm(t, b) })
	t.Run("Drop", func(t *testing.T) { drop(t, b) })
	t.Run("Pool", func(t *testing.T) { pool(t, b) })
	t.Run("Backward", func(t *testing.T) { backward(t, b) })
	t.Run("Optimizer", func(t *testing.T) { optimizer(t, b) })
	t.Run("Spread", func(t *testing.T) { spread(t, b) })
}

func memory(t *testing.T, be compute.Backend) {
	if err := be.Read(make([]float32, 3), be.New(2)); err == nil {
		t.Error("3 numbers were read from a buffer of 2")
	}
	x := be.Upload([]float32{1, 2, 3})
	be.Write(x, []float32{5, 6})
	if got := read(t, be, x, 3); !slices.Equal(got, []float32{5, 6, 3}) {
		t.Errorf("5, 6 written over 1, 2, 3 gives %v", got)
	}
	be.Zero(x)
	if got := read(t, be, x, 3); !slices.Equal(got, make([]float32, 3)) {
		t.Errorf("zeroed: %v", got)
	}
}

// batch has texts of 1, 70 and 5 tokens.
func batch() compute.Batch {
	b := compute.Batch{Start: []int32{0, 1, 71, 76}}
	for i := range int32(76) {
		b.IDs = append(b.IDs, i*i%11)
	}
	return b
}

// dropout drops a quarter of a text's numbers.
var dropout = compute.Dropout{Rate: 1. / 4, Site: 7}

// seeded is b with a seed for each text.
func seeded(b compute.Batch) compute.Batch {
	for i := range b.Texts() {
		b.Seeds = append(b.Seeds, numeric.Mix(uint64(i)+50))
	}
	return b
}

// factors returns what dropout multiplies the first n numbers of text i by.
func factors(b compute.Batch, i, n int) []float64 {
	f := make([]float64, n)
	for k := range f {
		switch {
		case b.Seeds == nil:
			f[k] = 1
		case dropout.DroppedFor(b.Seeds[i]).Keeps(k):
			f[k] = 1 / (1 - dropout.Rate)
		}
	}
	return f
}

// random makes n numbers between −1 and 1.
func random(n int, seed uint64) []float32 {
	r := numeric.NewRand(seed)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(2*r.Float64() - 1)
	}
	return x
}

// poisoned makes a buffer of n numbers that must not be read.
func poisoned(be compute.Backend, n int) compute.Buffer {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return be.Upload(x)
}

func read(t *testing.T, b compute.Backend, src compute.Buffer, n int) []float32 {
	t.Helper()
	out := make([]float32, n)
	if err := b.Read(out, src); err != nil {
		t.Fatal(err)
	}
	return out
}

func compare(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	compareRounded(t, what, got, want, nil)
}

// compareRounded allows slack in addition: how far each number may be off since operands are rounded. nil is none.
func compareRounded(t *testing.T, what string, got []float32, want, slack []float64) {
	t.Helper()
	for i, w := range want {
		allowed := tolerance * max(1, math.Abs(w))
		if slack != nil {
			allowed += slack[i]
		}
		if d := math.Abs(float64(got[i]) - w); !(d <= allowed) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// slackOf returns how far rounding both operands, as the backend does (compute.Math), may move numbers
// that are sums of products, given the sums of the products' sizes: nil if it does not round.
func slackOf(be compute.Backend, sizes []float64) []float64 {
	u := compute.MathOf(be).Rounding()
	if u == 0 {
		return nil
	}
	for i := range sizes {
		sizes[i] *= 2*u + u*u
	}
	return sizes
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
