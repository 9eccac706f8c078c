// Package together has several processes train one network to the same bits as one process.
//
// Each batch is cut into Slices slices, a fixed number. The gradient of each slice is taken by itself, and the
// gradients are added along a binary tree over the slices: which process takes which slices, and how many processes
// there are, is in no bit of the sum.
//
//	     ┌──────┴──────┐
//	  ┌──┴──┐       ┌──┴──┐
//	┌─┴─┐ ┌─┴─┐   ┌─┴─┐ ┌─┴─┐
//	0   1 2   3   4   5 6   7      with two processes, each sends the sum of one half
//
// Every process runs the whole training: the order of instances, the objective, the optimizer, the validation. Only
// the network's passes are divided. So there is no server of parameters, and a process that has the state of a
// training between two steps can take part from there.
package together

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"giantstream/train"
)

// Slices is how many slices a batch has. The bits of the weights depend on it.
const Slices = 8

// Part is the outcome of a run of slices.
type Part struct {
	From, To int
	Data     []byte
}

// Group is the processes that train together.
type Group interface {
	// Exchange has each slice worked on by one process, and returns the outcomes of all in the order of the slices.
	// work may be called for any run of slices, several times: what another process owes is done here if it is lost.
	Exchange(work func(from, to int) ([]byte, error)) ([]Part, error)
}

// Network divides the passes of a network among the processes of a group. It implements train.Network.
type Network struct {
	train.Sliced
	group Group

	// The last Forward, and the slices that the network itself has run of it.
	instances []int32
	seeds     []uint64
	ends      []int
	from, to  int

	sum train.Gradient // since the last Update
}

var _ train.Network = (*Network)(nil)

// New makes a network of one that can be sliced. group is nil for a process that trains alone, which takes no slices
// where they change nothing: each would be a copy of its part of the gradient.
func New(net train.Sliced, group Group) train.Network {
	if group == nil && net.Seamless() {
		return net
	}
	return &Network{Sliced: net, group: group}
}

// MaxBatch implements train.Network. Gradients are exchanged once for each Forward: two batches of the network make
// one, whose first half it may have to run forwards a second time.
func (n *Network) MaxBatch() int { return 2 * n.Sliced.MaxBatch() }

// Forward implements train.Network.
func (n *Network) Forward(instances []int32, seeds []uint64, out []float32) error {
	n.instances, n.seeds, n.ends = append(n.instances[:0], instances...), slices.Clone(seeds), n.ends[:0]
	for k := range Slices {
		n.ends = append(n.ends, (k+1)*len(instances)/Slices)
	}
	if n.group == nil {
		return n.run(0, Slices, out)
	}
	d := n.Dim()
	parts, err := n.group.Exchange(func(from, to int) ([]byte, error) {
		own := make([]float32, (n.ends[to-1]-n.begin(from))*d)
		if err := n.run(from, to, own); err != nil {
			return nil, err
		}
		return appendFloats(nil, own), nil
	})
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := readFloats(p.Data, out[n.begin(p.From)*d:n.ends[p.To-1]*d]); err != nil {
			return err
		}
	}
	return nil
}

// begin is the first instance of a slice.
func (n *Network) begin(slice int) int {
	if slice == 0 {
		return 0
	}
	return n.ends[slice-1]
}

// run runs slices of the last Forward.
func (n *Network) run(from, to int, out []float32) error {
	n.from, n.to = from, to
	first := n.begin(from)
	var seeds []uint64
	if n.seeds != nil {
		seeds = n.seeds[first:n.ends[to-1]]
	}
	ends := make([]int, 0, Slices)
	for _, e := range n.ends[from:to] {
		ends = append(ends, e-first)
	}
	return n.ForwardSlices(n.instances[first:n.ends[to-1]], seeds, ends, out)
}

// Backward implements train.Network.
func (n *Network) Backward(grad []float32) error {
	var all sum
	if n.group == nil {
		if err := n.backward(0, Slices, grad, &all); err != nil {
			return err
		}
	} else {
		parts, err := n.group.Exchange(func(from, to int) ([]byte, error) {
			var own sum
			if err := n.backward(from, to, grad, &own); err != nil {
				return nil, err
			}
			return own.append(nil), nil
		})
		if err != nil {
			return err
		}
		for _, p := range parts {
			if err := all.read(p, n.ReadGradient); err != nil {
				return err
			}
		}
	}
	total, err := all.total()
	if err != nil {
		return err
	}
	if n.sum == nil {
		n.sum = total
	} else {
		n.sum.Add(total)
	}
	return nil
}

// backward adds the gradients of slices to a sum. grad is that of the whole Forward.
func (n *Network) backward(from, to int, grad []float32, into *sum) error {
	d := n.Dim()
	if from < n.from || to > n.to { // another process ran them forwards
		if err := n.run(from, to, make([]float32, (n.ends[to-1]-n.begin(from))*d)); err != nil {
			return err
		}
	}
	for k := from; k < to; k++ {
		g, err := n.BackwardSlice(k-n.from, grad[n.begin(k)*d:n.ends[k]*d])
		if err != nil {
			return err
		}
		into.add(node{k, 1, g})
	}
	return nil
}

// Update implements train.Network.
func (n *Network) Update(rate float64) (float64, error) {
	if n.sum != nil {
		if err := n.SetGradient(n.sum); err != nil {
			return 0, err
		}
		n.sum = nil
	}
	return n.Sliced.Update(rate)
}

// node is the sum of slices from, …, from+size−1: a node of the binary tree.
type node struct {
	from, size int
	gradient   train.Gradient
}

// sum adds up slices that come in order. It holds one node for each size at most.
type sum struct{ nodes []node }

func (s *sum) add(x node) {
	for len(s.nodes) > 0 {
		last := s.nodes[len(s.nodes)-1]
		if last.size != x.size || last.from%(2*x.size) != 0 || last.from+last.size != x.from {
			break
		}
		last.gradient.Add(x.gradient)
		x = node{last.from, 2 * x.size, last.gradient}
		s.nodes = s.nodes[:len(s.nodes)-1]
	}
	s.nodes = append(s.nodes, x)
}

// total is the sum of all slices.
func (s *sum) total() (train.Gradient, error) {
	if len(s.nodes) != 1 || s.nodes[0].size != Slices {
		return nil, fmt.Errorf("together: %d sums, and not all slices: %w", len(s.nodes), train.ErrGradient)
	}
	return s.nodes[0].gradient, nil
}

// append appends the nodes: for each its slices and bytes, u32, and the gradient.
func (s *sum) append(b []byte) []byte {
	for _, x := range s.nodes {
		b = binary.LittleEndian.AppendUint32(b, uint32(x.size))
		at := len(b)
		b = x.gradient.Append(append(b, 0, 0, 0, 0, 0, 0, 0, 0))
		binary.LittleEndian.PutUint64(b[at:], uint64(len(b)-at-8))
	}
	return b
}

// read adds what append wrote for the slices of a part.
func (s *sum) read(p Part, gradient func([]byte) (train.Gradient, error)) error {
	b, at := p.Data, p.From
	for len(b) >= 12 {
		size, n := int(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint64(b[4:])
		if b = b[12:]; n > uint64(len(b)) || size < 1 || size > p.To-at {
			return fmt.Errorf("together: %w", train.ErrGradient)
		}
		g, err := gradient(b[:n])
		if err != nil {
			return err
		}
		s.add(node{at, size, g})
		b, at = b[n:], at+size
	}
	if len(b) > 0 || at != p.To {
		return fmt.Errorf("together: %w", train.ErrGradient)
	}
	return nil
}

func appendFloats(b []byte, v []float32) []byte {
	b = slices.Grow(b, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func readFloats(b []byte, out []float32) error {
	if len(b) != 4*len(out) {
		return fmt.Errorf("together: %d bytes for %d numbers: %w", len(b), len(out), train.ErrGradient)
	}
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}
