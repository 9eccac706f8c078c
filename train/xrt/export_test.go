package xrt

// What tests from outside, which may use packages that build on this one, share
// with those from inside.
var (
	NewWords = func(dim int, seed uint64) Network { return newWords(dim, seed) }
	Problem  = problem
)
