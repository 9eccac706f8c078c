package xrt

import (
	"context"
	"fmt"

	"giantstream/featurize/sparse"
	"giantstream/train/internal/vector"
	"giantstream/train/xmc"
	"giantstream/train/xrlinear"
)

// lambda is the ridge of head starts, relative to the mean square of an
// embedding's numbers.
const lambda = 0.03

// startHeads starts the heads of the levels whose training begins, and all
// moments.
func (t *trainer) startHeads(ctx context.Context) error {
	for l := range t.heads.Mean {
		clear(t.heads.Mean[l])
		clear(t.heads.Square[l])
	}
	span := t.span()
	switch t.o.Start {
	case Random:
		for l := span.From; l < span.To; l++ {
			t.heads.Random(l, t.o.Seed)
		}
		return nil
	case Centroid:
		return t.centroids(ctx, span)
	}
	solved := span
	if t.o.Start == Inherit {
		solved.To = min(span.To, 1)
	}
	if solved.From < solved.To {
		if err := t.solveHeads(ctx, solved); err != nil {
			return err
		}
	}
	for l := max(solved.From, solved.To); l < span.To; l++ {
		t.heads.Inherit(l)
	}
	return nil
}

// centroids starts levels at the directions of their instances' mean.
func (t *trainer) centroids(ctx context.Context, span xmc.Span) error {
	for l := span.From; l < span.To; l++ {
		clear(t.heads.Weights[l])
	}
	err := t.sample(ctx, func(z []float32, positives []sparse.Vector) {
		t.heads.AddMeans(span, z[:len(z)-1], positives)
	})
	t.heads.EndMeans(span)
	return err
}

// solveHeads starts levels at the ridge regression, or at the classifiers.
func (t *trainer) solveHeads(ctx context.Context, span xmc.Span) error {
	z := make([]float32, 0, int(min(int64(t.o.Sample), t.instances))*(t.net.Dim()+1))
	all := make([][]sparse.Vector, len(t.problem.Levels))
	err := t.sample(ctx, func(row []float32, positives []sparse.Vector) {
		z = append(z, row...)
		for l, p := range positives {
			all[l] = append(all[l], p)
		}
	})
	for l := span.From; l < span.To && err == nil; l++ {
		err = t.solveHead(ctx, l, z, all[l])
	}
	return err
}

// solveHead starts level l on rows z (a bias of 1 at the end of each).
func (t *trainer) solveHead(ctx context.Context, l int, z []float32, positives []sparse.Vector) error {
	if t.o.Start != Linear {
		return t.heads.Solve(l, z, positives, lambda)
	}
	d := t.net.Dim()
	dense := make([]float32, 0, len(positives)*d) // the classifiers have a bias of their own
	for at := 0; at < len(z); at += d + 1 {
		dense = append(dense, z[at:at+d]...)
	}
	level := &t.problem.Levels[l]
	parent := level.Parent
	if t.problem.Whole(l) {
		parent = nil // training will show each head all instances, too
	}
	c, err := xrlinear.Heads(ctx, dense, d, positives, level.Clusters, parent, xrlinear.Options{Seed: t.o.Seed, Workers: t.o.Workers})
	if err != nil {
		return fmt.Errorf("xrt: start of the heads: %w", err)
	}
	w := t.heads.Weights[l]
	for k, bias := range c.Bias {
		row := w[k*(d+1) : (k+1)*(d+1)]
		copy(row, c.Weights[k*d:(k+1)*d])
		row[d] = bias
	}
	return nil
}

// sample calls use with what the heads see of the instances that training will
// see next, and the clusters that hold their labels per level: as many as Sample.
func (t *trainer) sample(ctx context.Context, use func(z []float32, positives []sparse.Vector)) error {
	d := t.net.Dim()
	size := int(min(int64(t.o.Sample), t.instances))
	z := make([]float32, d+1)
	texts := make([]string, 0, piece)
	var batch []Example
	t.reader.seek(ctx, t.at.Epoch, t.at.Seen)
	for epoch, rows := t.at.Epoch, 0; rows < size; rows += len(batch) {
		err := ctx.Err()
		if err != nil {
			return fmt.Errorf("xrt: start of the heads: %w", err)
		}
		if batch, err = t.reader.read(batch[:0], min(piece, size-rows)); err != nil {
			return err
		}
		if len(batch) == 0 {
			if epoch > t.at.Epoch {
				break // two epochs and still fewer than it claims to have
			}
			epoch++
			t.reader.seek(ctx, epoch, 0)
			continue
		}
		if err := t.step.prepare(batch); err != nil {
			return err
		}
		texts = texts[:0]
		for _, e := range batch {
			texts = append(texts, e.Text)
		}
		pooled := t.step.pooled[:len(batch)*d]
		if err := t.net.Forward(texts, nil, pooled); err != nil {
			return fmt.Errorf("xrt: start of the heads: %w", err)
		}
		for i := range batch {
			t.view(pooled[i*d:(i+1)*d], z)
			use(z, t.step.targets[i])
		}
	}
	return nil
}

// matcher returns the heads as a matcher: the last number of each vector is
// its bias.
func (t *trainer) matcher(heads [][]float32) *xmc.Matcher {
	d := t.net.Dim()
	m := &xmc.Matcher{Problem: t.problem, Dim: d}
	for _, w := range heads {
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

// embed writes the embeddings of texts, for the judge.
func (t *trainer) embed(texts []string, out []float32) error {
	d := t.net.Dim()
	if len(out) != len(texts)*d {
		return fmt.Errorf("xrt: %d numbers for %d embeddings of dimension %d", len(out), len(texts), d)
	}
	for lo := 0; lo < len(texts); lo += piece {
		hi := min(lo+piece, len(texts))
		if err := t.net.Forward(texts[lo:hi], nil, out[lo*d:hi*d]); err != nil {
			return err
		}
		for i := lo; i < hi; i++ {
			vector.Normalize(out[i*d : (i+1)*d])
		}
	}
	return nil
}
