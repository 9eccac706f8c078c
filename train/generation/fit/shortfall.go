package fit

import (
	"fmt"
	"math"
	"strings"

	"giantstream/train/encoders/linear"
	"giantstream/train/generation/eval"
)

// Shortfall is a figure in which an encoder is worse than text alone.
type Shortfall struct {
	// Figure is its name: "link AUC", "MRR" or "class, 10 % labelled".
	Figure  string  `json:"figure"`
	Text    float64 `json:"text"`
	Encoder float64 `json:"encoder"`
	// StdErr is the standard error of the difference, from both figures' own as if they were
	// independent. Both are measured on the same cases, so it is rather too large.
	StdErr float64 `json:"stderr"`
}

// shortfallErrors is by how many standard errors of the difference an encoder must be behind for a
// shortfall. An encoder as good as the text is behind so far in one figure of forty.
const shortfallErrors = 2

// Shortfalls compares an encoder with text alone on the same held-out data. It returns the figures,
// among link AUC, MRR and class accuracy at every rate, in which the encoder is behind by more than
// two standard errors of the difference: none for an encoder that is not worse than the text.
// Evaluations are those of one split; figures that only one of the two has, or of fewer
// than eval.MinCases cases, are not compared.
func Shortfalls(evaluations []Evaluation) []Shortfall {
	return compared(evaluations, func(s Shortfall) bool { return s.Text-s.Encoder > shortfallErrors*s.StdErr })
}

// Gains are the figures in which an encoder is ahead of text alone by as much, in the same words.
func Gains(evaluations []Evaluation) []Shortfall {
	return compared(evaluations, func(s Shortfall) bool { return s.Encoder-s.Text > shortfallErrors*s.StdErr })
}

// OfClasses reports whether the figure is of classes, and not of links.
func (s Shortfall) OfClasses() bool { return strings.HasPrefix(s.Figure, ofClasses) }

const ofClasses = "class, "

// compared returns the figures that the text and an encoder both have of enough cases, as far as they are wanted.
func compared(evaluations []Evaluation, wanted func(Shortfall) bool) []Shortfall {
	var text *Evaluation
	for k := range evaluations {
		if evaluations[k].Encoder == linear.LSAKind {
			text = &evaluations[k]
		}
	}
	if text == nil {
		return nil
	}
	var out []Shortfall
	compare := func(figure string, a, b, errA, errB float64) {
		if s := (Shortfall{Figure: figure, Text: a, Encoder: b, StdErr: math.Hypot(errA, errB)}); wanted(s) {
			out = append(out, s)
		}
	}
	for k := range evaluations {
		e := &evaluations[k]
		if e == text {
			continue
		}
		if a, b := text.Links, e.Links; a != nil && b != nil && min(a.Edges, b.Edges) >= eval.MinCases {
			compare("link AUC", a.AUC, b.AUC, a.AUCStdErr, b.AUCStdErr)
			compare("MRR", a.MRR, b.MRR, a.MRRStdErr, b.MRRStdErr)
		}
		for _, a := range text.Probes {
			for _, b := range e.Probes {
				if a.Rate == b.Rate && min(a.Test, b.Test) >= eval.MinCases {
					name := fmt.Sprintf(ofClasses+"%g %% labelled", 100*a.Rate)
					compare(name, a.Accuracy, b.Accuracy, a.StandardError(), b.StandardError())
				}
			}
		}
	}
	return out
}

// StandardError is that of the accuracy; figures of older builds have the deviation alone.
func (p ProbeResult) StandardError() float64 {
	if p.StdErr > 0 {
		return p.StdErr
	}
	return p.StdDev
}

// String gives "link AUC .870 (text alone .890)".
func (s Shortfall) String() string {
	return fmt.Sprintf("%s %.3f (text alone %.3f)", s.Figure, s.Encoder, s.Text)
}

// ListShortfalls lists shortfalls for people, "" for none.
func ListShortfalls(all []Shortfall) string {
	words := make([]string, len(all))
	for k, s := range all {
		words[k] = s.String()
	}
	return strings.Join(words, ", ")
}
