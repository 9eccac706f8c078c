package compute

import (
	"math"
	"testing"
)

func TestApplyDropsWhatKeepsSays(t *testing.T) {
	x := make([]float32, 50)
	for i := range x {
		x[i] = float32(i + 1)
	}
	for _, rate := range []float64{0, 0.1, 0.5, 0.99} {
		d := Dropout{Rate: rate, Site: 3}.DroppedFor(11)
		for first := range 9 {
			got := make([]float32, len(x))
			d.Apply(got, x, first)
			for i, v := range got {
				var want float64
				if d.Keeps(first + i) {
					want = float64(x[i]) / (1 - rate)
				}
				if math.Abs(float64(v)-want) > 2e-3*want {
					t.Fatalf("rate %v: number %d is %v, want %v", rate, first+i, v, want)
				}
			}
		}
	}
}

func TestSeedsAndSitesDropOtherNumbers(t *testing.T) {
	const n, rate = 100_000, 0.1
	draws := map[string]Dropped{
		"": Dropout{rate, 1}.DroppedFor(1), "other site": Dropout{rate, 2}.DroppedFor(1), "other seed": Dropout{rate,
			1}.DroppedFor(2),
	}
	for name, d := range draws {
		alone, both := 0, 0
		for i := range n {
			if !d.Keeps(i) {
				alone++
				if !draws[""].Keeps(i) {
					both++
				}
			}
		}
		if math.Abs(float64(alone)-n*rate) > 500 {
			t.Errorf("%s: %d of %d numbers are dropped, want about %v", name, alone, n, n*rate)
		}
		if name != "" && math.Abs(float64(both)-n*rate*rate) > 200 {
			t.Errorf("%s: %d of %d numbers are dropped with both, want about %v", name, both, n, n*rate*rate)
		}
	}
}
