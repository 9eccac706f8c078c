// Package simd computes the operations of a transformer between its matrix products: softmax of a
// row, GELU and its derivative. With AVX2 it computes eight numbers at a time, elsewhere one by
// one. Slices may be the same but must not overlap otherwise. An element's result depends on its
// own inputs (for softmax, on its row) and not on its place in memory.
//
// # Accuracy
//
// exp has a relative error below 2·10⁻⁷ for arguments from −87 to 0, and is 0
// below: that is where float32 runs out of normal numbers. GELU, x·Φ(x), comes from Φ(−t) =
// exp(−t²/2)·M(t), with Mills' ratio M as a polynomial in 1/(1 + 0.3·t); the rounding of t²
// is carried along. So its relative error is below 10⁻⁶ down to x = −13.19,
// where it becomes 0, and the derivative's absolute error is below 3·10⁻⁷. NaN
// stays NaN; the tests walk the range of float32.
//
// Both ways use the same polynomials, but only AVX2 fuses multiply and add, so
// they differ in the last bits.
package simd
