package build

import (
	"context"
	"errors"

	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/fit"
)

func (b *build) loadProjection(ctx context.Context) (*projection.Projection, error) {
	return sharedArtifact(ctx, b, stages.Projection, "projection", projection.Read)
}

// projectionStats is what projection says of itself.
type projectionStats struct {
	Dim int `json:"dim"`
}

// dim is the dimension of the labels' features.
func (b *build) dim(ctx context.Context) (int, error) {
	s, err := stats[projectionStats](ctx, b, stages.Projection, 0)
	return min(b.doc.Settings.EmbeddingDim, s.Dim), err
}

// walk calls visit with all nodes in the order of their positions, from a position that the seed draws on and
// around, until visit returns false. As positions go by a hash, every run of them is a random sample.
func (b *build) walk(ctx context.Context, seed uint64, visit func(position int, text string) bool) error {
	x, err := b.numbered(ctx)
	if err != nil {
		return err
	}
	stop := errors.New("stop")
	begin := b.begin(x, seed)
	first := x.of(begin)
	for k := range b.plan.Partitions + 1 {
		p := (first + k) % b.plan.Partitions
		err := b.texts(ctx, p, func(lo int, texts []string) error {
			for i, text := range texts {
				at := x.Base[p] + lo + i
				if k == 0 && at < begin || k == b.plan.Partitions && at >= begin {
					continue // what comes before the beginning comes last
				}
				if !visit(at, text) {
					return stop
				}
			}
			return ctx.Err()
		})
		if errors.Is(err, stop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// projection fits the projection to a sample of the texts that have features. A warm start keeps the parent's.
func (t *task) projection(ctx context.Context) error {
	if warm, _, err := t.warm(ctx); err != nil || warm {
		return errors.Join(err, t.keepProjection(ctx))
	}
	v, err := t.loadVectorizer(ctx)
	if err != nil {
		return err
	}
	sample := &sparse.Matrix{Cols: v.Dim(), Start: []int64{0}}
	if err := t.walk(ctx, t.doc.Settings.Seed, func(_ int, text string) bool {
		if f := v.Transform(text, sparse.Vector{}); len(f.Index) > 0 {
			sample.Append(f)
		}
		return sample.Rows < fit.ProjectionSample
	}); err != nil {
		return err
	}
	q, err := fit.ProjectionOf(sample, t.doc.Settings, t.resources())
	if errors.Is(err, projection.ErrNoData) {
		x, xerr := t.numbered(ctx)
		return errors.Join(t.alike(x, err), xerr)
	}
	if err != nil {
		return err
	}
	t.stats = projectionStats{q.Dim()}
	return t.put(ctx, "projection", t.final(generation.ProjectionName), q.Write)
}

// keepProjection makes the parent's projection the generation's own.
func (t *task) keepProjection(ctx context.Context) error {
	q, err := artifact(ctx, t.build, stages.Start, generation.ProjectionName, projection.Read)
	if err != nil {
		return err
	}
	t.stats = projectionStats{q.Dim()}
	return t.keepArtifact(ctx, generation.ProjectionName)
}
