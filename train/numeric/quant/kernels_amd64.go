package quant

import (
	"math"
	"math/bits"

	"golang.org/x/sys/cpu"
)

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
		split: splitAVX512, extremes: extremesAVX2, roundLoud: roundLoudAVX2, tile: tile14x32,
		round: func(words []uint32, x, f []float32, inverse float32, zero int32) {
			n := len(x) &^ 15
			if n > 0 {
				round8(&words[0], &x[0], &f[:n][0], n, inverse, zero)
			}
			pack(words[n/4:], x[n:], f[n:], inverse, -zero, 255-zero, zero, 4)
		},
	}
}

func avx2() *kernels {
	return &kernels{
		name: "avx2", group: 2, height: 6, width: 16,
		split: plainSplit, extremes: extremesAVX2, roundLoud: roundLoudAVX2, tile: tile6x16,
		round: func(words []uint32, x, f []float32, inverse float32, zero int32) {
			roundAVX2(words, x, f, inverse, -zero, 255-zero)
		},
	}
}

func roundLoudAVX2(words []uint32, x, f []float32, inverse float32) {
	roundAVX2(words, x, f, inverse, -math.MaxInt16, math.MaxInt16)
}

func roundAVX2(words []uint32, x, f []float32, inverse float32, lowest, highest int32) {
	n := len(x) &^ 15
	if n > 0 {
		round16(&words[0], &x[0], &f[:n][0], n, inverse, lowest, highest)
	}
	pack(words[n/2:], x[n:], f[n:], inverse, lowest, highest, 0, 2)
}

func splitAVX512(quiet, loud, x []float32, mask []uint16) {
	n, l := len(x)&^15, 0
	if n > 0 {
		for _, b := range mask[:n/16] {
			l += bits.OnesCount16(b)
		}
		_, _ = quiet[n-l+behind-1], loud[l+behind-1]
		split(&quiet[0], &loud[0], &x[0], &mask[0], n)
	}
	plainSplit(quiet[n-l:], loud[l:], x[n:], mask[n/16:])
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
func round16(words *uint32, x, f *float32, n int, inverse float32, lowest, highest int32)

//go:noescape
func split(quiet, loud, x *float32, mask *uint16, n int)
