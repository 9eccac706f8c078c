package xrt

import (
	"context"
	"fmt"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrlinear"
)

// lambda is the ridge of head starts, relative to the mean square of an
// embedding's numbers.
const lambda = 0.03

// Begin implements trainer.Objective: it starts the heads of the levels whose training begins,
// and all moments.
func (n *neighbourhoods) Begin(ctx context.Context, stage int, upcoming func(int) []int32) error {
	for l := range n.heads.Mean {
		clear(n.heads.Mean[l])
		clear(n.heads.Square[l])
	}
	span := n.span(stage)
	switch n.o.Start {
	case Random:
		for l := span.From; l < span.To; l++ {
			n.heads.Random(l, n.o.Seed)
		}
		return nil
	case Centroid:
		return n.centroids(ctx, span, upcoming)
	case LabelMeans:
		n.heads.Centroids(span, n.set.Tree, n.set.Labels)
		return nil
	}
	solved := span
	if n.o.Start == Inherit {
		solved.To = min(span.To, 1)
	}
	if solved.From < solved.To {
		if err := n.solveHeads(ctx, solved, upcoming); err != nil {
			return err
		}
	}
	for l := max(solved.From, solved.To); l < span.To; l++ {
		n.heads.Inherit(l)
	}
	return nil
}

// centroids starts levels at the directions of their instances' mean.
func (n *neighbourhoods) centroids(ctx context.Context, span xmc.Span, upcoming func(int) []int32) error {
	for l := span.From; l < span.To; l++ {
		clear(n.heads.Weights[l])
	}
	err := n.sample(ctx, upcoming, func(z []float32, positives []sparse.Vector) {
		n.heads.AddMeans(span, z[:n.net.Dim()], positives)
	})
	n.heads.EndMeans(span)
	return err
}

// solveHeads starts levels at the ridge regression, or at the classifiers.
func (n *neighbourhoods) solveHeads(ctx context.Context, span xmc.Span, upcoming func(int) []int32) error {
	z := make([]float32, 0, min(n.o.Sample, len(n.set.Instances))*n.dim())
	all := make([][]sparse.Vector, len(n.problem.Levels))
	err := n.sample(ctx, upcoming, func(row []float32, positives []sparse.Vector) {
		z = append(z, row...)
		for l, p := range positives {
			all[l] = append(all[l], p)
		}
	})
	for l := span.From; l < span.To && err == nil; l++ {
		err = n.solveHead(ctx, l, z, all[l])
	}
	return err
}

// solveHead starts level l on rows z (a bias of 1 at the end of each).
func (n *neighbourhoods) solveHead(ctx context.Context, l int, z []float32, positives []sparse.Vector) error {
	if n.o.Start != Linear {
		return n.heads.Solve(l, z, positives, lambda)
	}
	d := n.net.Dim()
	bias := n.dim() - d
	dense := make([]float32, 0, len(positives)*d) // the classifiers have a bias of their own
	for at := 0; at < len(z); at += d + bias {
		dense = append(dense, z[at:at+d]...)
	}
	level := &n.problem.Levels[l]
	parent := level.Parent
	if n.problem.AllCandidates(l) {
		parent = nil // training will show each head all instances, too
	}
	c, err := xrlinear.Heads(ctx, dense, d, positives, level.Clusters, parent, xrlinear.Options{Seed: n.o.Seed,
		Workers: n.o.Workers})
	if err != nil {
		return fmt.Errorf("start of the heads: %w", err)
	}
	w := n.heads.Weights[l]
	for k, b := range c.Bias {
		row := w[k*(d+bias) : (k+1)*(d+bias)]
		copy(row, c.Weights[k*d:(k+1)*d])
		copy(row[d:], []float32{b}[:bias])
	}
	return nil
}

// sample calls use with what the heads see of the instances that training will
// see next, and the clusters that hold their labels per level: as many as Sample.
func (n *neighbourhoods) sample(ctx context.Context, upcoming func(int) []int32, use func(z []float32,
	positives []sparse.Vector)) error {
	d := n.net.Dim()
	z := make([]float32, n.dim())
	for part := range slices.Chunk(upcoming(min(n.o.Sample, len(n.set.Instances))), len(n.pooled)/d) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("start of the heads: %w", err)
		}
		pooled := n.pooled[:len(part)*d]
		if err := n.net.Forward(part, nil, pooled); err != nil {
			return fmt.Errorf("start of the heads: %w", err)
		}
		for k, i := range part {
			n.view(pooled[k*d:(k+1)*d], z)
			use(z, n.problem.Targets(int(i)))
		}
	}
	return nil
}
