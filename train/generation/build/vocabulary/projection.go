package vocabulary

import (
	"context"
	"errors"

	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
)

// LoadProjection reads the projection, once for all tasks of this process.
func LoadProjection(ctx context.Context, b *work.Build) (*projection.Projection, error) {
	return work.ShareArtifact(ctx, b, stages.Projection, "projection", projection.Read)
}

// projectionStats is what projection says of itself.
type projectionStats struct {
	Dim int `json:"dim"`
}

// FeatureDim is the dimension of the labels' features.
func FeatureDim(ctx context.Context, b *work.Build) (int, error) {
	s, err := work.StatsOf[projectionStats](ctx, b, stages.Projection, 0)
	return min(b.Doc.Settings.EmbeddingDim, s.Dim), err
}

// walkSample calls visit with all nodes in the order of their positions, from a position that the seed draws on and
// around, until visit returns false. As positions go by a hash, every run of them is a random sample.
func walkSample(ctx context.Context, b *work.Build, seed uint64, visit func(position int, text string) bool) error {
	x, err := graph.LoadNumbering(ctx, b)
	if err != nil {
		return err
	}
	stop := errors.New("stop")
	begin := graph.SampleBegin(b, x, seed)
	first := x.PartitionAt(begin)
	for k := range b.Plan.Partitions + 1 {
		p := (first + k) % b.Plan.Partitions
		err := graph.EachTextBlock(ctx, b, p, func(lo int, texts []string) error {
			for i, text := range texts {
				at := x.Base[p] + lo + i
				if k == 0 && at < begin || k == b.Plan.Partitions && at >= begin {
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

// FitProjection fits the projection to a sample of the texts that have features, and averages it with the parent's.
//
//	fresh  the projection before it was averaged, if it was
func FitProjection(ctx context.Context, t *work.Task) error {
	v, err := LoadVectorizer(ctx, t.Build)
	if err != nil {
		return err
	}
	var parent *fit.Parent
	if t.Doc.AveragedWith != 0 {
		if parent, _, err = generation.OpenParent(ctx, t.Store, t.Doc, t.TaskResources()); err != nil {
			return err
		}
		defer parent.Close() //nolint:errcheck // it was read, whatever a device says
	}
	sample, parents := &sparse.Matrix{Cols: v.Dim(), Start: []int64{0}}, &sparse.Matrix{Start: []int64{0}}
	if err := walkSample(ctx, t.Build, t.Doc.Settings.Seed, func(_ int, text string) bool {
		if f := v.Transform(text, sparse.Vector{}); len(f.Index) > 0 {
			sample.Append(f)
			if parent != nil {
				parents.Append(parent.Vectorizer.Transform(text, sparse.Vector{}))
			}
		}
		return sample.Rows < fit.ProjectionSample
	}); err != nil {
		return err
	}
	q, err := fit.ProjectionOf(sample, t.Doc.Settings, t.TaskResources())
	if errors.Is(err, projection.ErrNoData) {
		x, xerr := graph.LoadNumbering(ctx, t.Build)
		return errors.Join(errAlike(t, x, err), xerr)
	}
	if err != nil {
		return err
	}
	if parent != nil {
		if err := t.Put(ctx, "fresh", "", q.Write); err != nil {
			return err
		}
		if q, err = fit.AverageProjection(q, v, sample, parent, parents, t.Doc.Settings.EmbeddingDim,
			t.Workers); err != nil {
			return err
		}
	}
	t.Stats = projectionStats{q.Dim()}
	return t.Put(ctx, "projection", t.ArtifactKey(generation.ProjectionName), q.Write)
}

// LoadFresh reads the projection as it was before it was averaged: what the texts say by themselves, with nothing of
// the generations before. It is the generation's own where the parent could not be read.
func LoadFresh(ctx context.Context, b *work.Build) (*projection.Projection, error) {
	from, err := b.OutputsOf(ctx, stages.Projection, 0)
	if err != nil {
		return nil, err
	}
	if _, averaged := from.Outputs["fresh"]; !averaged {
		return LoadProjection(ctx, b)
	}
	return work.ReadArtifact(ctx, b, stages.Projection, "fresh", projection.Read)
}
