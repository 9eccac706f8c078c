package bag

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"giantstream/train"
)

var _ train.Sliced = (*Network)(nil)

// gradient is a gradient in its factors: which rows the instances used, and the gradients of the instances' vectors.
// It is a fiftieth of the sums by row, and Update adds it up in the order of the instances.
type gradient struct {
	dim  int
	uses []rowUse
	grad []float32
}

// ForwardSlices implements train.Sliced.
func (b *Network) ForwardSlices(instances []int32, seeds []uint64, ends []int, out []float32) error {
	b.ends = append(b.ends[:0], ends...)
	return b.Forward(instances, seeds, out)
}

// BackwardSlice implements train.Sliced.
func (b *Network) BackwardSlice(k int, grad []float32) (train.Gradient, error) {
	first := 0
	if k > 0 {
		first = b.ends[k-1]
	}
	g := &gradient{dim: b.Dim()}
	g.add(b.last[first:b.ends[k]], grad)
	return g, nil
}

// Seamless implements train.Sliced: gradients are factors, which Update adds up in the order of the instances.
func (b *Network) Seamless() bool { return true }

// SetGradient implements train.Sliced.
func (b *Network) SetGradient(of train.Gradient) error {
	g, ok := of.(*gradient)
	if !ok || g.dim != b.Dim() {
		return train.ErrGradient
	}
	b.sum = *g
	return nil
}

// Add implements train.Gradient.
func (g *gradient) Add(next train.Gradient) {
	n := next.(*gradient) //nolint:forcetypeassert // both are of one network
	before := int32(len(g.grad) / g.dim)
	g.uses = slices.Grow(g.uses, len(n.uses))
	for _, u := range n.uses {
		u.instance += before
		g.uses = append(g.uses, u)
	}
	g.grad = append(g.grad, n.grad...)
}

// useBytes is the size of a rowUse: three numbers of 4 bytes.
const useBytes = 12

// Append implements train.Gradient: the numbers of instances and uses, the uses, the instances' gradients.
func (g *gradient) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(g.grad)/g.dim))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(g.uses)))
	for _, u := range g.uses {
		b = binary.LittleEndian.AppendUint32(b, uint32(u.row))
		b = binary.LittleEndian.AppendUint32(b, uint32(u.instance))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(u.x))
	}
	for _, x := range g.grad {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// ReadGradient implements train.Sliced.
func (b *Network) ReadGradient(data []byte) (train.Gradient, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("bag: %w", train.ErrGradient)
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	instances, uses := int(u32(0)), int(u32(4))
	if data = data[8:]; len(data) != useBytes*uses+4*b.Dim()*instances {
		return nil, fmt.Errorf("bag: %w", train.ErrGradient)
	}
	g := &gradient{dim: b.Dim(), uses: make([]rowUse, uses), grad: make([]float32, instances*b.Dim())}
	for i := range g.uses {
		u := rowUse{int32(u32(useBytes * i)), int32(u32(useBytes*i + 4)), math.Float32frombits(u32(useBytes*i + 8))}
		if u.row < 0 || int(u.row) >= len(b.square) || u.instance < 0 || int(u.instance) >= instances {
			return nil, fmt.Errorf("bag: %w", train.ErrGradient)
		}
		g.uses[i] = u
	}
	for i := range g.grad {
		g.grad[i] = math.Float32frombits(u32(useBytes*uses + 4*i))
	}
	return g, nil
}
