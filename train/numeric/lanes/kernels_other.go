//go:build !amd64

package lanes

func accelerated() bool { return false }

func project(out, w []float32, index []int32, value []float32) { panic("unreachable") }
func add(w, d []float32, index []int32, value []float32)       { panic("unreachable") }
func step(next, delta, margin, sign, beta *float32, n int, d, inverse float32) (most float32) {
	panic("unreachable")
}
func atLeast(x *float32, n int, least float32) (which uint64) { panic("unreachable") }
