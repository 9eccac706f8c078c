package evaluate

import (
	"fmt"

	"giantstream/train/generation/fit"
)

// figure is a column of the tables of evaluations.
type figure struct {
	name  string
	value func(fit.Evaluation) (float64, bool)
}

// figures are the columns: links, and a class probe per rate.
func figures(rates []float64) []figure {
	link := func(get func(fit.Evaluation) float64) func(fit.Evaluation) (float64, bool) {
		return func(e fit.Evaluation) (float64, bool) {
			if e.Links == nil {
				return 0, false
			}
			return get(e), true
		}
	}
	out := []figure{
		{"link AUC", link(func(e fit.Evaluation) float64 { return e.Links.AUC })},
		{"MRR", link(func(e fit.Evaluation) float64 { return e.Links.MRR })},
		{"hits@10", link(func(e fit.Evaluation) float64 { return e.Links.Hits10 })},
	}
	for _, rate := range rates {
		name := fmt.Sprintf("class, %g %% labelled", 100*rate)
		out = append(out, figure{name, func(e fit.Evaluation) (float64, bool) {
			for _, p := range e.Probes {
				if p.Rate == rate {
					return p.Accuracy, true
				}
			}
			return 0, false
		}})
	}
	return out
}

// times says how many runs there were.
func times(n int) string {
	if n == 1 {
		return "one run"
	}
	return fmt.Sprintf("%d runs", n)
}
