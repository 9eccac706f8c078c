package generation

import (
	"log/slog"

	"giantstream/train/generation/eval"
)

// WarmStats says what a warm start has found changed, and made anew.
type WarmStats struct {
	// Changed nodes have rows since the parent's cut, New are nodes that the parent did not have.
	Changed int `json:"changed"`
	New     int `json:"new"`
	// UnknownShare of the n-grams of the changed nodes' texts are not in the vocabulary.
	UnknownShare float64 `json:"unknown_share"`
	// Subtrees of level Level of the label tree were divided anew.
	Level    int `json:"level"`
	Subtrees int `json:"subtrees"`
}

// Scratch is the generation that warm starts go back to, and its figures; AUC is 0 where it was not measured.
type Scratch struct {
	Generation int64   `json:"generation"`
	AUC        float64 `json:"link_auc,omitempty"`
	StdErr     float64 `json:"link_auc_stderr,omitempty"`
}

// LastScratch returns what the warm starts after a generation go back to.
func (d *Doc) LastScratch() Scratch {
	if d.Scratch != nil {
		return *d.Scratch
	}
	s := Scratch{Generation: d.Generation}
	if m := d.LinkMetrics(); m != nil {
		s.AUC, s.StdErr = m.AUC, m.AUCStdErr
	}
	return s
}

// LinkMetrics returns how well the encoder tells held-out links, nil where it was not measured.
func (d *Doc) LinkMetrics() *eval.LinkMetrics {
	for _, e := range d.Evaluation {
		if e.Encoder == d.Encoder.Kind {
			return e.Links
		}
	}
	return nil
}

// LogCold says why a generation does not start from its parent.
func LogCold(log *slog.Logger, parent int64, why string) {
	log.Info("the generation is built from scratch and does not start warm", "parent", parent, "because", why)
}

// Forget makes a document that of a build from scratch.
func (d *Doc) Forget() {
	d.WarmOf, d.WarmSteps, d.Warm, d.Scratch = 0, 0, nil, nil
}
