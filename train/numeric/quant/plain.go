package quant

import "unsafe"

// plain computes in Go, with the layout of AVX2.
func plain() *kernels {
	return &kernels{
		name: "go", group: 2, height: 6, width: 16,
		extremes: plainExtremes, round: plainRound, residues: plainResidues, tile: plainTile,
	}
}

func plainRound(words []uint32, x, f []float32, inverse float32, zero int32) {
	pack(words, x, f, inverse, zero, 2, 0)
}

// pack sets words to the steps of the numbers of x·f, plus add, group of them to a word.
func pack(words []uint32, x, f []float32, inverse float32, zero int32, group int, add int32) {
	clear(words)
	bits := 32 / group
	for k, v := range x {
		q := step(float32(v*f[k]), inverse, zero) + add
		words[k/group] |= uint32(q) << (32 - bits) >> (32 - bits) << (k % group * bits)
	}
}

func plainTile(t *tile) {
	const height, width = 6, 16
	stride, ldy := int(t.stride/4), int(t.ldy/4)
	a := unsafe.Slice(t.a, (height-1)*stride+t.groups)
	b := unsafe.Slice(t.b, t.groups*width)
	scales, column := unsafe.Slice(t.scales, height), unsafe.Slice(t.column, width)
	step := int(t.step / 4)
	base := unsafe.Slice(t.base, (height-1)*step+width)
	y := unsafe.Slice(t.y, (height-1)*ldy+width)
	for r := range height {
		var sums [width]int32
		for g, x := range a[r*stride:][:t.groups] {
			low, high := int32(int16(x)), int32(x)>>16
			for j, w := range b[g*width:][:width] {
				sums[j] += low*int32(int16(w)) + high*(int32(w)>>16)
			}
		}
		for j, sum := range sums {
			v := float32(float32(sum) * scales[r])
			v = float32(v * column[j])
			y[r*ldy+j] = v + base[r*step+j]
		}
	}
}
