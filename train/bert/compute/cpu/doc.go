// Package cpu computes on the processor, in float32, through gonum's BLAS
// seam: a faster Sgemm registered with blas32.Use serves here too.
//
// An operation runs on the goroutine that calls it (gonum's Sgemm starts a few
// of its own): those who have several batches run them side by side.
//
// # Same text, same bits
//
// A row's result must not depend on the rows around it. It does not here,
// because every product is of the form C += A·B with B as it lies in memory,
// which gonum adds up in the order of the inner dimension for each row by
// itself. An Sgemm that is registered instead must keep to that: sums of a row
// that do not depend on the number of rows or on the row's place.
package cpu
