package nearest

import (
	"math/rand/v2"
	"testing"
)

func BenchmarkSearch(b *testing.B) {
	const n, dim = 100_000, 256
	rng := rand.New(rand.NewPCG(1, 1))
	vectors := clustered(rng, n, dim, 1000, 0.5)
	size := Sample(n)
	var sample []float32
	for i := range size {
		at := i * n / size
		sample = append(sample, vectors[at*dim:(at+1)*dim]...)
	}
	x := New(dim)
	x.Train(n, sample)
	fill(b, x, names(n), vectors)
	x.Calibrate()
	all, probed := x.Cells()
	b.Logf("%d of %d cells", probed, all)
	q := 0
	for b.Loop() {
		q = (q + 7919) % n
		if got := x.Search(vectors[q*dim:(q+1)*dim], 10, ""); len(got) != 10 {
			b.Fatal(got)
		}
	}
}
