package numeric

import (
	"math"
	"math/bits"
)

// firstGroup is how many dimensions the first group of MixGroups has.
const firstGroup = 64

// MixGroups multiplies axes (rows of dim numbers), as PrincipalAxes returns them, by a matrix that mixes the
// dimensions within each of the groups [0, 64), [64, 128), [128, 256), … and none across: the first
// 64, 128, 256, … dimensions of rotated rows span what they did, and so have the same cosines, but within a
// group all dimensions have about the same energy.
//
// Ordered by energy alone, the first numbers of a row are many times as large as most others. A number
// of 8 bits per dimension with one scale for all then spends its steps on them. Mixed, the largest number of a row
// is smaller by half.
//
// A group of n dimensions is mixed by the Hadamard matrix, or by the discrete Hartley transform where n
// is no power of two. Both are orthogonal.
func MixGroups(axes []float32, dim int) {
	row := make([]float64, dim)
	for at, end := 0, firstGroup; at < dim; at, end = end, 2*end {
		end = min(end, dim)
		n := end - at
		mix := mixing(n)
		for i := range len(axes) / dim {
			group := axes[i*dim+at : i*dim+end]
			clear(row[:n])
			for k, x := range group {
				for j := range n {
					row[j] += float64(x) * mix[k*n+j]
				}
			}
			for j := range group {
				group[j] = float32(row[j])
			}
		}
	}
}

// mixing returns an orthogonal n×n matrix whose numbers are about the same size.
func mixing(n int) []float64 {
	m := make([]float64, n*n)
	scale := 1 / math.Sqrt(float64(n))
	for i := range n {
		for j := range n {
			v := 1.0
			if n&(n-1) == 0 {
				if bits.OnesCount(uint(i&j))%2 == 1 {
					v = -1
				}
			} else {
				sin, cos := math.Sincos(2 * math.Pi * float64(i*j%n) / float64(n))
				v = sin + cos
			}
			m[i*n+j] = scale * v
		}
	}
	return m
}
