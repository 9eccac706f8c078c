package portable

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestProductsAndSums(t *testing.T) {
	for n := range 40 {
		x, y := make([]float32, n), make([]float32, n+3)
		var index []int32
		want := float32(0)
		for i := range x {
			x[i], y[i] = float32(i-7), float32(i%5) // exact in any order
			index = append(index, int32(i))
			want += x[i] * y[i]
		}
		if got := Dot(x, y); got != want {
			t.Errorf("Dot of %d: %v, want %v", n, got, want)
		}
		if got := SparseDot(index, x, y); got != want {
			t.Errorf("SparseDot of %d: %v, want %v", n, got, want)
		}
	}
	sum := []float32{1, 2}
	Add([]float32{10, 20}, sum)
	Sub([]float32{1, 1}, sum)
	if sum[0] != 10 || sum[1] != 21 {
		t.Errorf("sums %v, want 10 and 21", sum)
	}
}

// TestProductsAreRounded: 1 + 2⁻²³ squared, less 1, is 2⁻²² + 2⁻⁴⁶ if it is
// rounded once, and 2⁻²² if the product is rounded first.
func TestProductsAreRounded(t *testing.T) {
	x := float32(1 + 0x1p-23)
	row, y := make([]float32, 9), make([]float32, 9)
	row[0], y[0], row[8], y[8] = 1, -1, x, x
	if got := Dot(row, y); got != 0x1p-22 {
		t.Errorf("Dot: %v, want %v", got, math.Pow(2, -22))
	}
	if got := SparseDot([]int32{0, 1, 2, 3, 8}, []float32{1, 0, 0, 0, x}, y); got != 0x1p-22 {
		t.Errorf("SparseDot: %v, want %v", got, math.Pow(2, -22))
	}
}

// TestAssemblyAgreesToTheBit compares what this processor runs with plain Go,
// for all lengths around the blocks and at any address.
func TestAssemblyAgreesToTheBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	memory := make([]float32, 400)
	for i := range memory {
		memory[i] = float32(r.NormFloat64())
	}
	for n := range 70 {
		for shift := range 4 {
			x, y := memory[shift:shift+n], memory[100+3*shift:][:n]
			if got, want := dot(x, y), dotGo(x, y); got != want {
				t.Errorf("Dot of %d at %d: %v, want %v", n, shift, got, want)
			}
			// One more, which has to stay as it is.
			got, want := slices.Clone(memory[200:201+n]), slices.Clone(memory[200:201+n])
			add(x, got)
			addGo(x, want)
			sub(y, got)
			subGo(y, want)
			if !slices.Equal(got, want) {
				t.Errorf("sums of %d at %d: %v, want %v", n, shift, got, want)
			}
		}
	}
}

func BenchmarkDot256(b *testing.B) {
	x, y := make([]float32, 256), make([]float32, 256)
	b.Run("dot", func(b *testing.B) {
		for b.Loop() {
			Dot(x, y)
		}
	})
	b.Run("add", func(b *testing.B) {
		for b.Loop() {
			Add(x, y)
		}
	})
}
