package numeric

import "math"

// BF16 is a number as bfloat16: the upper half of a float32, rounded to nearest, ties to even. It must be finite.
func BF16(x float32) uint16 {
	u := math.Float32bits(x)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// FromBF16 is the number that a bfloat16 stands for.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
