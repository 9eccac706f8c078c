package bag

import (
	"errors"
	"fmt"
	"testing"

	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

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
	r := numeric.NewRand(1)
	batch, instances, seeds := make([]string, texts), make([]int32, texts), make([]uint64, texts)
	for i := range batch {
		for range length {
			u := r.Float64()
			batch[i] += fmt.Sprintf("w%d ", int(u*u*u*rows))
		}
		instances[i], seeds[i] = int32(i), r.Uint64()
	}
	n, err := NewNetwork(graphtest.Words(rows).Matrix(batch...), m, NetworkOptions{})
	if err != nil {
		b.Fatal(err)
	}
	z := make([]float32, texts*dim)
	b.ReportAllocs()
	for b.Loop() {
		if err := errors.Join(n.Forward(instances, seeds, z), n.Backward(z)); err != nil {
			b.Fatal(err)
		}
		if _, err := n.Update(0.01); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(texts*float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}
