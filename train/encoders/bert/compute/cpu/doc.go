// Package cpu is a compute.Backend for the processor, in float32. Its products go through gonum's
// BLAS interface: a program that calls blas32.Use(blas.New()) (train/numeric/blas) runs them on the
// kernels of that package.
//
// An operation runs on the goroutine that calls it, which suits callers that run several batches
// side by side. For callers with one batch, Spread returns a backend that splits the rows of an
// operation over goroutines. Large products spread over idle cores by themselves.
//
// # Same text, same bits
//
// A row's result must not depend on the rows around it. In the forward pass every product has the
// form C += A·B with B as stored. For this form, neither in gonum nor in train/numeric/blas do the
// sums of a row depend on the number of rows or on the row's place. Any other Sgemm that is
// registered must guarantee the same. Nothing depends on the number of goroutines either: work is
// cut into blocks that depend on its size alone, and sums of blocks are added in their order.
//
// Sums over all rows (of a bias, a normalization) are float32 within a block
// and float64 over blocks; means, variances and norms of gradients are float64.
package cpu
