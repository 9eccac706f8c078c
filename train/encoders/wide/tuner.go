package wide

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/numeric"
)

// streamTable separates the random numbers for dropped n-grams from all others.
const streamTable = 'W'

// Options of a Tuner. The zero value of each field stands for its default.
type Options struct {
	// RateFactor is the table's learning rate divided by the network's; 0 means 5. At the network's
	// usual 3e-4 the table then learns at 0.0015, a seventh of the rate at which it is trained
	// alone.
	RateFactor float64
	// Keep is the probability that an n-gram takes part in a step; 0 means 0.5.
	Keep float64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

// Tuner is a network and a table of n-grams beside it as one train.Network.
type Tuner struct {
	deep   train.Network
	table  *bag.Network
	factor float64

	// Of the last Forward: the network's directions and the lengths that they had.
	z, norms []float32

	seeds []uint64  // scratch: the table's
	slope []float32 // scratch: the gradient for the network
}

var _ train.Network = (*Tuner)(nil)

// NewTuner joins a network to a table of the same dimension, whose vectors it will change,
// and to Ψ of the instances' texts.
func NewTuner(deep train.Network, x bag.Features, table *bag.Model, o Options) (*Tuner, error) {
	if o.RateFactor == 0 {
		o.RateFactor = 5
	}
	if !(o.RateFactor > 0) || math.IsInf(o.RateFactor, 0) {
		return nil, fmt.Errorf("wide: a factor of %v for the table's rate; use a positive number", o.RateFactor)
	}
	if table.Dim() != deep.Dim() {
		return nil, fmt.Errorf("wide: n-grams of dimension %d beside a network of %d", table.Dim(), deep.Dim())
	}
	n, err := bag.NewNetwork(x, table, bag.NetworkOptions{Keep: o.Keep, Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	return &Tuner{deep: deep, table: n, factor: o.RateFactor}, nil
}

// Dim implements train.Network.
func (t *Tuner) Dim() int { return t.deep.Dim() }

// MaxBatch implements train.Network.
func (t *Tuner) MaxBatch() int { return t.deep.MaxBatch() }

// Forward implements train.Network.
func (t *Tuner) Forward(instances []int32, seeds []uint64, out []float32) error {
	if err := t.deep.Forward(instances, seeds, out); err != nil {
		return err
	}
	t.z, t.norms = append(t.z[:0], out...), t.norms[:0]
	for z := range slices.Chunk(t.z, t.Dim()) {
		t.norms = append(t.norms, numeric.Normalize(z))
	}
	var own []uint64
	if seeds != nil {
		own = t.seeds[:0]
		for _, s := range seeds {
			r := numeric.NewRand(s, streamTable)
			own = append(own, r.Uint64())
		}
		t.seeds = own
	}
	if err := t.table.Forward(instances, own, out); err != nil {
		return err
	}
	numeric.Axpy(1, t.z, out)
	return nil
}

// Backward implements train.Network.
func (t *Tuner) Backward(grad []float32) error {
	if err := t.table.Backward(grad); err != nil {
		return err
	}
	d := t.Dim()
	t.slope = append(t.slope[:0], grad...)
	for i, norm := range t.norms {
		numeric.NormalizeBackward(t.z[i*d:(i+1)*d], norm, t.slope[i*d:(i+1)*d])
	}
	return t.deep.Backward(t.slope)
}

// Update implements train.Network; rate is the network's.
func (t *Tuner) Update(rate float64) (float64, error) {
	deep, err := t.deep.Update(rate)
	if err != nil {
		return deep, err
	}
	table, err := t.table.Update(rate * t.factor)
	return math.Hypot(deep, table), err
}

// WriteState implements train.Network.
func (t *Tuner) WriteState(w io.Writer) error {
	return errors.Join(t.table.WriteState(w), t.deep.WriteState(w))
}

// ReadState implements train.Network.
func (t *Tuner) ReadState(r io.Reader) error {
	if err := t.table.ReadState(r); err != nil {
		return err
	}
	return t.deep.ReadState(r)
}
