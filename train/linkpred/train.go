package linkpred

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"giantstream/sink/tempfile"
	"giantstream/train"
	"giantstream/train/internal/optim"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
	"giantstream/train/xrt"
)

// piece is how many triplets go through the network at a time: it bounds the
// activations that it keeps.
const piece = 16

// Streams of random numbers, so that no two uses share one.
const (
	streamOrder uint64 = iota + 1
	streamTriplet
	streamDrop
)

// Judge scores the network's present weights on what was held out; higher is
// better.
type Judge func(ctx context.Context) (float64, error)

// trainer is one run of Train.
type trainer struct {
	net     xrt.Network
	g       Graph
	o       Options
	judge   Judge
	anchors []int32
	step    int64
	steps   int64
	texts   []string  // of a piece: anchors, neighbours, others
	seeds   []uint64  // of what the network drops of them
	z, dz   []float32 // their vectors, of length 1, and the gradients

	best  *tempfile.File // the network's best state
	score float64
	bad   int // epochs since the best one
}

// Train fine-tunes net on g's links. The network's Forward is called to train;
// one that leaves things out at random may do so. With a judge, which may be nil,
// the network ends with the weights of the epoch that it scored best, or those
// it began with. progress counts anchors; it may be nil.
func Train(ctx context.Context, net xrt.Network, g Graph, o Options, judge Judge, progress train.Progress) (r *Report, err error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	t := &trainer{net: net, g: g, o: o, judge: judge, score: math.Inf(-1),
		z: make([]float32, 3*piece*net.Dim()), dz: make([]float32, 3*piece*net.Dim())}
	for _, i := range g.Anchors {
		if len(g.Neighbours.Row(int(i)).Index) > 0 {
			t.anchors = append(t.anchors, i)
		}
	}
	if len(t.anchors) == 0 {
		return nil, fmt.Errorf("linkpred: %w", ErrEmpty)
	}
	defer func() {
		if t.best != nil {
			err = errors.Join(err, t.best.Close())
		}
	}()
	t.steps = int64(o.Epochs * ((len(t.anchors) + o.Batch - 1) / o.Batch))
	return t.run(ctx, train.OrDiscard(progress))
}

func (t *trainer) run(ctx context.Context, p train.Progress) (*Report, error) {
	r := &Report{Anchors: len(t.anchors)}
	var err error
	if r.Start, err = t.judged(ctx); err != nil {
		return nil, err
	}
	p.Stage("link prediction", int64(t.o.Epochs*len(t.anchors)))
	for e := 0; e < t.o.Epochs && t.bad < t.o.Patience; e++ {
		var at Epoch
		if at.Loss, err = t.epoch(ctx, e, p); err == nil {
			at.Score, err = t.judged(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("linkpred: epoch %d: %w", e+1, err)
		}
		r.Epochs = append(r.Epochs, at)
		if t.bad == 0 {
			r.Best = e + 1
		}
	}
	if t.best == nil {
		return r, nil
	}
	if _, err = t.best.Seek(0, io.SeekStart); err == nil {
		err = t.net.ReadState(bufio.NewReaderSize(t.best, 1<<20))
	}
	if err != nil {
		return nil, fmt.Errorf("linkpred: best weights: %w", err)
	}
	return r, nil
}

// epoch takes a triplet of every anchor and returns the mean loss.
func (t *trainer) epoch(ctx context.Context, number int, p train.Progress) (mean float64, err error) {
	order := slices.Clone(t.anchors)
	r := rng.New(t.o.Seed, streamOrder, uint64(number))
	r.Shuffle(order)
	for batch := range slices.Chunk(order, t.o.Batch) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for part := range slices.Chunk(batch, piece) {
			loss, err := t.piece(part, number, len(batch))
			if err != nil {
				return 0, err
			}
			mean += loss / float64(len(order))
		}
		if math.IsNaN(mean) || math.IsInf(mean, 0) {
			return 0, ErrDiverged
		}
		if _, err := t.net.Update(t.o.Rate * optim.Fraction(t.step, t.steps, warmup)); err != nil {
			return 0, err
		}
		t.step++
		p.Add(int64(len(batch)))
	}
	return mean, nil
}

// piece runs the triplets of some anchors forwards and backwards and returns the
// sum of their losses.
func (t *trainer) piece(anchors []int32, epoch, batch int) (sum float64, err error) {
	n, d := len(anchors), t.net.Dim()
	if err := t.draw(anchors, epoch); err != nil {
		return 0, err
	}
	z, dz := t.z[:3*n*d], t.dz[:3*n*d]
	if err := t.net.Forward(t.texts, t.seeds, z); err != nil {
		return 0, err
	}
	norms := make([]float32, 3*n)
	for k := range norms {
		norms[k] = vector.Normalize(z[k*d : (k+1)*d])
	}
	clear(dz)
	row := func(x []float32, k int) []float32 { return x[k*d : (k+1)*d] }
	for k := range n {
		a, p, o := row(z, k), row(z, n+k), row(z, 2*n+k)
		loss := t.o.Margin - float64(vector.Dot(a, p)) + float64(vector.Dot(a, o))
		if loss <= 0 {
			continue // far enough apart; NaN goes on
		}
		sum += loss
		f := 1 / float32(batch)
		vector.Axpy(f, o, row(dz, k))
		vector.Axpy(-f, p, row(dz, k))
		vector.Axpy(-f, a, row(dz, n+k))
		vector.Axpy(f, a, row(dz, 2*n+k))
	}
	for k, norm := range norms {
		vector.Denormalize(row(z, k), norm, row(dz, k))
	}
	return sum, t.net.Backward(dz)
}

// draw sets texts and seeds to those of a triplet per anchor.
func (t *trainer) draw(anchors []int32, epoch int) error {
	t.texts = append(t.texts[:0], make([]string, 3*len(anchors))...)
	t.seeds = append(t.seeds[:0], make([]uint64, 3*len(anchors))...)
	for k, a := range anchors {
		r := rng.New(t.o.Seed, streamTriplet, uint64(epoch), uint64(a))
		neighbours := t.g.Neighbours.Row(int(a)).Index
		for part, node := range [3]int32{a, neighbours[r.IntN(len(neighbours))], t.other(a, neighbours, &r)} {
			drop := rng.New(t.o.Seed, streamDrop, uint64(epoch), uint64(a), uint64(part))
			at := part*len(anchors) + k
			t.seeds[at] = drop.Uint64()
			var err error
			if t.texts[at], err = t.g.Text(int(node)); err != nil {
				return err
			}
		}
	}
	return nil
}

// other draws a node that is not linked to a. Where that is hard to find, as
// when a is linked to nearly all, the last draw stands.
func (t *trainer) other(a int32, neighbours []int32, r *rng.Source) (node int32) {
	const attempts = 100
	for range attempts {
		node = int32(r.IntN(t.g.Neighbours.Rows))
		if _, linked := slices.BinarySearch(neighbours, node); !linked && node != a {
			break
		}
	}
	return node
}

// judged scores the weights and keeps them if they are the best so far. It
// returns 0 without a judge.
func (t *trainer) judged(ctx context.Context) (float64, error) {
	if t.judge == nil {
		return 0, nil
	}
	score, err := t.judge(ctx)
	if err != nil {
		return 0, fmt.Errorf("judge: %w", err)
	}
	if math.IsNaN(score) {
		return 0, fmt.Errorf("judge: no number: %w", ErrDiverged)
	}
	if t.bad++; score <= t.score {
		return score, nil
	}
	t.score, t.bad = score, 0
	return score, t.keep()
}

// keep writes the network's state to the file.
func (t *trainer) keep() (err error) {
	if t.best == nil {
		if t.best, err = tempfile.Create("giantstream-linkpred-*"); err != nil {
			return fmt.Errorf("best weights (set TMPDIR to a larger disk): %w", err)
		}
	}
	if _, err = t.best.Seek(0, io.SeekStart); err != nil {
		return err
	}
	w := bufio.NewWriterSize(t.best, 1<<20)
	if err = t.net.WriteState(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		var size int64
		if size, err = t.best.Seek(0, io.SeekCurrent); err == nil {
			err = t.best.Truncate(size)
		}
	}
	if err != nil {
		return fmt.Errorf("best weights (set TMPDIR to a larger disk): %w", err)
	}
	return nil
}
