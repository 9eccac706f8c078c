package heads

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/internal/ambient"
	"giantstream/train/numeric"
)

// ErrDiverged: the loss is not a finite number any more.
var ErrDiverged = errors.New("training diverged; lower the rate")

// Streams of random numbers, so that no two uses share one.
const (
	streamStart uint64 = iota + 1
	streamOrder
	streamDrop
	streamSample
)

// network is a head in training. It scores the classes of nodes. Steps are counted from 1; dropout
// and sampling in a step are functions of its number.
type network interface {
	parameters() []*parameter
	// forward scores the classes of nodes, len(nodes)×classes, in a training
	// step and keeps what backward needs. The scores are valid until the next call.
	forward(nodes []int32, step int64) []float32
	// backward adds the gradients of the parameters, given that of the last
	// forward's scores.
	backward(grad []float32)
	// predict scores the classes of nodes with nothing left out.
	predict(nodes []int32) []float32
}

// newNetwork makes a head that has learned nothing.
func newNetwork(kind Kind, d Data, classes int, o Options) (network, error) {
	switch kind {
	case MLP:
		return newPerceptron(standardized(d.Vectors, d.Dim, o.Workers), d.Dim, o.Hidden, classes, o), nil
	case SGC:
		x := d.Vectors
		for range o.Hops {
			x = smooth(x, d.Dim, d.Neighbours, o.Workers)
		}
		return newPerceptron(standardized(x, d.Dim, o.Workers), d.Dim, 0, classes, o), nil
	case SAGE:
		return newSage(standardized(d.Vectors, d.Dim, o.Workers), d.Dim, d.Neighbours, classes, o), nil
	}
	return nil, fmt.Errorf("heads: %q: %w", kind, ErrKind)
}

// trainer is one run of Train.
type trainer struct {
	net     network
	o       Options
	label   []int32
	classes int
	step    int64
	grad    []float32

	// The best weights so far and how they did.
	best         [][]float32
	bestEpoch    int
	bestAccuracy float64
	bestLoss     float64
}

// Train fits a head of the given kind to the training nodes of s and reports how
// it does on the test nodes. progress counts epochs; it may be nil.
func Train(ctx context.Context, kind Kind, d Data, s Split, o Options, progress ambient.Progress) (*Report, error) {
	o = o.withDefaults(kind)
	if err := errors.Join(o.check(), d.check(kind), s.check(d.Classes)); err != nil {
		return nil, err
	}
	names, label := d.labels()
	if distinct := countDistinct(label, s.Train); distinct < 2 {
		return nil, fmt.Errorf("heads: %w: %d in %d nodes", ErrClasses, distinct, len(s.Train))
	}
	net, err := newNetwork(kind, d, len(names), o)
	if err != nil {
		return nil, err
	}
	t := &trainer{net: net, o: o, label: label, classes: len(names)}
	r := &Report{Head: kind, Dim: d.Dim, Train: len(s.Train), Validation: len(s.Validation)}
	p := ambient.OrDiscard(progress)
	p.Stage("train "+string(kind), int64(o.Epochs))
	for e := range o.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, err := t.epoch(s, e)
		if err != nil {
			return nil, fmt.Errorf("heads: %s, epoch %d: %w", kind, e+1, err)
		}
		r.Curve = append(r.Curve, at)
		p.Add(1)
		if len(s.Validation) > 0 && e+1-t.bestEpoch >= o.Patience {
			break
		}
	}
	r.Best, r.ValidationAccuracy = len(r.Curve), 0
	if len(s.Validation) > 0 {
		r.Best, r.ValidationAccuracy = t.bestEpoch, t.bestAccuracy
		for k, q := range net.parameters() {
			copy(q.value, t.best[k])
		}
	}
	scores := net.predict(s.Test)
	predicted, truth := make([]int32, len(s.Test)), make([]int32, len(s.Test))
	for k, i := range s.Test {
		predicted[k], truth[k] = top(scores[k*t.classes:(k+1)*t.classes]), label[i]
	}
	r.score(names, predicted, truth)
	return r, nil
}

// epoch trains on each training node once and validates the weights.
func (t *trainer) epoch(s Split, number int) (Epoch, error) {
	order := slices.Clone(s.Train)
	r := numeric.NewRand(t.o.Seed, streamOrder, uint64(number))
	r.Shuffle(order)
	var e Epoch
	for batch := range slices.Chunk(order, t.o.Batch) {
		t.step++
		scores := t.net.forward(batch, t.step)
		t.grad = grown(t.grad, len(scores))
		loss, _ := t.loss(batch, scores, t.grad)
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return e, ErrDiverged
		}
		t.net.backward(t.grad)
		for _, p := range t.net.parameters() {
			p.update(t.o.Rate, t.o.Decay, t.step)
		}
		e.Loss += loss * float64(len(batch)) / float64(len(order))
	}
	if len(s.Validation) > 0 {
		t.validate(s.Validation, number+1, &e)
	}
	return e, nil
}

// validate scores the weights on the validation nodes and keeps the best.
func (t *trainer) validate(nodes []int32, epoch int, e *Epoch) {
	loss, hits := t.loss(nodes, t.net.predict(nodes), nil)
	e.ValidationLoss, e.Accuracy = loss, share(hits, len(nodes))
	if t.best != nil && (e.Accuracy < t.bestAccuracy || e.Accuracy == t.bestAccuracy && !(loss < t.bestLoss)) {
		return
	}
	t.bestEpoch, t.bestAccuracy, t.bestLoss = epoch, e.Accuracy, loss
	parameters := t.net.parameters()
	if t.best == nil {
		t.best = make([][]float32, len(parameters))
	}
	for k, p := range parameters {
		t.best[k] = append(t.best[k][:0], p.value...)
	}
}

// loss replaces the nodes' scores by probabilities. It returns the mean cross-entropy, and how many nodes have the
// highest score at their class. grad, if not nil, becomes the gradient of the mean with respect to the scores.
func (t *trainer) loss(nodes []int32, scores, grad []float32) (mean float64, hits int) {
	c := t.classes
	for k, i := range nodes {
		row, y := scores[k*c:(k+1)*c], t.label[i]
		if top(row) == y {
			hits++
		}
		score := float64(row[y])
		mean += (numeric.Softmax(row) - score) / float64(len(nodes))
		if grad == nil {
			continue
		}
		for j, p := range row {
			grad[k*c+j] = p / float32(len(nodes))
		}
		grad[k*c+int(y)] -= 1 / float32(len(nodes))
	}
	return mean, hits
}

// top returns the place of the highest score, the first of equals.
func top(row []float32) int32 {
	best := 0
	for j, z := range row {
		if z > row[best] {
			best = j
		}
	}
	return int32(best)
}

func countDistinct(label, nodes []int32) int {
	seen := map[int32]bool{}
	for _, i := range nodes {
		seen[label[i]] = true
	}
	return len(seen)
}
