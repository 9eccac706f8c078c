package trainer

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"testing"

	"giantstream/internal/ambient"
	"giantstream/train"
)

// point is the smallest network: an instance's vector is the weights, whatever the instance.
type point struct{ weights, grad []float32 }

func (*point) Dim() int      { return 2 }
func (*point) MaxBatch() int { return 3 }

func (p *point) Forward(instances []int32, _ []uint64, out []float32) error {
	for k := range instances {
		copy(out[2*k:], p.weights)
	}
	return nil
}

func (p *point) Backward(grad []float32) error {
	for i, g := range grad {
		p.grad[i%2] += g
	}
	return nil
}

func (p *point) Update(rate float64) (float64, error) {
	for i, g := range p.grad {
		p.weights[i] -= float32(rate) * g
	}
	clear(p.grad)
	return 0, nil
}

func (p *point) WriteState(w io.Writer) error { return binary.Write(w, binary.LittleEndian, p.weights) }
func (p *point) ReadState(r io.Reader) error  { return binary.Read(r, binary.LittleEndian, p.weights) }

// target is an objective: the vectors are to be an offset of its own away from (1, 1).
type target struct {
	net            train.Network
	offset, moment []float32
}

func (*target) Name() string                                        { return "target" }
func (*target) Level(stage int) int                                 { return stage }
func (*target) Begin(context.Context, int, func(int) []int32) error { return nil }
func (t *target) Weights() [][]float32                              { return [][]float32{t.offset} }
func (t *target) Moments() [][]float32                              { return [][]float32{t.moment} }
func (*target) Describe(w io.Writer)                                { _, _ = io.WriteString(w, "target") }

func (t *target) Step(_ Place, batch []int32) (loss float64, err error) {
	for part := range Parts(batch, t.net.MaxBatch()) {
		z := make([]float32, 2*len(part))
		if err := t.net.Forward(part, nil, z); err != nil {
			return 0, err
		}
		for i := range z {
			z[i] += t.offset[i%2] - 1
			loss += float64(z[i]*z[i]) / float64(len(batch))
			t.moment[i%2] = z[i]
		}
		if err := t.net.Backward(z); err != nil {
			return 0, err
		}
	}
	return loss, nil
}

func (t *target) Update(_ Place, _ int, fraction float64) {
	for i, m := range t.moment {
		t.offset[i] -= 0.01 * float32(fraction) * m
	}
}

var testOptions = Options{Stages: 2, Epochs: 4, Batch: 4, Rate: 0.02, Warmup: 0.1, Patience: 1, Seed: 1, Stream: 1,
	Keys: []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}

func newRun(h Hooks) (*trainer, *point, error) {
	net := &point{make([]float32, 2), make([]float32, 2)}
	objective := &target{net, make([]float32, 2), make([]float32, 2)}
	t, err := newTrainer(net, objective, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, testOptions, h, ambient.OrDiscard(nil))
	return t, net, err
}

// validate scores by the vectors' length before they are made of length 1: their first number.
func validate(_ context.Context, embed Embed) (float64, error) {
	z := make([]float32, 2)
	err := embed([]int32{0}, z)
	return float64(z[0]), err
}

func TestTrainReachesTheTarget(t *testing.T) {
	run, net, err := newRun(Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	run.o.Patience = 9
	r, err := Train(t.Context(), net, run.objective, run.instances, run.o, Hooks{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, last := r.Curve[0].Loss, r.Curve[len(r.Curve)-1].Loss
	if r.Steps != 12 || len(r.Epochs) != 4 || last > first/2 {
		t.Errorf("report %+v, want 12 steps in 4 epochs and half the loss", r)
	}
}

// The order of an epoch has every instance once, and what comes next begins the next epoch.
func TestUpcomingGoesOnIntoTheNextEpoch(t *testing.T) {
	run, _, err := newRun(Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	run.order, run.at.Seen = run.shuffled(0), 8
	if got := run.upcoming(2); !slices.Equal(got, run.order[8:]) {
		t.Errorf("two instances are %v, want %v", got, run.order[8:])
	}
	if got, want := run.upcoming(99), slices.Concat(run.order[8:], run.shuffled(1)); !slices.Equal(got, want) {
		t.Errorf("all instances are %v, want %v", got, want)
	}
	order := run.shuffled(3)
	slices.Sort(order)
	if !slices.Equal(order, run.instances) {
		t.Errorf("an epoch has %v", order)
	}
}

func TestRateRisesAndFalls(t *testing.T) {
	for warmup, want := range map[float64][]float64{
		0.2: {0.333, 0.667, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125},
		0:   {1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1},
	} {
		o := Options{Warmup: warmup}
		var got []float64
		for s := range int64(10) {
			got = append(got, math.Round(o.fraction(s, 10)*1000)/1000)
		}
		if !slices.Equal(got, want) {
			t.Errorf("warm-up %v: rates %v, want %v", warmup, got, want)
		}
	}
}

func FuzzResume(f *testing.F) {
	run, net, err := newRun(Hooks{})
	if err != nil {
		f.Fatal(err)
	}
	_, err = Train(f.Context(), net, run.objective, run.instances, run.o, Hooks{
		Validate: validate,
		Due:      func(int64) bool { return true },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error {
			var b bytes.Buffer
			_, err := s.WriteTo(&b)
			f.Add(b.Bytes())
			f.Add(b.Bytes()[:b.Len()/2])
			return err
		},
	}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		run, _, err := newRun(Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		defer run.best.close()
		if run.restore(bytes.NewReader(data)) != nil {
			return
		}
		var again bytes.Buffer
		if _, err := (*state)(run).WriteTo(&again); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(again.Bytes(), data) {
			t.Error("a state that was read is written otherwise")
		}
	})
}

// A node that is there in two trainings, by whatever number, has the same place among the others of both.
func TestOrderStaysWhereNodesAreRenumbered(t *testing.T) {
	keysOf := func(n, from int) (keys []uint64, instances []int32) {
		for i := range n {
			keys, instances = append(keys, uint64(from+i)), append(instances, int32(i))
		}
		return keys, instances
	}
	before, after := testOptions, testOptions
	var old, now []int32
	before.Keys, old = keysOf(90, 0)
	after.Keys, now = keysOf(90, 10) // ten nodes have gone, and as many have come
	for epoch := range 3 {
		order := func(o Options, instances []int32) (both []uint64) {
			for _, i := range (&trainer{o: o, instances: instances}).shuffled(epoch) {
				if k := o.Keys[i]; k >= 10 && k < 90 {
					both = append(both, k)
				}
			}
			return both
		}
		a, b := order(before, old), order(after, now)
		if !slices.Equal(a, b) {
			t.Errorf("epoch %d: the 80 nodes of both are in another order", epoch)
		}
		if slices.IsSorted(a) {
			t.Errorf("epoch %d: not shuffled", epoch)
		}
	}
}
