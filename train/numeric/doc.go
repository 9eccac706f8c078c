// Package numeric holds the arithmetic that training and evaluation share: dense
// kernels on float32 and row-major matrices, random numbers, and the Adam optimizer
// with its schedule.
//
// Products of matrices go through gonum's BLAS interface, so they use the implementation that is
// registered with blas32.Use (package blas).
//
// # The same bits on any number of CPUs
//
// Axpy, and Gemm without a transposed B, add in index order. Dot adds in lanes that
// depend on b's address modulo 16. That is the same in every run for the same place in
// an array, since Go aligns arrays of more than 24 bytes to 16.
//
// A random number is a function of a seed and of the coordinates it is drawn for
// (epoch, node, attempt). It does not depend on what was drawn before, so work can be
// split, reordered and resumed without changing a result.
package numeric
