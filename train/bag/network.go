package bag

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"giantstream/featurize/parallel"
	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
)

// NetworkOptions of a Network. The zero value of each field stands for its default.
type NetworkOptions struct {
	// Keep is the probability that an n-gram takes part in a step; 0 means 0.5.
	Keep float64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

// Network is a bag as a network that others train (it implements xrt.Network): a text's
// pooled vector is the sum of its n-grams' vectors, weighted by TF-IDF; of a text
// with a seed each n-gram is left out with probability 1 − Keep and the others weigh
// 1/Keep times as much. Rows move by row-wise Adagrad, as those of Train.
type Network struct {
	vectorizer train.Vectorizer
	o          NetworkOptions
	model      *Model
	square     []float32 // per row: the sum of its mean squared gradients

	last []sparse.Vector // of the last Forward: rows and weights per text
	// Since the last Update: where rows were used, and the gradients of the
	// texts' vectors that used them.
	uses []rowUse
	grad []float32

	byRow []uint64 // scratch of Update
}

// rowUse says that a row entered a text's vector with weight x.
type rowUse struct {
	row  int32
	text int32 // its place in grad
	x    float32
}

// NewNetwork makes a network of a model, whose vectors it will change, and the
// vectorizer that the model is of.
func NewNetwork(v train.Vectorizer, m *Model, o NetworkOptions) (*Network, error) {
	if o.Keep == 0 {
		o.Keep = 0.5
	}
	if !(o.Keep > 0 && o.Keep <= 1) {
		return nil, fmt.Errorf("bag: keep %v must be in (0, 1]", o.Keep)
	}
	if _, err := NewEncoder(v, m); err != nil {
		return nil, err
	}
	return &Network{vectorizer: v, o: o, model: m, square: make([]float32, len(m.Features()))}, nil
}

// Encoder returns an encoder with the current vectors, which it shares. It
// leaves nothing out.
func (b *Network) Encoder() (*Encoder, error) { return NewEncoder(b.vectorizer, b.model) }

// Dim is part of xrt.Network.
func (b *Network) Dim() int { return b.model.Dim() }

// Forward is part of xrt.Network.
func (b *Network) Forward(texts []string, seeds []uint64, out []float32) error {
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
				if row := b.model.table.row[f]; r.Float64() < keep && row >= 0 {
					used.Index[at], used.Value[at] = row, used.Value[i]/float32(keep)
					at++
				}
			}
			b.last[k] = sparse.Vector{Index: used.Index[:at], Value: used.Value[:at]}
			sum := out[k*d : (k+1)*d]
			clear(sum)
			for i, row := range b.last[k].Index {
				vector.Axpy(b.last[k].Value[i], b.model.table.vector(int(row)), sum)
			}
		}
	})
	return nil
}

// Backward is part of xrt.Network.
func (b *Network) Backward(grad []float32) error {
	before := len(b.grad) / b.Dim()
	b.grad = append(b.grad, grad...)
	for k, used := range b.last {
		for i, row := range used.Index {
			b.uses = append(b.uses, rowUse{row, int32(before + k), used.Value[i]})
		}
	}
	return nil
}

// Update is part of xrt.Network.
func (b *Network) Update(rate float64) (float64, error) {
	d := b.Dim()
	// The uses by row, those of a row in their order: row and place as one number, as
	// that sorts several times as fast as the uses themselves in a stable way.
	byRow := b.byRow[:0]
	for i, u := range b.uses {
		byRow = append(byRow, uint64(u.row)<<32|uint64(i))
	}
	slices.Sort(byRow)
	b.byRow = byRow
	var from []int // where each row's uses begin
	for i, use := range byRow {
		if i == 0 || use>>32 != byRow[i-1]>>32 {
			from = append(from, i)
		}
	}
	from = append(from, len(byRow))
	squares := make([]float64, len(from)-1)
	parallel.Each(len(squares), 64, b.o.Workers, func(_, _, lo, hi int) {
		g := make([]float32, d)
		for j := lo; j < hi; j++ {
			clear(g)
			uses := byRow[from[j]:from[j+1]]
			for _, use := range uses {
				u := b.uses[uint32(use)]
				vector.Axpy(u.x, b.grad[int(u.text)*d:int(u.text+1)*d], g)
			}
			squares[j] = float64(vector.Dot(g, g))
			b.model.table.adagrad(int(uses[0]>>32), b.square, g, float32(rate))
		}
	})
	b.uses, b.grad = b.uses[:0], b.grad[:0]
	var sum float64
	for _, s := range squares {
		sum += s
	}
	return math.Sqrt(sum), nil
}

// stateBlock is how many numbers of the state are written or read at a time.
const stateBlock = 1 << 14

// WriteState is part of xrt.Network.
func (b *Network) WriteState(w io.Writer) error {
	return b.eachBlock(func(block []float32) error { return binary.Write(w, binary.LittleEndian, block) })
}

// ReadState is part of xrt.Network.
func (b *Network) ReadState(r io.Reader) error {
	return b.eachBlock(func(block []float32) error { return binary.Read(r, binary.LittleEndian, block) })
}

func (b *Network) eachBlock(f func([]float32) error) error {
	for _, array := range [][]float32{b.model.Vectors(), b.square} {
		for block := range slices.Chunk(array, stateBlock) {
			if err := f(block); err != nil {
				return fmt.Errorf("bag: state: %w", err)
			}
		}
	}
	return nil
}
