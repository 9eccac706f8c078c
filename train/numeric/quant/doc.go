// Package quant multiplies rows of float32 numbers by a matrix whose numbers are integers of eight bits, and
// of sixteen where it matters. It is for encoding: with AVX-512 VNNI a product takes about a third of the
// instructions that it takes in float32. Nothing here has a gradient.
//
// # Arithmetic
//
// Some columns of a row x and the rows of the matrix W (in × out) that meet them are loud, the others quiet.
// W[k][j] ≈ c[j]·w[k][j]/f[k], where w is an integer from −127 to 127, c is a scale per column and f a factor
// per row of W, a power of two. A row x becomes q[k] = round(x[k]·f[k]/s) + z from 0 to 255. Its scale s and its
// zero point z are chosen for each row, so that the quiet numbers from min(x·f, 0) to max(x·f, 0) take all of
// the 255 steps. Loud numbers have the same scales, but 2^b steps to one of them: p[k] = round(x[k]·f[k]·2^b/s),
// and w for them is as fine. Both take up to sixteen bits. Then
//
//	y[j] = (Σ (q[k] − z)·w[k][j] + round(Σ p[k]·w[k][j] / 4^b)) · s·c[j] + bias[j] + d[j]
//
// The first sum is over quiet columns, the second over loud ones. d is what the rounding of W takes, on
// average, from the product with a row of the sample that New gets (Nagel et al., "Data-Free Quantization
// through Weight Equalization and Bias Correction", ICCV 2019).
//
// The sums are exact, in 32 bits: b is at most 4 and less where w is large, and s is larger in a row whose loud
// numbers would overflow them. The roundings after the sums are done in the order of the formula and never
// fused. So every processor gives the same bits, and a row's result depends on nothing but the row.
//
// # Accuracy
//
// In models of the BERT family the columns of x are uneven: a few are ten times as large as the others, and alone
// would take nearly all of the 255 steps. So would their rows of W. The factors share that unevenness out between x
// and W (Xiao et al., "SmoothQuant", ICML 2023), and the columns where x gets largest, a quarter of them, are loud
// (compare Dettmers et al., "LLM.int8()", NeurIPS 2022, which takes them in 16-bit floating point), half of them in a
// fine matrix. What is left of float32 stands in docs/measurements/2026-11-23.md, "Int8 beside ONNX Runtime and
// OpenVINO".
//
// A row with an infinity or a NaN gives NaN in every column.
//
// # Method
//
// The matrix is packed once into panels as wide as a tile. A panel holds groups of consecutive k of all its
// columns, of two numbers in the loud part, of four (VNNI) or two (AVX2) in the quiet part, so that a group of a
// row of x, broadcast, meets a group of each column. A loud column costs twice what a quiet one does with VNNI. AVX2
// multiplies in 16 bits throughout, since its instruction for eight saturates; that takes as many
// instructions as float32, so the products gain nothing there.
package quant
