package quant

import "golang.org/x/sys/cpu"

// fastest looks at what processor and operating system support.
func fastest() *kernels {
	switch {
	case cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512F && cpu.X86.HasAVX2:
		return vnni()
	case cpu.X86.HasAVX2:
		return avx2()
	}
	return plain()
}

func vnni() *kernels {
	return &kernels{
		name: "vnni", group: 4, height: 14, width: 32,
		extremes: extremesAVX2, residues: residuesAVX2, tile: tile14x32,
		round: func(words []uint32, x, f []float32, inverse float32, zero int32) {
			n := len(x) &^ 15
			if n > 0 {
				round8(&words[0], &x[0], &f[:n][0], n, inverse, zero)
			}
			pack(words[n/4:], x[n:], f[n:], inverse, zero, 4, zero)
		},
	}
}

func avx2() *kernels {
	return &kernels{
		name: "avx2", group: 2, height: 6, width: 16,
		extremes: extremesAVX2, residues: residuesAVX2, tile: tile6x16,
		round: func(words []uint32, x, f []float32, inverse float32, zero int32) {
			n := len(x) &^ 15
			if n > 0 {
				round16(&words[0], &x[0], &f[:n][0], n, inverse, zero)
			}
			pack(words[n/2:], x[n:], f[n:], inverse, zero, 2, 0)
		},
	}
}

func extremesAVX2(x, f []float32) (low, high float32, top uint32) {
	n := len(x) &^ 15
	low, high, top = plainExtremes(x[n:], f[n:])
	if n > 0 {
		l, h, t := extremes(&x[0], &f[:n][0], n)
		low, high, top = min(low, l), max(high, h), max(top, t)
	}
	return low, high, top
}

func residuesAVX2(out, x, f []float32, inverse float32, zero int32) {
	n := len(x) &^ 15
	if n > 0 {
		residues(&out[:n][0], &x[0], &f[:n][0], n, inverse, zero)
	}
	plainResidues(out[n:], x[n:], f[n:], inverse, zero)
}

//go:noescape
func tile14x32(t *tile)

//go:noescape
func tile6x16(t *tile)

// In all of them n is a positive multiple of 16.

//go:noescape
func extremes(x, f *float32, n int) (low, high float32, top uint32)

//go:noescape
func round8(words *uint32, x, f *float32, n int, inverse float32, zero int32)

//go:noescape
func round16(words *uint32, x, f *float32, n int, inverse float32, zero int32)

//go:noescape
func residues(out, x, f *float32, n int, inverse float32, zero int32)
