package build

import (
	"errors"
	"fmt"

	"giantstream/train"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/generation/fit"
)

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

// whyTextOnly says why no node of a graph is an instance.
func whyTextOnly(g linkStats, s fit.Settings) string {
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
