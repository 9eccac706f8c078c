package cpu

import "giantstream/train/bert/compute"

// Drop implements compute.Forward.
func (be *Backend) Drop(dst, x compute.Buffer, b compute.Batch, width int, d compute.Dropout) {
	out, in := numbers(dst), numbers(x)
	if b.Seeds == nil || d.Rate == 0 {
		copy(out[:b.Rows()*width], in)
		return
	}
	be.each(b.Texts(), blockTexts, func(_ *scratch, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			first, end := int(b.Start[i])*width, int(b.Start[i+1])*width
			d.Of(b.Seeds[i]).Apply(out[first:end], in[first:end], 0)
		}
	})
}

// blockTexts is how many texts a goroutine takes at a time.
const blockTexts = 4
