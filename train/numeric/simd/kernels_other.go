//go:build !amd64

package simd

func accelerated() bool { return false }

func gelu(dst, x *float32, n int)                   { panic("unreachable") }
func geluSlope(dst, d, x *float32, n int)           { panic("unreachable") }
func maximum(x *float32, n int) float32             { panic("unreachable") }
func expSum(x *float32, n int, top float32) float32 { panic("unreachable") }
func scale(x *float32, n int, f float32)            { panic("unreachable") }
func fastGELU(dst, x *float32, n int)               { panic("unreachable") }

func addSum(dst, x, y *float32, n int) float32                  { panic("unreachable") }
func squares(x *float32, n int, mean float32) float32           { panic("unreachable") }
func affine(x, gain, bias *float32, n int, mean, scale float32) { panic("unreachable") }
