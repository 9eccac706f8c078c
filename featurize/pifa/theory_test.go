package pifa_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"giantstream/featurize/pifa"
	"giantstream/featurize/sparse"
)

// effectSize returns how far the class means of the rows (two classes, first
// and second half) lie apart, in units of the spread along the line between
// them: ‖μ₁−μ₀‖ / √(mean variance in that direction).
func effectSize(rows []float32, dim int) float64 {
	n := len(rows) / dim
	mean := [2][]float64{make([]float64, dim), make([]float64, dim)}
	class := func(i int) int { return 2 * i / n }
	for i := range n {
		for k := range dim {
			mean[class(i)][k] += float64(rows[i*dim+k]) / float64(n/2)
		}
	}
	var distance float64
	for k := range dim {
		d := mean[1][k] - mean[0][k]
		distance += d * d
	}
	distance = math.Sqrt(distance)
	var variance float64
	for i := range n {
		var along float64
		for k := range dim {
			along += (float64(rows[i*dim+k]) - mean[class(i)][k]) * (mean[1][k] - mean[0][k]) / distance
		}
		variance += along * along / float64(n)
	}
	return distance / math.Sqrt(variance)
}

// TestPIFASeparatesClassesBetterOnLargerGraphs tests GIANT's theoretical analysis on
// a contextual stochastic block model: node features are Gaussians (σ in every
// direction) around two means r apart, edges have probability p within a class and q
// across. The raw features' effect size stays r/σ whatever n is; that of PIFA
// grows, like √n at constant p and q, and does so on heterophilous graphs too.
func TestPIFASeparatesClassesBetterOnLargerGraphs(t *testing.T) {
	const dim, distance, sigma = 8, 0.5, 1.0
	for _, tc := range []struct {
		name string
		p, q float64
	}{{"homophilous", 0.10, 0.02}, {"heterophilous", 0.02, 0.10}} {
		t.Run(tc.name, func(t *testing.T) {
			var last float64
			for _, n := range []int{400, 1600, 6400} {
				features, adjacency := blockModel(n, dim, distance, sigma, tc.p, tc.q)
				sketch, err := pifa.FromGraph(features, dim, adjacency, pifa.Sum, 0)
				if err != nil {
					t.Fatal(err)
				}
				means := make([]float32, n*dim)
				for l := range n {
					for k, v := range sketch.Sum(l) {
						means[l*dim+k] = v / float32(max(1, sketch.Instances(l)))
					}
				}
				raw, aggregated := effectSize(features, dim), effectSize(means, dim)
				t.Logf("n = %d: raw %.2f, PIFA %.2f", n, raw, aggregated)
				if math.Abs(raw-distance/sigma) > 0.3 {
					t.Errorf("n = %d: raw effect size %.2f, want about %.2f", n, raw, distance/sigma)
				}
				if aggregated < 1.5*last || aggregated < 2*raw && n > 400 {
					t.Errorf("n = %d: PIFA effect size %.2f after %.2f; it must grow", n, aggregated, last)
				}
				last = aggregated
			}
		})
	}
}

func blockModel(n, dim int, distance, sigma, p, q float64) ([]float32, *sparse.Matrix) {
	r := rand.New(rand.NewPCG(uint64(n), uint64(1000*p)))
	features := make([]float32, n*dim)
	for i := range n {
		for k := range dim {
			features[i*dim+k] = float32(sigma * r.NormFloat64())
		}
		if i >= n/2 {
			features[i*dim] += float32(distance)
		}
	}
	neighbours := make([][]int32, n)
	for i := range n {
		for j := range i {
			prob := q
			if 2*i/n == 2*j/n {
				prob = p
			}
			if r.Float64() < prob {
				neighbours[i] = append(neighbours[i], int32(j))
				neighbours[j] = append(neighbours[j], int32(i))
			}
		}
	}
	m := &sparse.Matrix{Cols: n}
	for _, list := range neighbours { // ascending: j < i first, then j > i in order
		m.Append(sparse.Vector{Index: list})
	}
	return features, m
}
