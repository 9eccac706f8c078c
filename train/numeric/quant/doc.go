// Package quant multiplies rows of float32 numbers by a matrix whose numbers are integers of eight bits. It
// is for encoding: a product costs a quarter (AVX-512 VNNI) or a half (AVX2) of the arithmetic of a
// float32 product, and the matrix a quarter of its memory. Nothing here has a gradient.
//
// # Arithmetic
//
// A matrix W of in × out is stored as W[k][j] ≈ c[j]·w[k][j] / f[k], where w is an integer from −127 to 127,
// c a scale per column and f a factor per row of W, a power of two. A row x becomes q[k] = round(x[k]·f[k]/s) + z
// from 0 to 255. Its scale s and its zero point z are chosen for each row so that its least number and
// its greatest are 0 and 255, or the number 0 is where all have one sign. Then
//
//	y[j] = Σ (q[k] − z)·w[k][j] · s · c[j] + bias[j]
//
// The sum is exact, in 32 bits. The four roundings after it (to float32, two products, a sum) are done
// in that order and never fused. So every processor gives the same bits, and a row's result depends on
// nothing but the row.
//
// The factors even out the columns of x: where one of them is far larger than the others, as in models
// of the BERT family, it would take nearly all of the 255 steps for itself (Xiao et al., "SmoothQuant",
// ICML 2023). Factors that are powers of two cost no rounding.
//
// A row with a number that is infinite or none gives NaN in every column.
//
// # Method
//
// The matrix is packed once into panels as wide as a tile. A panel holds groups of consecutive k, four
// (VNNI) or two (AVX2), of all its columns, so that a group of a row of x, broadcast, meets a group
// of each column. AVX2 multiplies in 16 bits: its instruction for eight saturates.
package quant
