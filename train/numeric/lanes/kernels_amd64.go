package lanes

import "golang.org/x/sys/cpu"

func accelerated() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

func project(out, w []float32, index []int32, value []float32) {
	switch len(out) {
	case 8:
		project8(&out[0], &w[0], &index[0], &value[0], len(index))
	case 16:
		project16(&out[0], &w[0], &index[0], &value[0], len(index))
	case 32:
		project32(&out[0], &w[0], &index[0], &value[0], len(index))
	default:
		project64(&out[0], &w[0], &index[0], &value[0], len(index))
	}
}

func add(w, d []float32, index []int32, value []float32) {
	switch len(d) {
	case 8:
		add8(&w[0], &d[0], &index[0], &value[0], len(index))
	case 16:
		add16(&w[0], &d[0], &index[0], &value[0], len(index))
	case 32:
		add32(&w[0], &d[0], &index[0], &value[0], len(index))
	default:
		add64(&w[0], &d[0], &index[0], &value[0], len(index))
	}
}

// In all of them count is positive.

//go:noescape
func project8(out, w *float32, index *int32, value *float32, count int)

//go:noescape
func project16(out, w *float32, index *int32, value *float32, count int)

//go:noescape
func project32(out, w *float32, index *int32, value *float32, count int)

//go:noescape
func project64(out, w *float32, index *int32, value *float32, count int)

//go:noescape
func add8(w, d *float32, index *int32, value *float32, count int)

//go:noescape
func add16(w, d *float32, index *int32, value *float32, count int)

//go:noescape
func add32(w, d *float32, index *int32, value *float32, count int)

//go:noescape
func add64(w, d *float32, index *int32, value *float32, count int)

// step is Step of n lanes, with the curvature's inverse.
//
//go:noescape
func step(next, delta, margin, sign, beta *float32, n int, d, inverse float32) (most float32)

//go:noescape
func atLeast(x *float32, n int, least float32) (which uint64)
