package linear

import (
	"errors"
	"math"
	"slices"
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

// Equal weights of links give the bits that none give, and so does another scale of all weights. Links of noise that
// weigh next to nothing hardly change what is learned.
func TestWeightsOfLinks(t *testing.T) {
	const n, rank, dim = 400, 6, 4
	text, labels, _ := planted(n, rank, dim, 0.1)
	for i := range n {
		numeric.Normalize(labels[i*dim : (i+1)*dim])
	}
	fit := func(noise bool, weigh func(k int, noise bool) float32) []float32 {
		g := &sparse.Matrix{Cols: n}
		r := numeric.NewRand(3)
		for i := range n {
			row := sparse.Vector{Index: []int32{int32(i)}}
			other := int32(r.IntN(n))
			if noise && other != int32(i) {
				row.Index = append(row.Index, other)
			}
			if weigh != nil {
				for k := range row.Index {
					row.Value = append(row.Value, weigh(i, k > 0))
				}
			}
			if len(row.Index) > 1 && row.Index[1] < row.Index[0] {
				row.Index[0], row.Index[1] = row.Index[1], row.Index[0]
				if weigh != nil {
					row.Value[0], row.Value[1] = row.Value[1], row.Value[0]
				}
			}
			g.Append(row)
		}
		w, _, err := Fit(t.Context(), Data{Text: func(i int, out []float32) { copy(out, text[i*rank:]) }, Rank: rank,
			Labels: labels, Dim: dim, Neighbours: g, Keys: make([]uint64, n)}, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	all := func(w float32) func(int, bool) float32 { return func(int, bool) float32 { return w } }
	plain := fit(true, nil)
	if !slices.Equal(plain, fit(true, all(1))) {
		t.Error("weights of 1 change the solution")
	}
	uneven := func(scale float32) func(int, bool) float32 {
		return func(k int, _ bool) float32 { return scale * float32(1+k%3) }
	}
	if !slices.Equal(fit(true, uneven(1)), fit(true, uneven(8))) {
		t.Error("the scale of the weights changes the solution")
	}
	clean := fit(false, nil)
	distance := func(w []float32) (sum float64) {
		for i := range w {
			sum += math.Abs(float64(w[i] - clean[i]))
		}
		return sum
	}
	weighed := distance(fit(true, func(_ int, noise bool) float32 {
		if noise {
			return 0.01
		}
		return 1
	}))
	if equal := distance(plain); !(weighed < equal/5) {
		t.Errorf("weighed noise moves the solution by %g, equal noise by %g", weighed, equal)
	}
}
