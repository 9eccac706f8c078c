// Package lanes is what linear classifiers with the same rows and different
// targets share: their weights lie side by side, one lane each, so that a
// number of a row is read once for all of them and meets them in one vector
// register or a few.
//
// Weights are a matrix of columns × n lanes, n one of 8, 16, 32 and 64 (Width).
// A row is sparse: columns and values. AVX2 where the processor has it, plain Go
// elsewhere; only AVX2 fuses multiply and add, so they differ in the last bits. On
// one machine a lane's results depend on nothing but its own inputs and n.
package lanes
