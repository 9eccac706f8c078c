package cpu

import (
	"math"

	"giantstream/train/encoders/bert/compute"
)

// AddNorm implements compute.Forward.
func (be *Backend) AddNorm(dst, x, residual compute.Buffer, rows int, n *compute.Norm) {
	out, a, b := numbers(dst), numbers(x), numbers(residual)
	gain, bias := numbers(n.Gain), numbers(n.Bias)
	w := n.Width
	be.forEachBlock(rows, blockRows, func(_ *scratch, _, lo, hi int) {
		for r := lo * w; r < hi*w; r += w {
			row := out[r : r+w]
			sum(row, a[r:r+w], b[r:r+w])
			normalize(row, gain, bias, n.Epsilon)
		}
	})
}

// sum is dst = x + y.
func sum(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for j := range dst {
		dst[j] = x[j] + y[j]
	}
}

// moments returns what layer normalization makes of a row: x becomes
// (x − shift)·scale.
func moments(row []float32, epsilon float64) (shift, scale float32) {
	var sum float64
	for _, v := range row {
		sum += float64(v)
	}
	mean := sum / float64(len(row))
	var squares float64
	for _, v := range row {
		d := float64(v) - mean
		squares += d * d
	}
	return float32(mean), float32(1 / math.Sqrt(squares/float64(len(row))+epsilon))
}

// normalize is layer normalization of one row, in place.
func normalize(row, gain, bias []float32, epsilon float64) {
	shift, scale := moments(row, epsilon)
	gain, bias = gain[:len(row)], bias[:len(row)]
	for j, v := range row {
		row[j] = (v-shift)*scale*gain[j] + bias[j]
	}
}

// AddNormBackward implements compute.Backward.
func (be *Backend) AddNormBackward(g *compute.Norm, dx, dy, x, residual compute.Buffer, rows int, n *compute.Norm) {
	out, slope, a, b := numbers(dx), numbers(dy), numbers(x), numbers(residual)
	w := n.Width
	be.normsBackward(g, rows, n, func(row []float32, r int) []float32 {
		sum(row, a[r*w:(r+1)*w], b[r*w:(r+1)*w])
		return slope[r*w : (r+1)*w]
	}, out)
}

// normsBackward takes gradients back through the normalization of rows. input sets row to the input
// of normalization r and returns the gradient of its result, which may lie in dx.
func (be *Backend) normsBackward(g *compute.Norm, rows int, n *compute.Norm, input func(row []float32,
	r int) []float32, dx []float32) {
	w := n.Width
	gain := numbers(n.Gain)
	all := be.scratch.Get().(*scratch)
	defer be.scratch.Put(all)
	// A block's sums for gain and for bias, in float32 over its few rows.
	blocks := (rows + blockRows - 1) / blockRows
	all.blocks = resize(all.blocks, blocks*2*w)
	clear(all.blocks)
	be.forEachBlock(rows, blockRows, func(s *scratch, block, lo, hi int) {
		s.rows = resize(s.rows, w)
		dGain, dBias := all.blocks[block*2*w:][:w], all.blocks[block*2*w+w:][:w]
		for r := lo; r < hi; r++ {
			dy := input(s.rows, r)
			normBackward(dx[r*w:(r+1)*w], dy, s.rows, gain, dGain, dBias, n.Epsilon)
		}
	})
	dGain, dBias := numbers(g.Gain), numbers(g.Bias)
	for j := range w {
		var ofGain, ofBias float64
		for block := range blocks {
			ofGain += float64(all.blocks[block*2*w+j])
			ofBias += float64(all.blocks[block*2*w+w+j])
		}
		dGain[j] += float32(ofGain)
		dBias[j] += float32(ofBias)
	}
}

// normBackward is normsBackward for one row, which becomes x̂ = (row − mean)/σ:
//
//	dx = (dx̂ − mean(dx̂) − x̂·mean(dx̂·x̂)) / σ,  dx̂ = dy·gain
func normBackward(dx, dy, row, gain, dGain, dBias []float32, epsilon float64) {
	w := len(row)
	dx, dy, gain, dGain, dBias = dx[:w], dy[:w], gain[:w], dGain[:w], dBias[:w]
	shift, scale := moments(row, epsilon)
	var sum, product float64
	for j, v := range row {
		unit := (v - shift) * scale
		d := dy[j] * gain[j]
		row[j] = unit
		sum += float64(d)
		product += float64(d * unit)
		dGain[j] += dy[j] * unit
		dBias[j] += dy[j]
	}
	m, p := float32(sum/float64(w)), float32(product/float64(w))
	for j, unit := range row {
		dx[j] = (dy[j]*gain[j] - m - unit*p) * scale
	}
}
