// Package blas multiplies float32 matrices with AVX2 and AVX-512 kernels, as an implementation of
// gonum's BLAS interface. A program registers it once, at its start:
//
//	blas32.Use(blas.New())
//
// and every product through blas32 (train/encoders/bert/compute/cpu,
// train/numeric, featurize/projection, …) runs on it. Sgemm, Sdot and
// Saxpy are ours, the rest is gonum's. New chooses by what the processor and
// the operating system offer; without AVX2 and FMA, and off amd64, all is gonum's.
//
// # Same row, same bits
//
// An element of C is a sum over k in one fixed order, whatever m and n, the
// number of goroutines, the element's place and the storage of A and B:
//
//	s = 0; for each block of depth 384 of k: t = fma(…fma(a₀, b₀, 0)…);  s = fma(alpha, t, s)
//
// starting from beta·C (from the first alpha·t if beta is 0). Tiles at an edge and single rows run
// the same sums. So the embedding of a text does not depend on the batch that it is in, nor on the
// machine's cores. AVX2 and AVX-512 give the same bits; gonum's sums, on other machines, differ in
// the last ones. The same holds for Sdot and Saxpy: their lanes are fixed, whatever the address.
//
// # Method
//
// The loops are those of Goto and van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (ACM TOMS 34(3), 2008): B is packed into panels as wide
// as a tile (32 columns, or 16), a tile of C (14×32 in 28 AVX-512 registers, or
// 6×16 in 12 AVX2 ones) stays in registers over a block of k, and the rows of A
// that meet a panel fit into the second-level cache. A is broadcast element by
// element, so it is read where it lies; a block of it is copied only if it is
// stored transposed or if its rows would fight over cache sets.
//
// A large product is cut over idle cores: columns first, since then nothing is packed twice.
// Running products are counted, so callers that multiply on several goroutines get no additional
// ones.
package blas
