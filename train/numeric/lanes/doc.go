// Package lanes has the kernels for linear classifiers that are trained on the same rows with
// different targets. Their weights lie side by side, one lane per classifier, so a number of a row
// is read once and applied to all classifiers in one vector register or a few.
//
// Weights are a matrix of columns × n lanes, n one of 8, 16, 32 and 64 (Width). A row is sparse:
// columns and values. The kernels use AVX2 where the processor has it and plain Go elsewhere. Only
// AVX2 fuses multiply and add, so the two differ in the last bits. On one machine a lane's results
// depend only on its own inputs and n.
package lanes
