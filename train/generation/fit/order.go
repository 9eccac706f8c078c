package fit

import (
	"context"
	"fmt"

	"giantstream/train/numeric"
)

// axesSample bounds how many nodes' embeddings the principal axes are taken from: a transformer
// encodes so many in half a minute, and the axes of so many vectors of a few hundred dimensions hardly
// differ from those of all.
const axesSample = 8192

// axesBlock is how many texts are encoded at a time.
const axesBlock = 1024

// rotator is an encoder whose embeddings can be multiplied by an orthogonal matrix. Encoders whose
// dimensions are ordered by what they are, as the text-only baseline's, have no Rotate.
type rotator interface{ Rotate(axes []float32) }

// order turns the embeddings of a trained encoder onto their principal axes, so that the first 64,
// 128, 256, … dimensions of an embedding can be used alone (Matryoshka order), and mixes the
// dimensions between these steps, so that 8 bits per number suffice. All cosines stay. The matcher is turned with
// them.
func (t *Training) order(ctx context.Context, trained *Trained) error {
	encoder, ok := trained.Encoder.(rotator)
	n := t.Texts.Len()
	if !ok || n == 0 {
		return nil
	}
	t.Resources.Progress.Stage("order the dimensions", int64(min(n, axesSample)))
	step := (n + axesSample - 1) / axesSample
	dim := trained.Encoder.Dim()
	var sample []float32
	var texts []string
	for i := 0; i < n; i += step {
		text, err := t.Texts.Text(i)
		if err != nil {
			return err
		}
		if texts = append(texts, text); len(texts) < axesBlock && i+step < n {
			continue
		}
		at := len(sample)
		sample = append(sample, make([]float32, len(texts)*dim)...)
		if err := trained.Encoder.Encode(texts, sample[at:]); err != nil {
			return err
		}
		t.Resources.Progress.Add(int64(len(texts)))
		if err := ctx.Err(); err != nil {
			return err
		}
		texts = texts[:0]
	}
	axes, err := numeric.PrincipalAxes(sample, dim)
	if err != nil {
		return fmt.Errorf("order the dimensions of the %s: %w", trained.Encoder.Kind(), err)
	}
	numeric.MixGroups(axes, dim)
	encoder.Rotate(axes)
	trained.Matcher.Rotate(axes)
	return nil
}
