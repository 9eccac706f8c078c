package cpu

import (
	"giantstream/train/encoders/bert/compute"
)

// Pool implements compute.Forward.
func (*Backend) Pool(dst, x compute.Buffer, b compute.Batch, width int, p compute.Pooling) {
	out, rows := numbers(dst), numbers(x)
	for i := range b.Texts() {
		first, end := int(b.Start[i]), int(b.Start[i+1])
		row := out[i*width : (i+1)*width]
		copy(row, rows[first*width:])
		if p == compute.First {
			continue
		}
		for r := first + 1; r < end; r++ {
			for j, v := range rows[r*width : (r+1)*width] {
				row[j] += v
			}
		}
		for j := range row {
			row[j] /= float32(end - first)
		}
	}
}

// PoolBackward implements compute.Backward.
func (*Backend) PoolBackward(dx, dy compute.Buffer, b compute.Batch, width int, p compute.Pooling) {
	out, slope := numbers(dx), numbers(dy)
	for i := range b.Texts() {
		first, end := int(b.Start[i]), int(b.Start[i+1])
		d, rows := slope[i*width:(i+1)*width], out[first*width:end*width]
		if p == compute.First {
			copy(rows, d)
			clear(rows[width:])
			continue
		}
		share := 1 / float32(end-first)
		for j, v := range d {
			rows[j] = v * share
		}
		for r := width; r < len(rows); r += width {
			copy(rows[r:r+width], rows)
		}
	}
}

// Drop implements compute.Forward.
func (be *Backend) Drop(dst, x compute.Buffer, b compute.Batch, width int, d compute.Dropout) {
	out, in := numbers(dst), numbers(x)
	if b.Seeds == nil || d.Rate == 0 {
		copy(out[:b.Rows()*width], in)
		return
	}
	be.forEachBlock(b.Texts(), blockTexts, func(_ *scratch, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			first, end := int(b.Start[i])*width, int(b.Start[i+1])*width
			d.DroppedFor(b.Seeds[i]).Apply(out[first:end], in[first:end], 0)
		}
	})
}

// blockTexts is how many texts a goroutine takes at a time.
const blockTexts = 4
