package drift

import (
	"fmt"
	"iter"
	"math"
)

// MinCases is how many cases a measure needs to be known.
const MinCases = 200

// Measure is one way in which a stream drifts.
type Measure struct {
	// Cases were measured since the cut: texts, labels, or edges.
	Cases int `json:"cases"`
	// Now is the figure since the cut, nil as long as there are fewer than MinCases.
	Now *float64 `json:"now,omitempty"`
	// AtCut is the figure at the cut, nil if the generation does not have it.
	AtCut *float64 `json:"at_cut,omitempty"`
}

// change returns how much the figure is worse than at the cut, and false if that is not known.
func (m Measure) change(worse float64) (float64, bool) {
	if m.Now == nil || m.AtCut == nil {
		return 0, false
	}
	return worse * (*m.Now - *m.AtCut), true
}

// Evidence is what has drifted since the cut of a generation.
type Evidence struct {
	Generation int64 `json:"generation"`
	// Upto is, per shard, the newest manifest whose rows are in.
	Upto          map[int]int64 `json:"upto"`
	UnknownNGrams Measure       `json:"unknown_ngrams"`
	LabelFit      Measure       `json:"label_fit"`
	LinkAUC       Measure       `json:"link_auc"`
	Cosine        Measure       `json:"cosine"`
}

// Thresholds say by how much a measure must be worse than at the cut for a new generation; 0 is never.
type Thresholds struct {
	UnknownNGrams float64 `json:"unknown_ngrams"`
	LabelFit      float64 `json:"label_fit"`
	LinkAUC       float64 `json:"link_auc"`
	Cosine        float64 `json:"cosine"`
}

// AreOff says that no measure can ask for a generation.
func (t Thresholds) AreOff() bool { return t == Thresholds{} }

// Finding is a measure beside its threshold.
type Finding struct {
	// Name is that of the field in the configuration, Title that for people.
	Name  string `json:"name"`
	Title string `json:"title"`
	Measure
	// Limit is the figure beyond which a new generation is due, nil if there is none or it is not known.
	Limit *float64 `json:"limit,omitempty"`
	// Exceeded: a new generation is due.
	Exceeded bool `json:"exceeded,omitempty"`
	percent  bool
}

// Findings yields the measures in the order of the documentation.
func (e *Evidence) Findings(t Thresholds) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		_ = yield(finding("unknown_ngrams", "unknown n-grams", e.UnknownNGrams, t.UnknownNGrams, 1)) &&
			yield(finding("label_fit", "fit of new labels to their clusters", e.LabelFit, t.LabelFit, -1)) &&
			yield(finding("link_auc", "AUC of fresh edges", e.LinkAUC, t.LinkAUC, -1)) &&
			yield(finding("cosine", "cosine of changed texts to what was published", e.Cosine, t.Cosine, -1))
	}
}

// finding makes one. The measure gets worse in the direction of worse, 1 or -1.
func finding(name, title string, m Measure, threshold, worse float64) Finding {
	f := Finding{Name: name, Title: title, Measure: m, percent: name == "unknown_ngrams"}
	if threshold <= 0 || m.AtCut == nil {
		return f
	}
	f.Limit = new(*m.AtCut + worse*threshold)
	change, known := m.change(worse)
	f.Exceeded = known && change > threshold
	return f
}

// Figure writes a figure of the measure for people.
func (f Finding) Figure(v float64) string {
	if f.percent {
		return fmt.Sprintf("%.1f %%", 100*v)
	}
	return fmt.Sprintf("%.3f", v)
}

// String says what the measure is and how it stands to its threshold, as in "unknown n-grams 12.0 % > 8.0 % (3.0 %
// at the cut)".
func (f Finding) String() string {
	switch {
	case f.Now == nil:
		return fmt.Sprintf("%s not known yet (%d of %d cases)", f.Title, f.Cases, MinCases)
	case f.AtCut == nil:
		return fmt.Sprintf("%s %s (not known at the cut)", f.Title, f.Figure(*f.Now))
	case f.Limit == nil:
		return fmt.Sprintf("%s %s (%s at the cut)", f.Title, f.Figure(*f.Now), f.Figure(*f.AtCut))
	}
	sign := "≤"
	switch higher := *f.Limit > *f.AtCut; {
	case higher && f.Exceeded:
		sign = ">"
	case !higher && f.Exceeded:
		sign = "<"
	case !higher:
		sign = "≥"
	}
	return fmt.Sprintf("%s %s %s %s (%s at the cut)", f.Title, f.Figure(*f.Now), sign, f.Figure(*f.Limit),
		f.Figure(*f.AtCut))
}

// Due returns the first measure that asks for a new generation, "" for none.
func (e *Evidence) Due(t Thresholds) string {
	for f := range e.Findings(t) {
		if f.Exceeded {
			return f.String()
		}
	}
	return ""
}

// mean makes a measure of a sum over cases.
func mean(sum float64, cases int) Measure {
	m := Measure{Cases: cases}
	if cases >= MinCases {
		m.Now = finite(sum / float64(cases))
	}
	return m
}

// finite returns a pointer to v, nil for what is no number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
