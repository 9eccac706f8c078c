package generation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/encoders"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/linear"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/generation/fit"
	"giantstream/train/objectives/trainer"
)

// EncoderName is the folder of the encoder's files below generations/<g>/.
const EncoderName = "encoder"

// curveName is a picture of the training of a transformer.
const curveName = "encoder/loss.svg"

// trainEncoder trains the encoder that the settings name, or loads it if it is trained already.
func (b *build) trainEncoder(ctx context.Context, in fit.Inputs) (train.Encoder, error) {
	prefix := b.key(EncoderName)
	journal := &Journal{Store: b.Store, Prefix: Prefix(b.doc.Generation), Every: b.CheckpointEvery, Now: b.Now,
		Log: b.resources.Log}
	encoder, config, err := encoders.Load(ctx, b.Store, prefix, in.Vectorizer, in.Projection, b.Device)
	if IsDamage(err) {
		if !errors.Is(err, sink.ErrNotFound) {
			b.resources.Log.Warn("the encoder that this build has stored is damaged; it is trained again", "error", err)
		}
		s := b.doc.Settings
		var space int64
		if b.doc.KeepSpaceOf != 0 {
			in.Before = func(ctx context.Context) (before train.Encoder, err error) {
				before, space, err = b.before(ctx)
				return before, err
			}
		}
		trained, err := b.train(ctx, in, journal)
		if err != nil {
			return nil, err
		}
		if trained.Curve != nil {
			if err := DrawCurve(ctx, b.Store, b.doc.Generation, *trained.Curve); err != nil {
				return nil, err
			}
		}
		encoder = trained.Encoder
		if !trained.Aligned {
			space = 0
		}
		config, err = encoders.Save(ctx, b.Store, prefix, encoder, encoders.Meta{Vectorizer: in.Vectorizer,
			Projection: in.Projection, Seed: s.Seed, Space: space, Metrics: trained.Metrics,
			Tensors: trained.Matcher.Tensors()})
		if err != nil {
			return nil, explainDiverged(err)
		}
	} else if err != nil {
		return nil, err
	}
	if config.Kind == linear.LSAKind && b.doc.TextOnly == "" {
		b.textOnly(fit.NothingToPredict) // what the run that trained it found
	}
	b.doc.Space = cmp.Or(config.Space, b.doc.Generation)
	b.doc.Encoder = EncoderStats{Kind: config.Kind, Dim: config.Dim, Bytes: config.Size(), Metrics: config.Metrics}
	return encoder, journal.Remove(ctx) // not before the encoder is there
}

// ExplainTraining adds to an error of a training what can be done about it.
func ExplainTraining(err error) error { return explainDevice(explainDiverged(err)) }

// explainDiverged adds to an error of a training that came to no numbers what can be done about it.
func explainDiverged(err error) error {
	if errors.Is(err, train.ErrDiverged) || errors.Is(err, safetensors.ErrNotFinite) {
		return fmt.Errorf("%w; the current generation stays: lower train.epochs, or choose another train.encoder, "+
			"such as linear", err)
	}
	return err
}

// explainDevice adds to an error of a device what can be done about it.
func explainDevice(err error) error {
	if errors.Is(err, compute.ErrFailed) {
		return fmt.Errorf("%w. What is done is kept, the newest checkpoint too, and the next start goes on from there."+
			" If the device's memory was full, lower train.bert.max_tokens or raise train.gpu_memory; "+
			"else look after the device, or set train.device: cpu", err)
	}
	return err
}

// train trains the encoder that the settings name. A graph that has nothing to learn from gets the
// encoder of the texts alone.
func (b *build) train(ctx context.Context, in fit.Inputs, j fit.Journal) (*fit.Trained, error) {
	trained, why, err := fit.TrainOrTextAlone(ctx, b.doc.Settings.Encoder, fit.Training{Inputs: in,
		Settings: b.doc.Settings, Resources: b.resources, Journal: j})
	if why != "" && b.doc.TextOnly == "" {
		b.textOnly(why)
	}
	return trained, explainDiverged(err)
}

// textOnly notes, and logs, that this generation knows the texts alone.
func (b *build) textOnly(why string) {
	b.doc.TextOnly = why
	b.resources.Log.Warn("this generation is made of the texts alone", "because", why,
		"instead_of", b.doc.Settings.Encoder)
}

// WhyTextOnly says why no node of a graph is an instance.
func WhyTextOnly(g GraphStats, s fit.Settings) string {
	switch {
	case g.Links == 0 && g.Dangling > 0:
		return "no node has a link to another; the other ends of all links are no nodes"
	case g.Links == 0:
		return "no node has a link"
	case g.Hubs > 0:
		return fmt.Sprintf("all linked nodes have more than featurize.max_degree %d neighbours", s.MaxDegree)
	}
	return fit.NothingToPredict
}

// DrawCurve stores a picture of the training of generation g's encoder.
func DrawCurve(ctx context.Context, store sink.Store, g int64, r trainer.Report) error {
	if len(r.Curve) == 0 {
		return nil
	}
	data := curveSVG(r)
	return store.Put(ctx, Prefix(g)+curveName, strings.NewReader(data), int64(len(data)))
}
