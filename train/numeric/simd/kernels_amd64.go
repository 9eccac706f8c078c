package simd

import "golang.org/x/sys/cpu"

func accelerated() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

// In all of them n is a positive multiple of 8.

//go:noescape
func gelu(dst, x *float32, n int)

//go:noescape
func geluSlope(dst, d, x *float32, n int)

// maximum may pass over NaN.
//
//go:noescape
func maximum(x *float32, n int) float32

// expSum sets x to exp(x − top), and returns the sum.
//
//go:noescape
func expSum(x *float32, n int, top float32) float32

//go:noescape
func scale(x *float32, n int, f float32)

//go:noescape
func fastGELU(dst, x *float32, n int)

// addSum sets dst to x + y, and returns the sum.
//
//go:noescape
func addSum(dst, x, y *float32, n int) float32

// squares returns the sum of (x − mean)².
//
//go:noescape
func squares(x *float32, n int, mean float32) float32

// affine sets x to (x − mean)·scale·gain + bias.
//
//go:noescape
func affine(x, gain, bias *float32, n int, mean, scale float32)
