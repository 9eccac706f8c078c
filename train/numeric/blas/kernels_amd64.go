package blas

import "golang.org/x/sys/cpu"

// fastest looks at what processor and operating system support.
func fastest() *kernels {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return avx512()
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return avx2()
	}
	return nil
}

func avx512() *kernels {
	k := avx2()
	k.name, k.width = "avx512", 32
	k.tiles = []tile{{14, tile14x32}, {4, tile4x32}, {1, tile1x32}}
	return k
}

func avx2() *kernels {
	return &kernels{
		name: "avx2", width: 16,
		tiles:      []tile{{6, tile6x16}, {3, tile3x16}, {1, tile1x16}},
		transpose8: transpose8,
		dot:        dot,
		axpy:       axpy,
	}
}

//go:noescape
func tile14x32(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32,
	ldc uintptr, add bool)

//go:noescape
func tile4x32(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr,
	add bool)

//go:noescape
func tile1x32(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr,
	add bool)

//go:noescape
func tile6x16(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr,
	add bool)

//go:noescape
func tile3x16(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr,
	add bool)

//go:noescape
func tile1x16(k int, a *float32, rs, cs uintptr, b *float32, bs uintptr, alpha float32, c *float32, ldc uintptr,
	add bool)

//go:noescape
func transpose8(dst *float32, ds uintptr, src *float32, ss uintptr, blocks int)

//go:noescape
func dot(n int, x, y *float32) float32

//go:noescape
func axpy(n int, alpha float32, x, y *float32)
