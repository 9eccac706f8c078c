// Package vector brings vectors to length 1, and numbers to 16 bits, to the same bits on every machine: label
// trees and published embeddings depend on it.
package vector

import "math"

// Normalize scales x to length 1 and returns its former length. A zero vector stays as it is.
func Normalize(x []float32) float32 {
	// The conversion keeps machines from fusing the product with the sum. The product of two float32s is exact in
	// float64, so that would change no bit, but .ci/portable need not know.
	var square float64
	for _, v := range x {
		square += float64(float64(v) * float64(v))
	}
	if square == 0 {
		return 0
	}
	length := math.Sqrt(square)
	scale := 1 / length
	for i, v := range x {
		x[i] = float32(float64(v) * scale)
	}
	return float32(length)
}
