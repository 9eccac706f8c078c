package quant

import (
	"math"
	"unsafe"
)

// plain computes in Go, with the layout of AVX2.
func plain() *kernels {
	return &kernels{
		name: "go", group: 2, height: 6, width: 16,
		split: plainSplit, extremes: plainExtremes, tile: plainTile,
		round: func(words []uint32, x, f []float32, inverse float32, zero int32) {
			pack(words, x, f, inverse, -zero, 255-zero, 0, 2)
		},
		roundLoud: func(words []uint32, x, f []float32, inverse float32) {
			pack(words, x, f, inverse, -math.MaxInt16, math.MaxInt16, 0, 2)
		},
	}
}

func plainTile(t *tile) {
	const height, width = 6, 16
	stride, ldy := int(t.stride/4), int(t.ldy/4)
	groups := t.loud + t.groups
	a := unsafe.Slice(t.a, (height-1)*stride+groups)
	b := unsafe.Slice(t.b, groups*width)
	scales, column := unsafe.Slice(t.scales, height), unsafe.Slice(t.column, width)
	bias := unsafe.Slice(t.bias, width)
	y := unsafe.Slice(t.y, (height-1)*ldy+width)
	for r := range height {
		var sums [width]int32
		add := func(from, to int) {
			for g, x := range a[r*stride:][from:to] {
				low, high := int32(int16(x)), int32(x)>>16
				for j, w := range b[(from+g)*width:][:width] {
					sums[j] += low*int32(int16(w)) + high*(int32(w)>>16)
				}
			}
		}
		add(0, t.loud)
		for j := range sums {
			sums[j] = (sums[j] + t.half) >> t.shift
		}
		add(t.loud, groups)
		for j, sum := range sums {
			v := float32(float32(sum) * scales[r])
			v = float32(v * column[j])
			y[r*ldy+j] = v + bias[j]
		}
	}
}
