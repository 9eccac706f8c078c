// Package quant multiplies rows of float32 numbers by a matrix whose numbers are pairs of integers of eight
// bits. It is for encoding: with AVX-512 VNNI a product takes half as many instructions as one in float32.
// Nothing here has a gradient.
//
// # Arithmetic
//
// A matrix W of in × out is stored as W[k][j] ≈ c[j]·(w[k][j] + v[k][j]/254) / f[k], where w and v are integers
// from −127 to 127, c is a scale per column and f a factor per row of W, a power of two. A row x becomes
// q[k] = round(x[k]·f[k]/s) + z from 0 to 255. Its scale s and its zero point z are chosen for each row, so
// that the numbers from min(x·f, 0) to max(x·f, 0) take all of the 255 steps. Then
//
//	y[j] = Σ (q[k] − z)·w[k][j] · s · c[j] + bias[j] + Σ (q[k] − z)·v[k][j] · s · c[j]/254
//
// A fine matrix also takes what rounding to q left of a row, in steps of s/254: p[k] = round((x[k]·f[k]/s −
// (q[k] − z))·254), from −127 to 128, and adds Σ p·w · (s/254) · c[j].
//
// The sums are exact, in 32 bits. The roundings after them are done in the order of the formula and never
// fused. So every processor gives the same bits, and a row's result depends on nothing but the row.
//
// Where levels tell which columns of x get largest, a 32nd of them, the loud ones, are left out of q (f is 0)
// and multiplied in float32, through gonum's BLAS interface: Dettmers et al., "LLM.int8()", NeurIPS 2022.
// Those products have the bits of the implementation that is registered there.
//
// # Accuracy
//
// The columns of x that models of the BERT family have are uneven: a few are ten times as large as the
// others, and would take nearly all of the 255 steps for themselves. They are the loud ones. The factors even
// out the others (Xiao et al., "SmoothQuant", ICML 2023). They move the unevenness into W. With w alone, the
// rounding of W was two thirds of the error of MiniLM's embeddings, hence v: it doubles the arithmetic, and takes
// that part away (docs/MEASUREMENTS.md, "Int8 beside ONNX Runtime and OpenVINO").
//
// What is left is the rounding of x, most of it where x comes from GELU. A fine matrix takes that away for half as
// much arithmetic again.
//
// A row with a number that is infinite or none gives NaN in every column.
//
// # Method
//
// The matrix is packed once into panels as wide as a tile. A panel holds groups of consecutive k, four
// (VNNI) or two (AVX2), of all its columns, so that a group of a row of x, broadcast, meets a group
// of each column. AVX2 multiplies in 16 bits, since its instruction for eight saturates; it takes
// at least as many instructions as float32, so there is nothing to gain from int8 there but the same embeddings.
package quant
