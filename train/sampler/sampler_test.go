package sampler_test

import (
	"math"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
	"giantstream/train/sampler"
)

// graph returns a random symmetric graph of n nodes, of which the first are hubs.
func graph(n int, seed uint64) *sparse.Matrix {
	sets := make([]map[int32]bool, n)
	for i := range sets {
		sets[i] = map[int32]bool{}
	}
	r := numeric.NewRand(seed)
	for i := 1; i < n; i++ {
		for range 3 {
			j := int(float64(i) * r.Float64() * r.Float64())
			sets[i][int32(j)], sets[j][int32(i)] = true, true
		}
	}
	m := &sparse.Matrix{Cols: n}
	for _, s := range sets {
		var row []int32
		for j := range s {
			row = append(row, j)
		}
		slices.Sort(row)
		m.Append(sparse.Vector{Index: row})
	}
	return m
}

func all(m *sparse.Matrix) []int32 {
	var out []int32
	for i := range m.Rows {
		if len(m.Row(i).Index) > 0 {
			out = append(out, int32(i))
		}
	}
	return out
}

// TestRankAgreesWithDenseAlgebra: the fixed point solved by a thousand steps of dense matrices.
func TestRankAgreesWithDenseAlgebra(t *testing.T) {
	m := graph(60, 3)
	instances := all(m)[5:] // five nodes are labels alone
	n := len(instances)
	s := make([][]float64, n) // Du^-1/2 W Dp^-1/2
	columns := make([]float64, m.Cols)
	for k, i := range instances {
		s[k] = make([]float64, m.Cols)
		for _, j := range m.Row(int(i)).Index {
			s[k][j] = 1
			columns[j]++
		}
	}
	linked := 0.0
	for _, c := range columns {
		if c > 0 {
			linked++
		}
	}
	for k, i := range instances {
		for j := range s[k] {
			if s[k][j] > 0 {
				s[k][j] /= math.Sqrt(float64(len(m.Row(int(i)).Index)) * columns[j])
			}
		}
	}
	u, p := make([]float64, n), make([]float64, m.Cols)
	for range 1000 {
		for j := range p {
			if columns[j] == 0 {
				continue
			}
			p[j] = 0.15 / linked
			for k := range u {
				p[j] += 0.85 * s[k][j] * u[k]
			}
		}
		for k := range u {
			u[k] = 0.15 / float64(n)
			for j := range p {
				u[k] += 0.85 * s[k][j] * p[j]
			}
		}
	}
	for k, got := range sampler.Rank(m, instances, 2) {
		if math.Abs(got-u[k]) > 1e-4*u[k] {
			t.Errorf("instance %d has the score %g, want %g", instances[k], got, u[k])
		}
	}
}

func TestSelect(t *testing.T) {
	m := graph(9000, 1)
	instances := all(m)
	n := len(instances) / 2
	mean := func(chosen []int32) float64 {
		sum := 0
		for _, i := range chosen {
			sum += len(m.Row(int(i)).Index)
		}
		return float64(sum) / float64(len(chosen))
	}
	degrees := map[sampler.Kind]float64{}
	for _, kind := range sampler.Kinds {
		chosen := sampler.Select(kind, m, graphtest.Keys(m.Rows), instances, n, 7, 1)
		if len(chosen) != n || !slices.IsSorted(chosen) || len(slices.Compact(slices.Clone(chosen))) != n {
			t.Errorf("%s: %d instances for %d, sorted %v", kind, len(chosen), n, slices.IsSorted(chosen))
		}
		for _, workers := range []int{2, 7} {
			if !slices.Equal(sampler.Select(kind, m, graphtest.Keys(m.Rows), instances, n, 7, workers), chosen) {
				t.Errorf("%s: %d workers choose others than one", kind, workers)
			}
		}
		other := sampler.Select(kind, m, graphtest.Keys(m.Rows), instances, n, 8, 2)
		if slices.Equal(other, chosen) != (kind == sampler.BiRank) {
			t.Errorf("%s: another seed changes the choice: %v", kind, !slices.Equal(other, chosen))
		}
		degrees[kind] = mean(chosen)
	}
	whole := mean(instances)
	if math.Abs(degrees[sampler.Uniform]-whole) > whole/10 || degrees[sampler.Degree] < 1.1*whole ||
		degrees[sampler.BiRank] < 1.1*whole {
		t.Errorf("mean degrees %v of samples, %g of all", degrees, whole)
	}
	got := sampler.Select(sampler.Degree, m, graphtest.Keys(m.Rows), instances, len(instances), 7, 1)
	if !slices.Equal(got, instances) {
		t.Error("where all fit, all are chosen")
	}
}

// TestDegreeDrawsInProportion: the first draw takes a node of degree d with probability d over the sum.
func TestDegreeDrawsInProportion(t *testing.T) {
	m := &sparse.Matrix{Cols: 4}
	for _, row := range [][]int32{{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}} {
		m.Append(sparse.Vector{Index: row})
	}
	const draws = 20000
	var count [4]float64
	for seed := range uint64(draws) {
		count[sampler.Select(sampler.Degree, m, graphtest.Keys(m.Rows), []int32{0, 1, 2, 3}, 1, seed, 1)[0]]++
	}
	for i, c := range count {
		want := float64(i+1) / 10
		if got := c / draws; math.Abs(got-want) > 0.02 {
			t.Errorf("node %d of degree %d was drawn in %.3f of cases, want %.1f", i, i+1, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, k := range sampler.Kinds {
		if got, err := sampler.Parse(string(k)); got != k || err != nil {
			t.Errorf("%s: %v, %v", k, got, err)
		}
	}
	if _, err := sampler.Parse("pagerank"); err == nil {
		t.Error("pagerank is accepted")
	}
}
