package cpu

import "giantstream/train/bert/compute"

// Embed implements compute.Forward.
func (be *Backend) Embed(dst compute.Buffer, b compute.Batch, e *compute.Embedding) {
	w := e.Norm.Width
	out, gain, bias := numbers(dst), numbers(e.Norm.Gain), numbers(e.Norm.Bias)
	words, positions, kind := numbers(e.Words), numbers(e.Positions), numbers(e.Types)[:w]
	be.each(b.Texts(), blockTexts, func(_ *scratch, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			first := int(b.Start[i])
			for r := first; r < int(b.Start[i+1]); r++ {
				row := out[r*w : (r+1)*w]
				vectors(row, words[int(b.IDs[r])*w:], positions[(r-first)*w:], kind)
				normalize(row, gain, bias, e.Norm.Epsilon)
			}
		}
	})
}

// blockTexts is how many texts a goroutine takes at a time.
const blockTexts = 4

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
		vectors(row, words[int(b.IDs[r])*w:], positions[place[r]*w:], kind)
		return d[r*w : (r+1)*w]
	}, d)

	// Rows of one word, or of one place, meet: they are added one after another.
	dWords, dPositions, dKind := numbers(g.Words), numbers(g.Positions), numbers(g.Types)[:w]
	for r, id := range b.IDs {
		row := d[r*w : (r+1)*w]
		add(dWords[int(id)*w:][:w], row)
		add(dPositions[place[r]*w:][:w], row)
		add(dKind, row)
	}
}

// places returns the place of each token within its text.
func places(b compute.Batch) []int {
	place := make([]int, b.Rows())
	for i := range b.Texts() {
		for r := b.Start[i]; r < b.Start[i+1]; r++ {
			place[r] = int(r - b.Start[i])
		}
	}
	return place
}
