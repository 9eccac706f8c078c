package generation

import (
	"slices"
	"testing"

	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

func TestNewest(t *testing.T) {
	for _, c := range []struct {
		name             string
		statuses         []Status
		current, refused int64
	}{
		{"refused after ready", []Status{Ready, Refused}, 1, 2},
		{"the newest of two refused", []Status{Ready, Refused, Refused, Building}, 1, 3},
		{"ready after refused", []Status{Ready, Refused, Ready}, 3, 0},
	} {
		latest, err := Newest(t.Context(), with(t, c.statuses...))
		current, refused := latest.Current, latest.Refused
		if err != nil || current.Generation != c.current {
			t.Errorf("%s: current %v (%v), want %d", c.name, current, err, c.current)
		}
		if number := numberOf(refused); number != c.refused {
			t.Errorf("%s: refused %d, want %d", c.name, number, c.refused)
		}
	}
}

func numberOf(d *Doc) int64 {
	if d == nil {
		return 0
	}
	return d.Generation
}

func TestPruneKeepsOneRefusedGenerationAtMost(t *testing.T) {
	for _, c := range []struct {
		statuses []Status
		left     []int64
	}{
		{[]Status{Ready, Refused, Refused}, []int64{1, 3}},
		{[]Status{Ready, Refused, Ready}, []int64{1, 3}},
		{[]Status{Ready, Ready, Ready, Refused, Building}, []int64{2, 3, 4, 5}},
	} {
		store := with(t, c.statuses...)
		if _, err := Prune(t.Context(), store, 2); err != nil {
			t.Fatal(err)
		}
		if left, err := Numbers(t.Context(), store); err != nil || !slices.Equal(left, c.left) {
			t.Errorf("%v: left %v (%v), want %v", c.statuses, left, err, c.left)
		}
	}
}

// The warning of a generation that is behind the text in a class says what its encoder is better in, and why.
func TestWarningNamesBothSides(t *testing.T) {
	of := func(kind string, auc, class float64) fit.Evaluation {
		return fit.Evaluation{Encoder: kind, Links: &eval.LinkMetrics{Edges: 100, AUC: auc, AUCStdErr: 0.003},
			Probes: []fit.ProbeResult{{Rate: 0.1,
				ProbeMetrics: eval.ProbeMetrics{Accuracy: class, StdErr: 0.005, Test: 100}}}}
	}
	warningOf := func(all ...fit.Evaluation) string {
		d := Doc{Evaluation: all, Shortfalls: fit.Shortfalls(all), QualityGate: GateWarn}
		d.Encoder.Kind = "hybrid"
		return d.Warning()
	}
	const behind = "the encoder hybrid is worse than text alone in class, 10 % labelled 0.680 (text alone 0.800)"
	for want, encoder := range map[string]fit.Evaluation{
		behind + ", and better in link AUC 0.950 (text alone 0.900): a class whose words stand in the texts is told " +
			"best by the texts": of("hybrid", 0.95, 0.68),
		behind: of("hybrid", 0.9, 0.68),
		"the encoder hybrid is worse than text alone in link AUC 0.800 (text alone 0.900), and better in class, 10 % " +
			"labelled 0.900 (text alone 0.800)": of("hybrid", 0.8, 0.9),
		"": of("hybrid", 0.95, 0.9),
	} {
		if got := warningOf(of("lsa", 0.9, 0.8), encoder); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}
