package service

import (
	"slices"
	"testing"

	"giantstream/sink/memstore"
)

// TestMetricsOfCommitsAndTopics: where the time of a window goes, and what the brokers say of the topics.
func TestMetricsOfCommitsAndTopics(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{})
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{nodeID(0): map[string]any{"id": nodeID(0), "text": "a text"}})
	value := func(name string) (all []float64) {
		families, err := s.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name {
					all = append(all, m.GetGauge().GetValue()+float64(m.GetHistogram().GetSampleCount()))
				}
			}
		}
		return all
	}
	eventually(t, "a commit is measured", func() bool {
		commits, manifests := value("giantstream_commit_seconds"), value("giantstream_manifest_seconds")
		return commits[0] >= 1 && manifests[0] >= 1
	})
	if got := value("giantstream_input_partitions"); !slices.Equal(got, []float64{2, 2, 2}) {
		t.Errorf("partitions %v, want two of each of three topics", got)
	}
	if got := value("giantstream_held_records"); len(got) != 6 || slices.Max(got) != 0 {
		t.Errorf("held records %v, want none for three topics of two shards", got)
	}
}
