package cpu

import "giantstream/train/bert/compute"

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
