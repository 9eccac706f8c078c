package bert

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"giantstream/train"
)

var _ train.Sliced = (*Network)(nil)

// gradient holds the gradients of all arrays of weights, one after the other, outside the backend.
type gradient []float32

// ForwardSlices implements train.Sliced. No batch of tokens has texts of two slices, so that the sums of a slice do
// not depend on what is beside it.
func (n *Network) ForwardSlices(instances []int32, seeds []uint64, ends []int, out []float32) error {
	n.bounds = ends
	defer func() { n.bounds = nil }()
	return n.Forward(instances, seeds, out)
}

// packSlices is pack that also ends a batch where a slice ends. It returns the number of the batch after each slice.
func packSlices(start []int32, ends []int, size int) (batches, slicesEnd []int) {
	first := 0
	for _, end := range ends {
		for _, e := range pack(start[first:end+1], size) {
			batches = append(batches, first+e)
		}
		first = end
		slicesEnd = append(slicesEnd, len(batches))
	}
	return batches, slicesEnd
}

// Seamless implements train.Sliced: each slice has sums of its own, and its batches of tokens end with it.
func (n *Network) Seamless() bool { return false }

// BackwardSlice implements train.Sliced.
func (n *Network) BackwardSlice(k int, grad []float32) (train.Gradient, error) {
	t := n.Tuner
	if !t.ready || k >= len(t.slicesEnd) {
		return nil, ErrOrder
	}
	from := 0
	if k > 0 {
		from = t.slicesEnd[k-1]
	}
	base := 0
	if from > 0 {
		base = t.ends[from-1]
	}
	for i := from; i < t.slicesEnd[k]; i++ {
		first, end := t.texts(i)
		t.backward(i, grad[(first-base)*t.Dim():(end-base)*t.Dim()])
	}
	var g gradient
	for _, p := range t.gradients {
		at, size := len(g), (*p.buffer).Len()
		g = slices.Grow(g, size)[:at+size]
		if err := read(t.backend, g[at:], *p.buffer); err != nil {
			return nil, err
		}
		t.backend.Zero(*p.buffer)
	}
	return g, nil
}

// SetGradient implements train.Sliced.
func (n *Network) SetGradient(of train.Gradient) error {
	g, ok := of.(gradient)
	if !ok || len(g) != n.gradientLen() {
		return train.ErrGradient
	}
	for _, p := range n.gradients {
		size := (*p.buffer).Len()
		n.backend.Write(*p.buffer, g[:size])
		g = g[size:]
	}
	return nil
}

func (n *Network) gradientLen() (size int) {
	for _, p := range n.gradients {
		size += (*p.buffer).Len()
	}
	return size
}

// Add implements train.Gradient.
func (g gradient) Add(next train.Gradient) {
	for i, x := range next.(gradient) { //nolint:forcetypeassert // both are of one network
		g[i] += x
	}
}

// Append implements train.Gradient: the numbers, 4 bytes each.
func (g gradient) Append(b []byte) []byte {
	b = slices.Grow(b, 4*len(g))
	for _, x := range g {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// ReadGradient implements train.Sliced.
func (n *Network) ReadGradient(b []byte) (train.Gradient, error) {
	if len(b) != 4*n.gradientLen() {
		return nil, fmt.Errorf("bert: %w", train.ErrGradient)
	}
	g := make(gradient, len(b)/4)
	for i := range g {
		g[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return g, nil
}
