package stages

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A PIFA task reads many projected texts, so there are as many as the memory asks for, and enough for several machines.
func TestRangesFollowTheMemory(t *testing.T) {
	for _, c := range []struct {
		rows   int64
		memory int64
		at     int // a time
		want   int
	}{
		{1000, 0, 0, 1},
		{1 << 20, 2 << 30, 1, 8},
		{111e6, 2 << 30, 1, 256},
		{111e6, 16 << 30, 0, 16},
		{111e6, 16 << 30, 4, 64},
		{111e6, 16 << 30, 8, 256},
		{111e6, 64 << 30, 1, 8},
		{111e6, 64 << 30, 9, 32},
	} {
		p, err := NewPlan(1, 1, Size{Rows: c.rows, Dim: 256, Memory: c.memory, AtATime: c.at}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Ranges != c.want || p.Ranges > p.Partitions {
			t.Errorf("%d rows, %d MiB for %d tasks: %d ranges of %d partitions, want %d", c.rows, c.memory>>20, c.at,
				p.Ranges, p.Partitions, c.want)
		}
	}
}

// Reached is what random nodes reach, and spread is chosen where there are many ranges for the links of a node.
func TestWhenTextsAreSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	for range 20 {
		n, nodes := 1+r.IntN(200), r.IntN(60)
		const trials = 2000
		sum := 0
		for range trials {
			seen := map[int]bool{}
			for range nodes {
				seen[r.IntN(n)] = true
			}
			sum += len(seen)
		}
		if got, mean := Reached(n, float64(nodes)), float64(sum)/trials; math.Abs(got-mean) > 0.05*mean+0.01 {
			t.Errorf("%d of %d parts: %g, drawn %g", nodes, n, got, mean)
		}
	}
	for _, c := range []struct {
		degree int64
		ranges int
		want   bool
	}{{20, 1, false}, {20, 8, false}, {20, 32, false}, {20, 64, true}, {29, 128, true}, {29, 64, true}, {29, 32, false},
		{40, 64, false}, {2, 8, true},
		{500, 128, false}, {0, 128, false}} {
		s := Size{Nodes: 1e6, Links: 1e6 * c.degree, Dim: 256}
		if s.spreads(c.ranges) != c.want {
			t.Errorf("%d ranges, %d links a node: spread %t", c.ranges, c.degree, !c.want)
		}
	}
}
