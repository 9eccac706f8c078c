package answer

import (
	"math"
	"slices"

	"giantstream/train/encoders/hybrid"
)

// beside is how long the views of nodes are that are not of their texts. A question that lacks such a view, such as a
// text, has a lower cosine with nodes that have it, whatever their texts say: an item that many have ordered would come
// behind one that nobody has. So the question is compared with the views that it has itself. That is as exact as the
// axes of the embeddings keep views apart, so that a cosine may exceed 1, which is cut.
type beside struct {
	views   hybrid.Views
	squares []float32 // of the lengths, of each view, by handle; the views of the text have the length 1 together
}

// set notes the views of a node.
func (b *beside) set(h int32, id string) {
	n := b.views.Beside()
	if n == 0 {
		return
	}
	if more := (int(h)+1)*n - len(b.squares); more > 0 {
		b.squares = append(b.squares, make([]float32, more)...)
	}
	b.views.SquaresBeside(id, b.squares[int(h)*n:(int(h)+1)*n])
}

// squaresOf returns the squares of a node.
func (b *beside) squaresOf(h int32) []float32 {
	n := b.views.Beside()
	if (int(h)+1)*n > len(b.squares) {
		return nil
	}
	return b.squares[int(h)*n : (int(h)+1)*n]
}

// lengths returns how much longer a node is than its views that a question has, by handle; nil if the question lacks
// none. A view of the number k is there if has[k].
func (b *beside) lengths(has []bool) func(h int32) float32 {
	if !slices.Contains(has, false) {
		return nil
	}
	return func(h int32) float32 {
		all, shared := float32(1), float32(1)
		for k, square := range b.squaresOf(h) {
			if all += square; has[k] {
				shared += square
			}
		}
		return float32(math.Sqrt(float64(all / shared)))
	}
}

// lengthOf is the length of a node by which its cosine is multiplied.
func (p *pool) lengthOf(id string) float32 {
	h, known := p.index.Handle(id)
	if p.lengths == nil || !known {
		return 1
	}
	return p.lengths(h)
}

// has says which views a question has: those of the nodes that are asked about, and that of a vector which texts have.
func (s *state) has(like []Like, view string) []bool {
	has := make([]bool, s.beside.views.Beside())
	first := len(has) - len(s.beside.views.Vectors)
	for _, one := range like {
		if one.ID == "" {
			for k, v := range s.beside.views.Vectors {
				has[first+k] = has[first+k] || v.Name == view
			}
			continue
		}
		if h, known := s.index.Handle(one.ID); known {
			for k, square := range s.beside.squaresOf(h) {
				has[k] = has[k] || square > 0
			}
		}
	}
	return has
}
