package xrt

import "giantstream/train"

// What tests from outside, which may use packages that build on this one, share
// with those from inside.
var (
	NewWords = func(g *train.Graph, dim int, seed uint64) train.Network { return newWords(g, dim, seed) }
	Problem  = problem
	All      = all
)
