package live

import "math"

// chunk is how many rows are allocated together.
const chunk = 1024

// vectors are rows of dim numbers that grow without being copied.
type vectors struct {
	dim    int
	n      int
	chunks [][]float32
}

func (v *vectors) grow(n int) {
	for v.n = max(v.n, n); len(v.chunks)*chunk < v.n; {
		v.chunks = append(v.chunks, make([]float32, chunk*v.dim))
	}
}

func (v *vectors) row(i int32) []float32 {
	at := int(i) % chunk * v.dim
	return v.chunks[int(i)/chunk][at : at+v.dim : at+v.dim]
}

// unit writes x brought to length 1 to out, or reports that x has no
// direction: it is zero or not finite.
func unit(x, out []float32) bool {
	var square float64
	for _, v := range x {
		square += float64(float64(v) * float64(v))
	}
	if !(square > 0) || math.IsInf(square, 1) {
		return false
	}
	scale := 1 / math.Sqrt(square)
	for i, v := range x {
		out[i] = float32(float64(v) * scale)
	}
	return true
}
