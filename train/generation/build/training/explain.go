package training

import (
	"errors"
	"fmt"

	"giantstream/train"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/fit"
)

// explain adds to an error of a training what can be done about it, if it came to no numbers or to no model.
func explain(err error) error {
	if errors.Is(err, fit.ErrModel) {
		return fmt.Errorf("%w; the generation was begun with it: put it there again, or drop the generation for one "+
			"with the configuration's model ('giantstream rebuild')", err)
	}
	if errors.Is(err, train.ErrDiverged) || errors.Is(err, safetensors.ErrNotFinite) {
		return fmt.Errorf("%w; the current generation stays: lower train.epochs, or choose another train.encoder, "+
			"such as linear", err)
	}
	return err
}

// whyTextOnly says why no node of a graph is an instance.
func whyTextOnly(g graph.LinkStats, s fit.Settings) string {
	switch {
	case g.Links == 0 && g.Dangling > 0:
		return "no node has a link to another; the other ends of all links are no nodes"
	case g.Links == 0:
		if g.Weightless > 0 {
			return "no link weighs anything; is the weight the right field?"
		}
		return "no node has a link"
	case g.Hubs > 0:
		return fmt.Sprintf("all linked nodes have more than featurize.max_degree %d neighbours", s.MaxDegree)
	}
	return fit.NothingToPredict
}
