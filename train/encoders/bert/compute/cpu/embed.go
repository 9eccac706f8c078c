package cpu

import "giantstream/train/encoders/bert/compute"

// Embed implements compute.Forward.
func (be *Backend) Embed(dst compute.Buffer, b compute.Batch, e *compute.Embedding) {
	w := e.Norm.Width
	out, gain, bias := numbers(dst), numbers(e.Norm.Gain), numbers(e.Norm.Bias)
	words, positions, kind := numbers(e.Words), numbers(e.Positions), numbers(e.Types)[:w]
	place := places(b)
	be.forEachBlock(b.Rows(), blockRows, func(_ *scratch, _, lo, hi int) {
		for r := lo; r < hi; r++ {
			row := out[r*w : (r+1)*w]
			vectors(row, words[int(b.IDs[r])*w:], positions[int(place[r])*w:], kind)
			normalize(row, gain, bias, e.Norm.Epsilon)
		}
	})
}

// vectors sums the three vectors of a token.
func vectors(row, word, position, kind []float32) {
	word, position, kind = word[:len(row)], position[:len(row)], kind[:len(row)]
	for j := range row {
		row[j] = word[j] + position[j] + kind[j]
	}
}

// EmbedBackward implements compute.Backward.
func (be *Backend) EmbedBackward(g *compute.Embedding, dy compute.Buffer, b compute.Batch, e *compute.Embedding) {
	w := e.Norm.Width
	words, positions, kind := numbers(e.Words), numbers(e.Positions), numbers(e.Types)[:w]
	d := numbers(dy)
	place := places(b)
	be.normsBackward(&g.Norm, b.Rows(), &e.Norm, func(row []float32, r int) []float32 {
		vectors(row, words[int(b.IDs[r])*w:], positions[int(place[r])*w:], kind)
		return d[r*w : (r+1)*w]
	}, d)

	// Several rows may have the same word or position, so the rows are added one after another.
	dWords, dPositions, dKind := numbers(g.Words), numbers(g.Positions), numbers(g.Types)[:w]
	for r, id := range b.IDs {
		row := d[r*w : (r+1)*w]
		add(dWords[int(id)*w:][:w], row)
		add(dPositions[int(place[r])*w:][:w], row)
		add(dKind, row)
	}
}

// places returns the place of each token within its text.
func places(b compute.Batch) []int32 {
	if b.Places != nil {
		return b.Places
	}
	place := make([]int32, b.Rows())
	for i := range b.Texts() {
		for r := b.Start[i]; r < b.Start[i+1]; r++ {
			place[r] = r - b.Start[i]
		}
	}
	return place
}
