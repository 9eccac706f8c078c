package pifa

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"giantstream/featurize/sparse"
)

// rows returns a matrix from dense rows; a nil-valued one if adjacency.
func rows(adjacency bool, dense ...[]float32) *sparse.Matrix {
	m := &sparse.Matrix{Cols: len(dense[0])}
	for _, d := range dense {
		var v sparse.Vector
		for j, x := range d {
			if x == 0 {
				continue
			}
			v.Index = append(v.Index, int32(j))
			if !adjacency {
				v.Value = append(v.Value, x)
			}
		}
		m.Append(v)
	}
	return m
}

func TestExactFollowsTheDefinition(t *testing.T) {
	x := rows(false, []float32{1, 0, 0}, []float32{0, 0.6, 0.8}, []float32{0, 1, 0})
	// Label 0 has instances 0 and 1, label 1 instances 1 and 2, label 2 none.
	y := rows(true, []float32{1, 0, 0}, []float32{1, 1, 0}, []float32{0, 1, 0})
	r2 := float32(1 / math.Sqrt2)
	for _, tc := range []struct {
		w    Weighting
		want [][]float64
	}{
		{Sum, [][]float64{{1, 0.6, 0.8}, {0, 1.6, 0.8}, {0, 0, 0}}},
		// Instance 1 has two labels, so it counts 1/√2.
		{InverseSqrtDegree, [][]float64{{1, float64(0.6 * r2), float64(0.8 * r2)}, {0, float64(1 + 0.6*r2),
			float64(0.8 * r2)}, {0, 0, 0}}},
	} {
		z := Exact(x, y, tc.w, 1)
		for l, sum := range tc.want {
			norm := math.Sqrt(sum[0]*sum[0] + sum[1]*sum[1] + sum[2]*sum[2])
			got := make([]float64, 3)
			row := z.Row(l)
			for k, j := range row.Index {
				got[j] = float64(row.Value[k])
			}
			for j := range got {
				if norm > 0 && math.Abs(got[j]-sum[j]/norm) > 1e-6 || norm == 0 && got[j] != 0 {
					t.Errorf("%v: label %d is %v, want %v scaled to length 1", tc.w, l, got, sum)
				}
			}
		}
	}
}

// graph returns a random graph of n nodes with texts of dim random numbers.
func graph(n, dim int, density float64, seed uint64) (texts []float32, adjacency *sparse.Matrix) {
	r := rand.New(rand.NewPCG(seed, 0))
	linked := make([][]float32, n)
	for i := range linked {
		linked[i] = make([]float32, n)
	}
	for i := range n {
		for range dim {
			texts = append(texts, float32(r.NormFloat64()))
		}
		for j := range i {
			if r.Float64() < density {
				linked[i][j], linked[j][i] = 1, 1
			}
		}
	}
	return texts, rows(true, linked...)
}

func TestExactDoesNotDependOnWorkers(t *testing.T) {
	texts, y := graph(600, 8, 0.02, 1)
	dense := make([][]float32, 600)
	for i := range dense {
		dense[i] = texts[i*8 : (i+1)*8]
	}
	x := rows(false, dense...)
	if want := Exact(x, y, Sum, 1); !reflect.DeepEqual(Exact(x, y, Sum, 5), want) {
		t.Error("5 workers and 1 differ")
	}
}

func TestLabelFeatures(t *testing.T) {
	texts, y := graph(60, 32, 0.02, 7) // sparse enough to leave nodes isolated
	isolated := 0
	for i := range y.Rows {
		if y.Start[i+1] == y.Start[i] {
			isolated++
		}
	}
	if isolated == 0 || isolated > 40 {
		t.Fatalf("%d of 60 nodes are isolated", isolated)
	}
	for _, kind := range []Kind{PIFA, PIFAIdentity, Text, RandomFeatures} {
		z, err := LabelFeatures(kind, Source{Projected: texts, Dim: 32, Labels: y, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for l := range 60 {
			var square float64
			for _, v := range z[l*32 : (l+1)*32] {
				square += float64(v) * float64(v)
			}
			want := 1.0
			if y.Start[l+1] == y.Start[l] { // the graph is undirected
				want = 0
			}
			if math.Abs(square-want) > 1e-5 {
				t.Errorf("%s: label %d has squared length %v, want %v", kind, l, square, want)
			}
		}
	}
	if _, err := LabelFeatures("bert", Source{Projected: texts, Dim: 32, Labels: y}); err == nil {
		t.Error("an unknown kind was accepted")
	}
}
