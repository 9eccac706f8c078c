package fit

import (
	"context"
	"fmt"

	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/numeric"
)

// axesSample bounds how many nodes' embeddings a rotation is taken from: a transformer
// encodes this many in half a minute, and the axes of this many vectors of a few hundred dimensions hardly
// differ from those of all.
const axesSample = 8192

// rotator is an encoder whose embeddings can be multiplied by an orthogonal matrix. Encoders whose
// dimensions are ordered by what they are, as the text-only baseline's, have no Rotate.
type rotator interface{ Rotate(axes []float32) }

// orient turns the embeddings of a trained encoder, which leaves all cosines as they are. The matcher is turned with
// them. If there is a parent with as many dimensions, they are turned to where that one has the same texts,
// so that vectors of both can be compared. Else they are turned onto their principal axes, so that the first 64,
// 128, 256, … dimensions of an embedding can be used alone (Matryoshka order), and mixed within these groups, so
// that 8 bits per number suffice. What is turned to where the parent is inherits its order.
func (t *Training) orient(ctx context.Context, trained *Trained) error {
	encoder, ok := trained.Encoder.(rotator)
	if !ok || t.Texts.Len() == 0 {
		return nil
	}
	step := (t.Texts.Len() + axesSample - 1) / axesSample
	nodes := make([]int32, 0, axesSample)
	for i := 0; i < t.Texts.Len(); i += step {
		nodes = append(nodes, int32(i))
	}
	rotation, err := t.alignment(ctx, trained, nodes)
	if trained.Aligned = rotation != nil; err == nil && !trained.Aligned {
		rotation, err = t.axes(ctx, trained.Encoder, nodes)
	}
	if err != nil || rotation == nil {
		return err
	}
	encoder.Rotate(rotation)
	trained.Matcher.Rotate(rotation)
	return nil
}

// alignment returns the rotation to where the parent has a sample of nodes, nil if there is none, or none of
// as many dimensions.
func (t *Training) alignment(ctx context.Context, trained *Trained, sample []int32) ([]float32, error) {
	parent, err := t.parent(ctx)
	if err != nil || parent == nil {
		return nil, err
	}
	e, before, r := trained.Encoder, parent.Encoder, t.Resources
	r.Progress.Stage("align with the generation before", 2*int64(len(sample)))
	if before.Dim() != e.Dim() {
		r.Log.Info("the embeddings start a new space: they have another dimension than before", "dim", e.Dim(),
			"before", before.Dim())
		return nil, nil
	}
	to, err := t.embedNodes(ctx, before, sample)
	if err != nil {
		return nil, err
	}
	from, err := t.embedNodes(ctx, e, sample)
	if err != nil {
		return nil, err
	}
	rotation, err := numeric.Procrustes(from, to, e.Dim())
	if err != nil {
		return nil, fmt.Errorf("align the %s with the generation before: %w", e.Kind(), err)
	}
	return rotation, nil
}

// axes returns the rotation that orders the dimensions, nil for an encoder that has ordered them itself.
func (t *Training) axes(ctx context.Context, e train.Encoder, sample []int32) ([]float32, error) {
	if _, ordered := e.(*hybrid.Encoder); ordered {
		return nil, nil
	}
	t.Resources.Progress.Stage("order the dimensions", int64(len(sample)))
	rows, err := t.embedNodes(ctx, e, sample)
	if err != nil {
		return nil, err
	}
	axes, err := numeric.PrincipalAxes(rows, e.Dim())
	if err != nil {
		return nil, fmt.Errorf("order the dimensions of the %s: %w", e.Kind(), err)
	}
	numeric.MixGroups(axes, e.Dim())
	return axes, nil
}

// embedNodes returns the embeddings of nodes, with all that the encoder knows of them.
func (t *Training) embedNodes(ctx context.Context, e train.Encoder, nodes []int32) ([]float32, error) {
	return embed(ctx, e, idsOf(t.Graph, nodes), t.Texts.Subset(nodes), t.Resources.Progress)
}
