package fit

import (
	"reflect"
	"testing"

	"giantstream/train/generation/eval"
)

func TestShortfalls(t *testing.T) {
	of := func(kind string, auc, mrr, class float64) Evaluation {
		return Evaluation{Encoder: kind,
			Links: &eval.LinkMetrics{Edges: 100, AUC: auc, AUCStdErr: 0.003, MRR: mrr, MRRStdErr: 0.004},
			Probes: []ProbeResult{{Rate: 0.1, ProbeMetrics: eval.ProbeMetrics{Accuracy: class, StdDev: 0.5,
				StdErr: 0.005, Test: 100}}}}
	}
	text := of("lsa", 0.9, 0.4, 0.7)
	for _, c := range []struct {
		name    string
		encoder Evaluation
		want    []string
	}{
		{"ahead", of("bag", 0.95, 0.5, 0.8), nil},
		{"as good", of("bag", 0.9, 0.4, 0.7), nil},
		{"behind within two standard errors of the difference", of("bag", 0.892, 0.39, 0.687), nil},
		{"links", of("bag", 0.89, 0.38, 0.7), []string{"link AUC", "MRR"}},
		{"classes, although links are ahead", of("bag", 0.95, 0.5, 0.68), []string{"class, 10 % labelled"}},
		{"figures that only text has", Evaluation{Encoder: "bag"}, nil},
	} {
		var got []string
		for _, s := range Shortfalls([]Evaluation{text, c.encoder}) {
			got = append(got, s.Figure)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: behind in %q, want %q", c.name, got, c.want)
		}
	}
	var gains []string
	for _, s := range Gains([]Evaluation{text, of("bag", 0.95, 0.402, 0.68)}) {
		gains = append(gains, s.String())
	}
	if want := []string{"link AUC 0.950 (text alone 0.900)"}; !reflect.DeepEqual(gains, want) {
		t.Errorf("ahead in %q, want %q", gains, want)
	}
	if s := Shortfalls([]Evaluation{of("bag", 0, 0, 0)}); s != nil {
		t.Errorf("without text alone: %v", s)
	}
	few := of("bag", 0.5, 0.1, 0.1)
	few.Links.Edges, few.Probes[0].Test = eval.MinCases-1, eval.MinCases-1
	if s := Shortfalls([]Evaluation{text, few}); s != nil {
		t.Errorf("of too few cases: %v", s)
	}
	old := of("bag", 0.9, 0.4, 0.68)
	for _, e := range []*Evaluation{&text, &old} {
		e.Probes = []ProbeResult{{Rate: 0.1, ProbeMetrics: eval.ProbeMetrics{Accuracy: e.Probes[0].Accuracy, StdDev: 0.02,
			Test: 100}}}
	}
	if s := Shortfalls([]Evaluation{text, old}); s != nil {
		t.Errorf("with the deviation of an older build alone: %v", s)
	}
	if got, want := ListShortfalls([]Shortfall{{"MRR", 0.4, 0.3, 0.01}}), "MRR 0.300 (text alone 0.400)"; got != want {
		t.Errorf("listed as %q, want %q", got, want)
	}
}
