package refreshing

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/featurize/tfidf"
)

// TestMetricsOfTheVocabulary: from their quotient people see that a vocabulary ages.
func TestMetricsOfTheVocabulary(t *testing.T) {
	r := prometheus.NewRegistry()
	m := newMetrics(r)
	m.ngrams.Add(tfidf.NGrams{Total: 8, Unknown: 3})
	m.ngrams.Add(tfidf.NGrams{Total: 2})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
	}
	for name, want := range map[string]float64{"giantstream_ngrams_total": 10, "giantstream_ngrams_unknown_total": 3} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
