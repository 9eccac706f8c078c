package linkpred

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"giantstream/featurize/parallel"
	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
	"giantstream/train/xrt"
)

// BagOptions of a Bag. The zero value of each field stands for its default.
type BagOptions struct {
	// Keep is the probability that an n-gram takes part in a step; 0 means 0.5.
	Keep float64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

// Bag is a bag of n-grams (package bag) as a network: a text's pooled vector
// is the sum of its n-grams' vectors, weighted by TF-IDF; of a text with a seed each
// n-gram is left out with probability 1 − Keep. Rows move by row-wise Adagrad, as there.
type Bag struct {
	vectorizer train.Vectorizer
	o          BagOptions
	model      *bag.Model
	row        []int32   // of each feature, -1 if it has none
	square     []float32 // per row: the sum of its mean squared gradients

	last []sparse.Vector // of the last Forward: rows and weights per text
	// Since the last Update: where rows were used, and the gradients of the
	// texts' vectors that used them.
	uses []use
	grad []float32
}

// use says that a row entered a text's vector with weight x.
type use struct {
	row  int32
	text int32 // its place in grad
	x    float32
}

var _ xrt.Network = (*Bag)(nil)

// NewBag makes a network of a model, whose vectors it will change.
func NewBag(v train.Vectorizer, m *bag.Model, o BagOptions) (*Bag, error) {
	if o.Keep == 0 {
		o.Keep = 0.5
	}
	if !(o.Keep > 0 && o.Keep <= 1) {
		return nil, fmt.Errorf("linkpred: keep %v must be in (0, 1]", o.Keep)
	}
	b := &Bag{vectorizer: v, o: o, model: m, row: make([]int32, v.Dim()), square: make([]float32, len(m.Features()))}
	for f := range b.row {
		b.row[f] = -1
	}
	for r, f := range m.Features() {
		if int(f) >= len(b.row) {
			return nil, fmt.Errorf("linkpred: feature %d of a vectorizer of %d", f, len(b.row))
		}
		b.row[f] = int32(r)
	}
	return b, nil
}

// Encoder returns an encoder with the current vectors, which it shares. It
// leaves nothing out.
func (b *Bag) Encoder() (*bag.Encoder, error) { return bag.NewEncoder(b.vectorizer, b.model) }

// Dim implements xrt.Network.
func (b *Bag) Dim() int { return b.model.Dim() }

// Forward implements xrt.Network.
func (b *Bag) Forward(texts []string, seeds []uint64, out []float32) error {
	d := b.Dim()
	b.last = slices.Grow(b.last[:0], len(texts))[:len(texts)]
	parallel.Each(len(texts), 8, b.o.Workers, func(_, _, lo, hi int) {
		for k := lo; k < hi; k++ {
			var r rng.Source
			keep := 1.0
			if seeds != nil {
				r, keep = rng.New(seeds[k]), b.o.Keep
			}
			used := b.vectorizer.Transform(texts[k], b.last[k])
			at := 0
			for i, f := range used.Index {
				if r.Float64() < keep && b.row[f] >= 0 {
					used.Index[at], used.Value[at] = b.row[f], used.Value[i]
					at++
				}
			}
			b.last[k] = sparse.Vector{Index: used.Index[:at], Value: used.Value[:at]}
			sum := out[k*d : (k+1)*d]
			clear(sum)
			for i, row := range b.last[k].Index {
				vector.Axpy(b.last[k].Value[i], b.vector(int(row)), sum)
			}
		}
	})
	return nil
}

func (b *Bag) vector(row int) []float32 {
	d := b.Dim()
	return b.model.Vectors()[row*d : (row+1)*d]
}

// Backward implements xrt.Network.
func (b *Bag) Backward(grad []float32) error {
	before := len(b.grad) / b.Dim()
	b.grad = append(b.grad, grad...)
	for k, used := range b.last {
		for i, row := range used.Index {
			b.uses = append(b.uses, use{row, int32(before + k), used.Value[i]})
		}
	}
	return nil
}

// Update implements xrt.Network. Adagrad does not see the scale of gradients
// (Duchi et al. 2011; one accumulator per row).
func (b *Bag) Update(rate float64) (float64, error) {
	d := b.Dim()
	slices.SortStableFunc(b.uses, func(x, y use) int { return int(x.row) - int(y.row) })
	var from []int // where each row's uses begin
	for i, u := range b.uses {
		if i == 0 || u.row != b.uses[i-1].row {
			from = append(from, i)
		}
	}
	from = append(from, len(b.uses))
	squares := make([]float64, len(from)-1)
	parallel.Each(len(squares), 64, b.o.Workers, func(_, _, lo, hi int) {
		g := make([]float32, d)
		for j := lo; j < hi; j++ {
			clear(g)
			uses := b.uses[from[j]:from[j+1]]
			for _, u := range uses {
				vector.Axpy(u.x, b.grad[int(u.text)*d:int(u.text+1)*d], g)
			}
			row := int(uses[0].row)
			s := vector.Dot(g, g)
			squares[j] = float64(s)
			b.square[row] += s / float32(d)
			if b.square[row] > 0 {
				vector.Axpy(-float32(rate/math.Sqrt(float64(b.square[row]))), g, b.vector(row))
			}
		}
	})
	b.uses, b.grad = b.uses[:0], b.grad[:0]
	var sum float64
	for _, s := range squares {
		sum += s
	}
	return math.Sqrt(sum), nil
}

// WriteState implements xrt.Network.
func (b *Bag) WriteState(w io.Writer) error {
	for _, v := range []any{b.model.Vectors(), b.square} {
		if err := binary.Write(w, binary.LittleEndian, v); err != nil {
			return fmt.Errorf("linkpred: state: %w", err)
		}
	}
	return nil
}

// ReadState implements xrt.Network.
func (b *Bag) ReadState(r io.Reader) error {
	for _, v := range []any{b.model.Vectors(), b.square} {
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			return fmt.Errorf("linkpred: state: %w", err)
		}
	}
	return nil
}
