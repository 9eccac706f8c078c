// Package cpu computes on the processor, in float32, through gonum's BLAS
// seam: a program that calls blas32.Use(blas.New()) (train/blas) has these
// operations run on its kernels.
//
// An operation runs on the goroutine that calls it, for those who have several
// batches and run them side by side; Spread gives a backend whose operations
// cut their rows over goroutines, for those who have one. (Large products spread
// over idle cores by themselves.)
//
// # Same text, same bits
//
// A row's result must not depend on the rows around it. In the forward pass it does
// not, because every product is of the form C += A·B with B as it lies in
// memory, whose sums of a row neither gonum nor train/blas let depend on the number
// of rows or on the row's place. An Sgemm that is registered instead must keep
// to that. Nor does anything depend on the number of goroutines: work is cut into blocks
// that depend on its size alone, and sums of blocks are added in their order.
//
// Sums over all rows (of a bias, a normalisation) are float32 within a block
// and float64 over blocks; means, variances and norms of gradients are float64.
package cpu
