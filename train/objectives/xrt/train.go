package xrt

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/ambient"
	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
)

// Set is a training set: the instances of a graph, and the tree over its labels.
type Set struct {
	// Neighbours is the adjacency: row i are the labels of instance i.
	Neighbours *sparse.Matrix
	// Tree clusters the labels. Its finest level may be the labels themselves (xmc.WithLabels).
	Tree xmc.Tree
	// Instances are the nodes to train on. Those whose labels are all outside the tree teach nothing.
	Instances []int32
	// HeldOut are instances that validate. They are labels of others, and no partners of the
	// contrastive part (Options.Links).
	HeldOut []int32
	// Keys are the nodes' keys, by which everything is drawn for them (numeric.Keys).
	Keys []uint64
	// Stream keeps the order of instances apart from other uses of Options.Seed.
	Stream uint64
	// Labels holds a vector of the network's dimension and of length 1 for each label: its
	// PIFA. Only LabelMeans needs it.
	Labels []float32
}

// Result is what Train leaves besides the network's weights.
type Result struct {
	Matcher *xmc.Matcher
	Report  trainer.Report
}

// Train trains net to predict the neighbourhoods of set's instances. progress counts
// instances; it may be nil.
func Train(ctx context.Context, net train.Network, set Set, o Options, hooks trainer.Hooks,
	progress ambient.Progress) (*Result, error) {
	if len(set.Instances) == 0 {
		return nil, fmt.Errorf("xrt: %w", trainer.ErrEmpty)
	}
	if len(set.Keys) != set.Neighbours.Rows {
		return nil, fmt.Errorf("xrt: %d keys of %d nodes", len(set.Keys), set.Neighbours.Rows)
	}
	n, err := newNeighbourhoods(net, set, o)
	if err != nil {
		return nil, err
	}
	report, err := trainer.Train(ctx, net, n, set.Instances, n.loop(), hooks, progress)
	if err != nil {
		return nil, fmt.Errorf("xrt: %w", err)
	}
	return &Result{Matcher: n.matcher(), Report: *report}, nil
}

// neighbourhoods is the objective: heads that predict, from an instance's embedding, which
// clusters of the tree hold its labels.
type neighbourhoods struct {
	net     train.Network
	set     Set
	o       Options
	problem *xmc.Problem
	heads   *xmc.Heads
	weight  []float64 // of instances by node, where Weights is OverSet

	links *links // nil without the contrastive part

	// Per instance of a part of a batch (with links, also per partner): the pooled vector and the
	// gradient with respect to it (Dim each), what the heads see and its gradient (Dim, and 1 for the bias).
	seeds        []uint64
	pooled, grad []float32
	z, dz        []float32
	// Per instance of the batch.
	weights, loss []float64
}

var _ trainer.Objective = (*neighbourhoods)(nil)

func newNeighbourhoods(net train.Network, set Set, o Options) (*neighbourhoods, error) {
	o = o.withDefaults(len(set.Instances))
	problem, err := xmc.FromTree(set.Tree, set.Neighbours)
	if err != nil {
		return nil, err
	}
	if o.Batch < 1 || o.Sample < 1 || !(o.HeadRate > 0) {
		return nil, fmt.Errorf("xrt: batch %d, sample %d and rate of the heads %g must be positive", o.Batch,
			o.Sample, o.HeadRate)
	}
	n := &neighbourhoods{net: net, set: set, o: o, problem: problem, links: newLinks(o, set)}
	part, rows := o.Batch, o.Batch
	if limit := n.maxPart(); limit > 0 {
		part, rows = min(part, limit), min(rows, limit)
	}
	if n.links != nil {
		rows = 2 * part
	}
	d, seen := net.Dim(), n.dim()
	n.heads = xmc.NewHeads(problem, seen, o.Batch, o.Heads)
	n.pooled, n.grad = make([]float32, rows*d), make([]float32, rows*d)
	n.z, n.dz = make([]float32, part*seen), make([]float32, part*seen)
	n.seeds, n.weights, n.loss = make([]uint64, rows), make([]float64, o.Batch), make([]float64, o.Batch)
	if o.Start == LabelMeans && (!o.NoBias || len(set.Labels) != set.Neighbours.Rows*d) {
		return nil, fmt.Errorf("xrt: heads without bias start at the means of labels; "+
			"%d numbers are not %d labels of dimension %d",
			len(set.Labels), set.Neighbours.Rows, d)
	}
	n.weigh()
	return n, nil
}

// dim is the length of what the heads see.
func (n *neighbourhoods) dim() int {
	if n.o.NoBias {
		return n.net.Dim()
	}
	return n.net.Dim() + 1
}

// weigh sets the weights of instances, where they do not depend on the batch: 1 on average.
func (n *neighbourhoods) weigh() {
	if n.o.Weights != OverSet {
		return
	}
	n.weight = make([]float64, n.set.Neighbours.Rows)
	var total float64
	for _, i := range n.set.Instances {
		n.weight[i] = math.Sqrt(n.labels(i))
		total += n.weight[i]
	}
	mean := float32(float64(len(n.set.Instances)) / total)
	for _, i := range n.set.Instances {
		n.weight[i] = float64(float32(n.weight[i]) * mean)
	}
}

// maxPart is how many instances go through the network at a time, 0 for any number.
func (n *neighbourhoods) maxPart() int {
	if n.links == nil {
		return n.net.MaxBatch()
	}
	return n.net.MaxBatch() / 2 // an instance and its partner
}

// labels is the number of an instance's labels that are in the tree.
func (n *neighbourhoods) labels(instance int32) (sum float64) {
	for _, v := range n.problem.Levels[0].Targets.Row(int(instance)).Value {
		sum += float64(v)
	}
	return sum
}

// Name implements trainer.Objective.
func (n *neighbourhoods) Name() string { return n.o.Name }

// stages is how many times the rates rise and fall.
func (n *neighbourhoods) stages() int {
	if n.o.Schedule == Joint {
		return 1
	}
	return len(n.problem.Levels)
}

// span is the levels that a stage trains.
func (n *neighbourhoods) span(stage int) xmc.Span {
	if n.o.Schedule == Joint {
		return xmc.Span{From: 0, To: len(n.problem.Levels)}
	}
	return xmc.Span{From: stage, To: stage + 1}
}

// Level implements trainer.Objective: the number of the level in the whole tree, as the problem
// leaves out first ones of a single cluster.
func (n *neighbourhoods) Level(stage int) int {
	return n.set.Tree.Levels() - len(n.problem.Levels) + n.span(stage).To - 1
}

// Weights implements trainer.Objective.
func (n *neighbourhoods) Weights() [][]float32 { return n.heads.Weights }

// Moments implements trainer.Objective.
func (n *neighbourhoods) Moments() [][]float32 {
	return append(append([][]float32(nil), n.heads.Mean...), n.heads.Square...)
}

// Update implements trainer.Objective.
func (n *neighbourhoods) Update(at trainer.Place, batch int, fraction float64) {
	n.heads.Update(batch, n.o.HeadRate*fraction, at.StageStep, n.o.Workers)
}

// Step implements trainer.Objective.
func (n *neighbourhoods) Step(at trainer.Place, batch []int32) (float64, error) {
	n.weighBatch(batch)
	for part, first := range trainer.Parts(batch, n.maxPart()) {
		if err := n.part(at, part, first, len(batch)); err != nil {
			return 0, err
		}
	}
	var loss float64
	for _, l := range n.loss[:len(batch)] {
		loss += l
	}
	return loss / float64(len(batch)), nil
}

// weighBatch sets the weights of a batch.
func (n *neighbourhoods) weighBatch(batch []int32) {
	var total float64
	for k, i := range batch {
		switch n.o.Weights {
		case OverSet:
			n.weights[k] = n.weight[i]
		case Uniform:
			n.weights[k] = 1
		default:
			n.weights[k] = math.Sqrt(n.labels(i))
			total += n.weights[k]
		}
	}
	for k := range batch {
		if total > 0 {
			n.weights[k] *= float64(len(batch)) / total
		}
	}
}

// part runs a part of the batch forwards and backwards; first is the place of its first
// instance in the batch of the given size.
func (n *neighbourhoods) part(at trainer.Place, part []int32, first, size int) error {
	d, seen := n.net.Dim(), n.dim()
	for k, i := range part {
		n.seeds[k] = n.draw(streamDrop, uint64(at.Epoch), n.set.Keys[i])
	}
	nodes := part
	if n.links != nil {
		nodes = append(slices.Clone(part), n.links.draw(n.o, at, part, n.set)...)
		for k := range nodes[len(part):] {
			i, j := n.links.instances[k], nodes[len(part)+k]
			n.seeds[len(part)+k] = n.draw(streamPartnerDrop, uint64(at.Epoch), n.set.Keys[i], n.set.Keys[j])
		}
	}
	if err := n.net.Forward(nodes, n.seeds[:len(nodes)], n.pooled[:len(nodes)*d]); err != nil {
		return err
	}
	norms := make([]float32, len(nodes))
	grad := n.grad[:len(nodes)*d]
	parallel.ForEach(len(part), 4, n.o.Workers, func(_, _, from, to int) {
		for k := from; k < to; k++ {
			z, dz := n.z[k*seen:(k+1)*seen], n.dz[k*seen:(k+1)*seen]
			clear(dz)
			norms[k] = n.view(n.pooled[k*d:(k+1)*d], z)
			slot := first + k
			n.loss[slot] = n.heads.Forward(slot, z, n.problem.Targets(int(part[k])), n.span(at.Stage),
				float32(n.weights[slot]), dz)
			copy(n.pooled[k*d:], z[:d])
			copy(grad[k*d:], dz[:d])
		}
	})
	if n.links != nil {
		for k := len(part); k < len(nodes); k++ {
			norms[k] = n.view(n.pooled[k*d:(k+1)*d], n.pooled[k*d:(k+1)*d])
		}
		clear(grad[len(part)*d:])
		n.links.run(d, len(part), n.set.Neighbours, n.o.Workers, n.pooled[:len(nodes)*d], grad)
		for k, slot := range n.links.slot {
			n.loss[first+int(slot)] += n.links.loss[k]
		}
	}
	scale := 1 / float32(size)
	if n.o.SumGradients {
		scale = 1
	}
	parallel.ForEach(len(nodes), 16, n.o.Workers, func(_, _, from, to int) {
		for k := from; k < to; k++ {
			g := grad[k*d : (k+1)*d]
			n.unview(n.pooled[k*d:(k+1)*d], norms[k], g)
			for i := range g {
				g[i] *= scale
			}
		}
	})
	return n.net.Backward(grad)
}

// streamDrop is the stream of what the network drops of an instance.
const streamDrop = 4

func (n *neighbourhoods) draw(at ...uint64) uint64 {
	r := numeric.NewRand(n.o.Seed, at...)
	return r.Uint64()
}

// view writes what the heads see of a pooled vector to z, a bias of 1 at its end unless the
// heads have none, and returns the pooled vector's length.
func (n *neighbourhoods) view(pooled, z []float32) (norm float32) {
	d := len(pooled)
	copy(z, pooled)
	if len(z) > d {
		z[d] = 1
	}
	if n.o.Raw {
		return 1
	}
	return numeric.Normalize(z[:d])
}

// unview turns the gradient with respect to z into that with respect to the
// pooled vector h = norm·z.
func (n *neighbourhoods) unview(z []float32, norm float32, dz []float32) {
	if !n.o.Raw {
		numeric.NormalizeBackward(z, norm, dz)
	}
}

// matcher returns the heads as a matcher: where they have a bias, it is the last number of
// each vector.
func (n *neighbourhoods) matcher() *xmc.Matcher {
	d := n.net.Dim()
	m := &xmc.Matcher{Problem: n.problem, Dim: d}
	if n.o.NoBias {
		m.Weights = n.heads.Weights
		return m
	}
	for _, w := range n.heads.Weights {
		clusters := len(w) / (d + 1)
		rows, bias := make([]float32, 0, clusters*d), make([]float32, clusters)
		for c := range clusters {
			rows = append(rows, w[c*(d+1):c*(d+1)+d]...)
			bias[c] = w[c*(d+1)+d]
		}
		m.Weights, m.Bias = append(m.Weights, rows), append(m.Bias, bias)
	}
	return m
}

// Describe implements trainer.Objective.
func (n *neighbourhoods) Describe(w io.Writer) {
	o, h := n.o, n.o.Heads
	fmt.Fprintf(w,
		"neighbourhoods schedule=%d head_rate=%v start=%d sample=%d raw=%t "+
			"no_bias=%t weights=%d sum=%t ",
		o.Schedule, o.HeadRate, o.Start, o.Sample, o.Raw, o.NoBias, o.Weights, o.SumGradients)
	fmt.Fprintf(w, "loss=%d negatives=%d scale=%v matched=%d count_weights=%t clip=%v decay=%v\n",
		h.Loss, h.Negatives, h.Scale, h.Matched, h.CountWeights, h.Clip, h.Decay)
	if n.links != nil {
		fmt.Fprintf(w, "links=%v temperature=%v held_out=%d\n", o.Links, o.Temperature, len(n.set.HeldOut))
	}
	for _, l := range n.problem.Levels {
		// Writing to a hash cannot fail.
		_ = binary.Write(w, binary.LittleEndian, l.Parent)
		_ = binary.Write(w, binary.LittleEndian, l.Targets.Start)
		_ = binary.Write(w, binary.LittleEndian, l.Targets.Index)
		_ = binary.Write(w, binary.LittleEndian, l.Targets.Value)
	}
}
