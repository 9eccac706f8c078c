package simd

import "math"

// AddNorm sets dst to the layer normalization of x + residual: (v − mean)/√(variance + epsilon)·gain + bias.
// All slices have dst's length; dst may be x or residual. Sums are in float32, in eight lanes, so this
// is faster and less accurate than sums in float64. Nothing is fused: the bits are the same everywhere.
func AddNorm(dst, x, residual, gain, bias []float32, epsilon float64) {
	n := len(dst)
	x, residual, gain, bias = x[:n], residual[:n], gain[:n], bias[:n]
	if n == 0 || n%8 != 0 || !accelerated() {
		addNorm(dst, x, residual, gain, bias, epsilon)
		return
	}
	mean := addSum(&dst[0], &x[0], &residual[0], n) / float32(n)
	variance := squares(&dst[0], n, mean) / float32(n)
	affine(&dst[0], &gain[0], &bias[0], n, mean, inverseRoot(variance, epsilon))
}

func inverseRoot(variance float32, epsilon float64) float32 {
	return float32(1 / math.Sqrt(float64(variance)+epsilon))
}

func addNorm(dst, x, residual, gain, bias []float32, epsilon float64) {
	n := float32(len(dst))
	var sums, squares [8]float32
	for j, v := range x {
		dst[j] = v + residual[j]
		sums[j%8] += dst[j]
	}
	mean := across(sums) / n
	for j, v := range dst {
		d := v - mean
		squares[j%8] += float32(d * d)
	}
	scale := inverseRoot(across(squares)/n, epsilon)
	for j, v := range dst {
		dst[j] = float32(float32((v-mean)*scale)*gain[j]) + bias[j]
	}
}

// across adds lanes up in the order of the registers' halves.
func across(l [8]float32) float32 {
	a := [4]float32{l[0] + l[4], l[1] + l[5], l[2] + l[6], l[3] + l[7]}
	return (a[0] + a[2]) + (a[1] + a[3])
}
