package bag

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/numeric"
)

// NetworkOptions of a Network. The zero value of each field stands for its default.
type NetworkOptions struct {
	// Keep is the probability that an n-gram takes part in a step; 0 means 0.8.
	Keep float64
	// Key is what an n-gram is drawn by, with the instance's seed: the same n-gram of the same instance is left out,
	// whatever other n-grams the vocabulary has. nil: its number.
	Key func(feature int32) uint64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

// Network is a bag in training: an instance's pooled vector is the sum of its n-grams' vectors,
// weighted by TF-IDF. If an instance has a seed, each of its n-grams is left out with probability 1
// − Keep, and the others weigh 1/Keep times as much. Rows move by row-wise Adagrad.
type Network struct {
	features Features
	o        NetworkOptions
	model    *Model
	square   []float32 // per row: the sum of its mean squared gradients
	keys     []uint64  // per row

	last []sparse.Vector // of the last Forward: rows and weights per instance
	ends []int           // of the slices of the last ForwardSlices
	sum  gradient        // since the last Update

	byRow uses // scratch of Update
}

var _ train.Network = (*Network)(nil)

// rowUse says that a row entered an instance's vector with weight x.
type rowUse struct {
	row      int32
	instance int32 // its place in grad
	x        float32
}

// NewNetwork makes a network of a model, whose vectors it will change, and Ψ of the
// instances' texts.
func NewNetwork(x Features, m *Model, o NetworkOptions) (*Network, error) {
	o.Keep = cmp.Or(o.Keep, 0.8)
	if !(o.Keep > 0 && o.Keep <= 1) {
		return nil, fmt.Errorf("bag: keep %v must be in (0, 1]", o.Keep)
	}
	if _, cols := x.Size(); cols != len(m.table.row) {
		return nil, fmt.Errorf("bag: %d features for a model of %d", cols, len(m.table.row))
	}
	b := &Network{features: x, o: o, model: m, square: make([]float32, len(m.Features()))}
	b.byRow.place = make([]int32, len(m.Features()))
	b.keys = make([]uint64, len(m.Features()))
	for row, f := range m.Features() {
		b.keys[row] = uint64(f)
		if o.Key != nil {
			b.keys[row] = o.Key(f)
		}
		b.keys[row] = numeric.Mix(b.keys[row])
	}
	return b, nil
}

// Dim implements train.Network.
func (b *Network) Dim() int { return b.model.Dim() }

// MaxBatch implements train.Network.
func (b *Network) MaxBatch() int { return 0 }

// Forward implements train.Network.
func (b *Network) Forward(instances []int32, seeds []uint64, out []float32) error {
	d := b.Dim()
	b.last = slices.Grow(b.last[:0], len(instances))[:len(instances)]
	parallel.ForEach(len(instances), 8, b.o.Workers, func(_, _, lo, hi int) {
		for k := lo; k < hi; k++ {
			x := b.features.Row(int(instances[k]))
			kept := sparse.Vector{Index: b.last[k].Index[:0], Value: b.last[k].Value[:0]}
			keep := 1.0
			if seeds != nil {
				keep = b.o.Keep
			}
			most, scale := uint64(keep*math.MaxUint32), 1/float32(keep)
			for i, f := range x.Index {
				row := b.model.table.row[f]
				if row < 0 || keep < 1 && numeric.Mix(seeds[k]^b.keys[row])>>32 >= most {
					continue
				}
				kept.Index, kept.Value = append(kept.Index, row), append(kept.Value, x.Value[i]*scale)
			}
			b.last[k] = kept
			sum := out[k*d : (k+1)*d]
			clear(sum)
			for i, row := range kept.Index {
				numeric.Axpy(kept.Value[i], b.model.table.vector(int(row)), sum)
			}
		}
	})
	return nil
}

// Backward implements train.Network.
func (b *Network) Backward(grad []float32) error {
	b.sum.dim = b.Dim()
	b.sum.add(b.last, grad)
	return nil
}

// add adds the gradients of instances that used rows.
func (g *gradient) add(instances []sparse.Vector, grad []float32) {
	before := len(g.grad) / g.dim
	g.grad = append(g.grad, grad...)
	n := 0
	for _, used := range instances {
		n += len(used.Index)
	}
	g.uses = slices.Grow(g.uses, n)
	for k, used := range instances {
		for i, row := range used.Index {
			g.uses = append(g.uses, rowUse{row, int32(before + k), used.Value[i]})
		}
	}
}

// Update implements train.Network.
func (b *Network) Update(rate float64) (float64, error) {
	d := b.Dim()
	b.byRow.group(b.sum.uses)
	squares := make([]float64, len(b.byRow.rows))
	parallel.ForEach(len(squares), 64, b.o.Workers, func(_, _, lo, hi int) {
		g := make([]float32, d)
		for j := lo; j < hi; j++ {
			clear(g)
			for _, u := range b.byRow.usesOf(j) {
				numeric.Axpy(u.x, b.sum.grad[int(u.instance)*d:int(u.instance+1)*d], g)
			}
			squares[j] = float64(b.model.table.adagrad(int(b.byRow.rows[j]), b.square, g, float32(rate)))
		}
	})
	b.sum.uses, b.sum.grad = b.sum.uses[:0], b.sum.grad[:0]
	var sum float64
	for _, s := range squares {
		sum += s
	}
	return math.Sqrt(sum), nil
}

// uses are the uses of a step by row, those of a row in their order.
type uses struct {
	rows  []int32
	from  []int32 // row j's uses are ordered[from[j]:from[j+1]]
	place []int32 // of each row of the table: its number in rows + 1, 0 between groupings
	// ordered are the uses.
	ordered []rowUse
}

// usesOf returns the uses of row j.
func (u *uses) usesOf(j int) []rowUse { return u.ordered[u.from[j]:u.from[j+1]] }

// group counts the uses of each row and then puts them in their places: linear in the
// uses, where sorting them took a tenth of a step.
func (u *uses) group(all []rowUse) {
	u.rows, u.from = u.rows[:0], u.from[:0]
	for _, use := range all {
		if u.place[use.row] == 0 {
			u.rows, u.from = append(u.rows, use.row), append(u.from, 0)
			u.place[use.row] = int32(len(u.rows))
		}
		u.from[u.place[use.row]-1]++
	}
	var at int32
	for j, n := range u.from {
		u.from[j] = at
		at += n
	}
	u.ordered = slices.Grow(u.ordered[:0], len(all))[:len(all)]
	for _, use := range all {
		j := u.place[use.row] - 1
		u.ordered[u.from[j]] = use
		u.from[j]++
	}
	// from[j] is now row j's end, which is row j+1's beginning.
	u.from = slices.Insert(u.from, 0, 0)
	for _, row := range u.rows {
		u.place[row] = 0
	}
}

// stateBlock is how many numbers of the state are written or read at a time.
const stateBlock = 1 << 14

// WriteState implements train.Network.
func (b *Network) WriteState(w io.Writer) error {
	return b.eachBlock(func(block []float32) error { return binary.Write(w, binary.LittleEndian, block) })
}

// ReadState implements train.Network.
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
