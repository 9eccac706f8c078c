package generation

import (
	"time"

	"giantstream/train/generation/fit"
)

// historyKept bounds the history of a document.
const historyKept = 200

// Summary is what is kept of a generation when it is gone.
type Summary struct {
	Generation int64     `json:"generation"`
	Finished   time.Time `json:"finished,omitzero"`
	Encoder    string    `json:"encoder"`
	Nodes      int       `json:"nodes"`
	Links      int       `json:"links"`
	// UnknownShare is VectorizerStats.UnknownShare.
	UnknownShare float64 `json:"unknown_share"`
	// NeighboursKept is OverlapStats.Kept, nil without a generation before.
	NeighboursKept *float64 `json:"neighbours_kept,omitempty"`
	// Figures are measured on held-out data, text alone first.
	Figures []Figures `json:"figures,omitempty"`
}

// Figures are the main figures of one encoder; nil for what could not be measured. Those of older builds have no
// standard errors.
type Figures struct {
	Encoder       string   `json:"encoder"`
	LinkAUC       *float64 `json:"link_auc,omitempty"`
	LinkAUCStdErr float64  `json:"link_auc_stderr,omitempty"`
	MRR           *float64 `json:"mrr,omitempty"`
	MRRStdErr     float64  `json:"mrr_stderr,omitempty"`
	// Class is the accuracy of the probe with the most labels.
	Class       *float64 `json:"class,omitempty"`
	ClassStdErr float64  `json:"class_stderr,omitempty"`
}

// FiguresOf returns the main figures of evaluations, in their order.
func FiguresOf(evaluations []fit.Evaluation) (out []Figures) {
	for _, e := range evaluations {
		f := Figures{Encoder: e.Encoder}
		if l := e.Links; l != nil {
			f.LinkAUC, f.LinkAUCStdErr, f.MRR, f.MRRStdErr = &l.AUC, l.AUCStdErr, &l.MRR, l.MRRStdErr
		}
		if len(e.Probes) > 0 {
			last := &e.Probes[len(e.Probes)-1]
			f.Class, f.ClassStdErr = &last.Accuracy, last.StdErr
		}
		out = append(out, f)
	}
	return out
}

// Summary returns what is kept of the generation when it is gone.
func (d *Doc) Summary() Summary {
	s := Summary{Generation: d.Generation, Finished: d.Finished, Encoder: d.Encoder.Kind, Nodes: d.Graph.Nodes,
		Links: d.Graph.Links, UnknownShare: d.Vectorizer.UnknownShare, Figures: FiguresOf(d.Evaluation)}
	if d.Overlap != nil {
		s.NeighboursKept = &d.Overlap.Kept
	}
	return s
}

// Inherit notes the ready generation before, and what it knows of those before it.
func (d *Doc) Inherit(parent *Doc) {
	d.Parent = parent.Generation
	d.History = append(d.History, parent.History...)
	d.History = append(d.History, parent.Summary())
	d.History = d.History[max(0, len(d.History)-historyKept):]
}
