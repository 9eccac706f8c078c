package bag

import (
	"errors"
	"fmt"
	"testing"

	"giantstream/train/internal/graphtest"
	"giantstream/train/internal/rng"
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

// BenchmarkNetwork measures a step on 256 texts of 60 words each, of which most are rare.
func BenchmarkNetwork(b *testing.B) {
	const rows, dim, texts, length = 1 << 16, 256, 256, 60
	features := make([]int32, rows)
	for k := range features {
		features[k] = int32(k)
	}
	m, err := NewModel(features, make([]float32, rows*dim), rows, dim)
	if err != nil {
		b.Fatal(err)
	}
	n, err := NewNetwork(graphtest.Words(rows), m, NetworkOptions{})
	if err != nil {
		b.Fatal(err)
	}
	r := rng.New(1)
	batch, seeds := make([]string, texts), make([]uint64, texts)
	for i := range batch {
		for range length {
			u := r.Float64()
			batch[i] += fmt.Sprintf("w%d ", int(u*u*u*rows))
		}
		seeds[i] = r.Uint64()
	}
	z := make([]float32, texts*dim)
	b.ReportAllocs()
	for b.Loop() {
		if err := errors.Join(n.Forward(batch, seeds, z), n.Backward(z)); err != nil {
			b.Fatal(err)
		}
		if _, err := n.Update(0.01); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(texts*float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}
