package generation

import (
	"fmt"
	"math"
	"strings"
)

const (
	// declineGenerations is how many generations back a figure is compared: a fall that is too small to be seen from
	// one to the next is seen as their sum.
	declineGenerations = 10
	// declineErrors is how many standard errors a sum must be.
	declineErrors = 2
)

// Decline is a figure in which the encoder is less ahead of text alone than that of an earlier generation was. Text
// alone is fitted to each generation's own texts, so that a harder graph is harder for both.
type Decline struct {
	// Figure is "link AUC", "MRR" or "class".
	Figure string `json:"figure"`
	// Since is the generation that was ahead the most, by Before. Now is by how much this one is.
	Since  int64   `json:"since"`
	Before float64 `json:"before"`
	Now    float64 `json:"now"`
	// StdErr is that of the difference, from the errors of all four figures as if they were independent.
	StdErr float64 `json:"stderr"`
}

// lead is by how much an encoder is ahead of text alone in one figure.
type lead struct{ by, variance float64 }

// leadsOf returns the leads of a generation by figure, without those that were not measured.
func leadsOf(s Summary) map[string]lead {
	if len(s.Figures) != 2 { // text alone and the encoder
		return nil
	}
	out := map[string]lead{}
	text, encoder := s.Figures[0], s.Figures[1]
	add := func(figure string, a, b *float64, errA, errB float64) {
		if a != nil && b != nil && errA > 0 && errB > 0 {
			out[figure] = lead{*b - *a, errA*errA + errB*errB}
		}
	}
	add("link AUC", text.LinkAUC, encoder.LinkAUC, text.LinkAUCStdErr, encoder.LinkAUCStdErr)
	add("MRR", text.MRR, encoder.MRR, text.MRRStdErr, encoder.MRRStdErr)
	add("class", text.Class, encoder.Class, text.ClassStdErr, encoder.ClassStdErr)
	return out
}

// DeclinesOf compares a generation with the last of those before it that had the same kind of encoder.
func DeclinesOf(now Summary, history []Summary) (out []Decline) {
	leads := leadsOf(now)
	for _, figure := range []string{"link AUC", "MRR", "class"} {
		at, measured := leads[figure]
		if !measured {
			continue
		}
		worst := Decline{}
		for _, before := range history[max(0, len(history)-declineGenerations):] {
			was, measured := leadsOf(before)[figure]
			if !measured || before.Encoder != now.Encoder || was.by-at.by <= worst.Before-worst.Now {
				continue
			}
			worst = Decline{figure, before.Generation, was.by, at.by, math.Sqrt(was.variance + at.variance)}
		}
		if worst.Before-worst.Now > declineErrors*worst.StdErr {
			out = append(out, worst)
		}
	}
	return out
}

// listDeclines lists declines for people, "" for none.
func listDeclines(all []Decline) string {
	words := make([]string, len(all))
	for k, d := range all {
		words[k] = fmt.Sprintf("%s (%+.3f over text alone, %+.3f in generation %d)", d.Figure, d.Now, d.Before, d.Since)
	}
	return strings.Join(words, ", ")
}
