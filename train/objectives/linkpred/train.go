package linkpred

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
)

// maxTriplets is how many triplets go through the network at a time: it bounds the
// activations that the network keeps.
const maxTriplets = 16

// Streams of random numbers, so that no two uses share one.
const (
	streamOrder uint64 = iota + 1
	streamTriplet
	streamDrop
)

// Train trains net on g's links. With hooks.Validate the network ends with the weights
// of the epoch that scored best, or those it began with. progress counts anchors; it may be nil.
func Train(ctx context.Context, net train.Network, g Graph, o Options, hooks trainer.Hooks,
	progress ambient.Progress) (*trainer.Report, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	var anchors []int32
	for _, i := range g.Anchors {
		if len(g.Neighbours.Row(int(i)).Index) > 0 {
			anchors = append(anchors, i)
		}
	}
	if len(anchors) == 0 {
		return nil, fmt.Errorf("linkpred: %w", ErrEmpty)
	}
	t := &triplets{net: net, Graph: g, o: o}
	r, err := trainer.Train(ctx, net, t, anchors, trainer.Options{
		Stages: 1, Epochs: float64(o.Epochs), Batch: o.Batch, Rate: o.Rate, Warmup: warmup, Patience: o.Patience,
		Seed: o.Seed, Stream: streamOrder, Keys: g.Keys,
	}, hooks, progress)
	if err != nil {
		return nil, fmt.Errorf("linkpred: %w", err)
	}
	return r, nil
}

// triplets is the objective: an anchor is to be nearer to a neighbour than to another node.
type triplets struct {
	Graph
	net train.Network
	o   Options

	nodes []int32   // of a part: anchors, neighbours, others
	seeds []uint64  // of what the network drops of them
	z, dz []float32 // their vectors, of length 1, and the gradients
	norms []float32
}

var _ trainer.Objective = (*triplets)(nil)

// Name implements trainer.Objective.
func (*triplets) Name() string { return "link prediction" }

// Level implements trainer.Objective; there is no tree.
func (*triplets) Level(int) int { return 0 }

// Begin implements trainer.Objective.
func (*triplets) Begin(context.Context, int, func(int) []int32) error { return nil }

// Update implements trainer.Objective: a triplet has no weights of its own.
func (*triplets) Update(trainer.Place, int, float64) {}

// Weights implements trainer.Objective.
func (*triplets) Weights() [][]float32 { return nil }

// Moments implements trainer.Objective.
func (*triplets) Moments() [][]float32 { return nil }

// Describe implements trainer.Objective.
func (t *triplets) Describe(w io.Writer) {
	fmt.Fprintf(w, "triplets margin=%v\n", t.o.Margin)
	// Writing to a hash cannot fail.
	_ = binary.Write(w, binary.LittleEndian, t.Neighbours.Start)
	_ = binary.Write(w, binary.LittleEndian, t.Neighbours.Index)
}

// Step implements trainer.Objective: a triplet of every anchor of the batch.
func (t *triplets) Step(at trainer.Place, batch []int32) (mean float64, err error) {
	var sum float64
	for part := range slices.Chunk(batch, maxTriplets) {
		loss, err := t.part(part, at.Epoch, len(batch))
		if err != nil {
			return 0, err
		}
		sum += loss
	}
	return sum / float64(len(batch)), nil
}

// part runs the triplets of some anchors forwards and backwards and returns the
// sum of their losses.
func (t *triplets) part(anchors []int32, epoch, batch int) (sum float64, err error) {
	n, d := len(anchors), t.net.Dim()
	t.draw(anchors, epoch)
	t.z, t.dz = slices.Grow(t.z[:0], 3*n*d)[:3*n*d], slices.Grow(t.dz[:0], 3*n*d)[:3*n*d]
	if err := t.net.Forward(t.nodes, t.seeds, t.z); err != nil {
		return 0, err
	}
	row := func(x []float32, k int) []float32 { return x[k*d : (k+1)*d] }
	t.norms = t.norms[:0]
	for k := range 3 * n {
		t.norms = append(t.norms, numeric.Normalize(row(t.z, k)))
	}
	clear(t.dz)
	for k := range n {
		a, p, o := row(t.z, k), row(t.z, n+k), row(t.z, 2*n+k)
		loss := t.o.Margin - float64(numeric.Dot(a, p)) + float64(numeric.Dot(a, o))
		if loss <= 0 {
			continue // far enough apart; NaN is not
		}
		sum += loss
		f := 1 / float32(batch)
		numeric.Axpy(f, o, row(t.dz, k))
		numeric.Axpy(-f, p, row(t.dz, k))
		numeric.Axpy(-f, a, row(t.dz, n+k))
		numeric.Axpy(f, a, row(t.dz, 2*n+k))
	}
	for k, norm := range t.norms {
		numeric.NormalizeBackward(row(t.z, k), norm, row(t.dz, k))
	}
	return sum, t.net.Backward(t.dz)
}

// draw sets nodes and seeds to those of a triplet per anchor.
func (t *triplets) draw(anchors []int32, epoch int) {
	t.nodes = slices.Grow(t.nodes[:0], 3*len(anchors))[:3*len(anchors)]
	t.seeds = slices.Grow(t.seeds[:0], 3*len(anchors))[:3*len(anchors)]
	for k, a := range anchors {
		r := numeric.NewRand(t.o.Seed, streamTriplet, uint64(epoch), t.Keys[a])
		neighbours := t.Neighbours.Row(int(a)).Index
		for part, node := range [3]int32{a, neighbours[r.IntN(len(neighbours))], t.drawUnlinked(a, neighbours, &r)} {
			drop := numeric.NewRand(t.o.Seed, streamDrop, uint64(epoch), t.Keys[a], uint64(part))
			at := part*len(anchors) + k
			t.nodes[at], t.seeds[at] = node, drop.Uint64()
		}
	}
}

// drawUnlinked draws a node that is not linked to a. If it finds none in many attempts, as when a is
// linked to nearly all nodes, it returns the last draw.
func (t *triplets) drawUnlinked(a int32, neighbours []int32, r *numeric.Rand) (node int32) {
	const attempts = 100
	for range attempts {
		node = int32(r.IntN(t.Neighbours.Rows))
		if _, linked := slices.BinarySearch(neighbours, node); !linked && node != a {
			break
		}
	}
	return node
}
