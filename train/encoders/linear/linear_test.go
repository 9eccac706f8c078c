package linear

import (
	"errors"
	"math"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

// planted returns rows x and t = Wᵀx + noise.
func planted(rows, rank, dim int, noise float64) (x, t, w []float32) {
	r := numeric.NewRand(1)
	number := func() float32 { return float32(r.Float64()*2 - 1) }
	w = make([]float32, rank*dim)
	for i := range w {
		w[i] = number()
	}
	x, t = make([]float32, rows*rank), make([]float32, rows*dim)
	for i := range rows {
		for k := range rank {
			v := number()
			x[i*rank+k] = v
			for d := range dim {
				t[i*dim+d] += v * w[k*dim+d]
			}
		}
		for d := range dim {
			t[i*dim+d] += float32(noise) * number()
		}
	}
	return x, t, w
}

func TestSolveRecoversAPlantedMap(t *testing.T) {
	x, y, w := planted(500, 8, 4, 0.01)
	s := NewSums(8, 4)
	s.Add(x, y)
	got, err := s.Solve(1e-6)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w {
		if math.Abs(got[i]-float64(w[i])) > 0.01 {
			t.Errorf("weight %d is %.4f, planted %.4f", i, got[i], w[i])
		}
	}
}

func TestSumsMergeAndKnowTheirError(t *testing.T) {
	x, y, _ := planted(300, 8, 4, 0.5)
	whole, a, b := NewSums(8, 4), NewSums(8, 4), NewSums(8, 4)
	whole.Add(x, y)
	a.Add(x[:100*8], y[:100*4])
	b.Add(x[100*8:], y[100*4:])
	if err := a.Merge(b); err != nil {
		t.Fatal(err)
	}
	for i := range whole.G {
		if math.Abs(whole.G[i]-a.G[i]) > 1e-4 {
			t.Fatalf("G[%d] is %v merged, %v whole", i, a.G[i], whole.G[i])
		}
	}
	w, err := whole.Solve(0.1)
	if err != nil {
		t.Fatal(err)
	}
	var residual, total float64
	for i := range 300 {
		for d := range 4 {
			e := -float64(y[i*4+d])
			for k := range 8 {
				e += w[k*4+d] * float64(x[i*8+k])
			}
			residual += e * e
			total += float64(y[i*4+d]) * float64(y[i*4+d])
		}
	}
	if got, want := whole.Error(w), residual/total; math.Abs(got-want) > 1e-5 {
		t.Errorf("error from the sums %.6f, from the rows %.6f", got, want)
	}
	if err := a.Merge(NewSums(8, 5)); err == nil {
		t.Error("sums of different shapes merged")
	}
}

func TestNoInstancesIsAnErrorNotAPanic(t *testing.T) {
	d := Data{Text: func(_ int, out []float32) { clear(out) }, Rank: 4, Labels: make([]float32, 6), Dim: 2,
		Neighbours: &sparse.Matrix{Rows: 3, Cols: 3, Start: make([]int64, 4)}}
	if _, _, err := Fit(t.Context(), d, Options{}, nil); !errors.Is(err, ErrSingular) {
		t.Errorf("got %v, want ErrSingular", err)
	}
	d.Labels = d.Labels[:5]
	if _, _, err := Fit(t.Context(), d, Options{}, nil); err == nil {
		t.Error("wrong shapes were accepted")
	}
}
