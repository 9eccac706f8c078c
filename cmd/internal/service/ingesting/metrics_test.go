package ingesting

import (
	"maps"
	"testing"

	"giantstream/stream/commitlog"

	"github.com/prometheus/client_golang/prometheus"
)

// What a topic had deleted before it was copied is counted by one process, whatever its number of partitions.
func TestLossesOfSourcesAreCounted(t *testing.T) {
	lost := func() (all []commitlog.ShardLost) {
		for partition, offsets := range map[int]int64{1: 7, 3: 20, 2: 5} { // 2 is another process's
			for range 2 {
				all = append(all, commitlog.ShardLost{Shard: partition, Lost: commitlog.Lost{Topic: "n", Offsets: offsets}})
			}
		}
		return all
	}
	c := shardCollector{shards: 2, watches: &Watches{}, waits: func() string { return "" }, sourcesLost: lost}
	_, gone := c.watches.Open(1, &commitlog.Manifest{})
	defer gone()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "giantstream_lost_records" {
				got[m.Label[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if want := map[string]float64{"1": 14, "3": 40}; !maps.Equal(got, want) {
		t.Errorf("lost by partition: %v, want %v", got, want)
	}
}
