package bag

import (
	"testing"

	"giantstream/train/internal/graphtest"
)

// BenchmarkTrain measures whole epochs, evaluation on held-out instances
// included.
func BenchmarkTrain(b *testing.B) {
	d := data(b, graphtest.Topics(4000, 8, 10, 1))
	b.ReportAllocs()
	instances := 0
	for b.Loop() {
		r := fit(b, d, Options{Epochs: 2}, Checkpoints{})
		instances += r.Report.Instances * len(r.Report.Epochs)
	}
	b.ReportMetric(float64(instances)/b.Elapsed().Seconds(), "instances/s")
}
