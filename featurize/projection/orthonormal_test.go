package projection

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Columns of very different lengths, nearly dependent ones and copies, over
// more than one panel: the basis is orthonormal, spans them, and has no more
// columns than there are directions.
func TestOrthonormalizeOfBadColumns(t *testing.T) {
	const n, independent, l = 400, 45, 80
	r := rand.New(rand.NewPCG(1, 2))
	y := make([]float32, n*l)
	for k := range independent {
		scale := math.Pow(10, -3*float64(k)/independent)
		for i := range n {
			v := r.NormFloat64()
			if k%2 == 1 { // close to its neighbour
				v = float64(y[i*l+k-1])/math.Pow(10, -3*float64(k-1)/independent) + 1e-2*v
			}
			y[i*l+k] = float32(scale * v)
		}
	}
	for k := independent; k < l; k++ {
		for i := range n {
			y[i*l+k] = 2 * y[i*l+(k*7)%independent]
		}
	}
	before := append([]float32(nil), y...)
	rank, err := orthonormalize(y, n, l)
	if err != nil {
		t.Fatal(err)
	}
	if rank != independent {
		t.Errorf("rank %d, want %d", rank, independent)
	}
	dot := func(a []float32, i, la int, b []float32, j, lb int) (sum float64) {
		for k := range n {
			sum += float64(a[k*la+i]) * float64(b[k*lb+j])
		}
		return sum
	}
	for i := range rank {
		for j := range i + 1 {
			want := 0.0
			if i == j {
				want = 1
			}
			if got := dot(y, i, rank, y, j, rank); math.Abs(got-want) > 1e-5 {
				t.Fatalf("the product of columns %d and %d is %v, want %v", i, j, got, want)
			}
		}
	}
	for j := range l {
		left := dot(before, j, l, before, j, l)
		whole := left
		for i := range rank {
			along := dot(before, j, l, y, i, rank)
			left -= along * along
		}
		if left > 1e-8*whole {
			t.Errorf("of column %d, %v of %v is outside the basis", j, left, whole)
		}
	}
}
