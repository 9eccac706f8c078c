package vector

import (
	"encoding/binary"
	"math"
)

// Half returns the IEEE 754 binary16 number nearest to x, the even one of two that are as near. Numbers
// of 65,520 and more in size become infinite.
func Half(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	size := bits & 0x7FFFFFFF
	switch {
	case size > 0x7F800000:
		return sign | 0x7E00 // NaN
	case size >= 0x47800000: // 2¹⁶
		return sign | 0x7C00
	case size >= 0x38800000: // 2⁻¹⁴, the smallest normal number: 13 bits go, the exponent's bias from 127 to 15
		size -= (127 - 15) << 23
		return sign | uint16(nearestEven(size, 13)) // a carry into the exponent is right, too
	case size >= 0x33000000: // 2⁻²⁵: at least half of the smallest number
		exponent := size >> 23
		return sign | uint16(nearestEven(size&0x7FFFFF|0x800000, 126-exponent))
	}
	return sign
}

// nearestEven returns n / 2^shift, rounded to nearest, ties to even.
func nearestEven(n, shift uint32) uint32 {
	half := uint32(1) << (shift - 1)
	return (n + half - 1 + n>>shift&1) >> shift
}

// FromHalf returns the value of a binary16 number, which float32 holds exactly.
func FromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10&0x1F), uint32(h&0x3FF)
	switch exponent {
	case 0: // fraction · 2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1F:
		return math.Float32frombits(sign | 0x7F800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// Numbers returns the numbers that little-endian data has, of 2 or 4 bytes each.
func Numbers[T ~string | ~[]byte](data T, size int) []float32 {
	out := make([]float32, len(data)/size)
	for i := range out {
		at := []byte(data[i*size : (i+1)*size])
		if size == 2 {
			out[i] = FromHalf(binary.LittleEndian.Uint16(at))
		} else {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(at))
		}
	}
	return out
}
