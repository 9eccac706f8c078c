package nearest

import (
	"math/rand/v2"
	"testing"
)

func BenchmarkSearch(b *testing.B) {
	const n, dim = 100_000, 256
	rng := rand.New(rand.NewPCG(1, 1))
	vectors := clustered(rng, n, dim, 1000, 0.5)
	x := trained(b, n, dim, names(n), vectors)
	q := 0
	for b.Loop() {
		q = (q + 7919) % n
		if got := x.Search(vectors[q*dim:(q+1)*dim], 10, nil, nil); len(got) != 10 {
			b.Fatal(got)
		}
	}
}

// Of a twentieth of the vectors, drawn at random, each query finds the nearest.
func BenchmarkSearchAmongSome(b *testing.B) {
	const n, dim = 100_000, 256
	rng := rand.New(rand.NewPCG(1, 1))
	vectors := clustered(rng, n, dim, 1000, 0.5)
	x := trained(b, n, dim, names(n), vectors)
	in := some(n, func(int) bool { return rng.IntN(20) == 0 })
	q := 0
	for b.Loop() {
		q = (q + 7919) % n
		if got := x.Search(vectors[q*dim:(q+1)*dim], 10, in, nil); len(got) != 10 {
			b.Fatal(got)
		}
	}
}

// A query that lacks numbers that vectors have is compared with all of them.
func BenchmarkSearchWithLengths(b *testing.B) {
	const n, dim = 100_000, 256
	rng := rand.New(rand.NewPCG(1, 1))
	vectors := clustered(rng, n, dim, 1000, 0.5)
	x := trained(b, n, dim, names(n), vectors)
	q := 0
	for b.Loop() {
		q = (q + 7919) % n
		got := x.Search(vectors[q*dim:(q+1)*dim], 10, nil, func(h int32) float32 { return 1 + float32(h%2) })
		if len(got) != 10 {
			b.Fatal(got)
		}
	}
}
