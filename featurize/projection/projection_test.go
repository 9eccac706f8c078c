package projection

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"giantstream/featurize/internal/datatest"
	"giantstream/featurize/sparse"
	"giantstream/internal/artifact"
)

// lowRank returns a sparse matrix whose rows mix a few topics plus noise, the
// rows L2-normalized as TF-IDF rows are.
func lowRank(rows, cols, topics int, seed uint64) *sparse.Matrix {
	r := rand.New(rand.NewPCG(seed, 1))
	x := &sparse.Matrix{Cols: cols, Start: []int64{0}}
	for range rows {
		topic := r.IntN(topics)
		dense := make([]float64, cols)
		for range 12 {
			dense[(topic*cols/topics+r.IntN(cols/topics))%cols] += 1 + r.Float64()
		}
		for range 3 {
			dense[r.IntN(cols)] += r.Float64()
		}
		var norm float64
		for _, v := range dense {
			norm += v * v
		}
		var row sparse.Vector
		for j, v := range dense {
			if v != 0 {
				row.Index = append(row.Index, int32(j))
				row.Value = append(row.Value, float32(v/math.Sqrt(norm)))
			}
		}
		x.Append(row)
	}
	return x
}

func toDense(x *sparse.Matrix) *mat.Dense {
	d := mat.NewDense(x.Rows, x.Cols, nil)
	for i := range x.Rows {
		row := x.Row(i)
		for k, j := range row.Index {
			d.Set(i, int(j), float64(row.Value[k]))
		}
	}
	return d
}

func mustFit(t testing.TB, x *sparse.Matrix, dim int, opt Options) *Projection {
	t.Helper()
	p, err := Fit(x, dim, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFitMatchesExactSVD(t *testing.T) {
	x := lowRank(300, 120, 6, 3)
	const dim = 8
	p := mustFit(t, x, dim, Options{Seed: 1, Iterations: 6})
	var svd mat.SVD
	if !svd.Factorize(toDense(x), mat.SVDThin) {
		t.Fatal("reference SVD failed")
	}
	want := svd.Values(nil)
	for k, s := range p.Singular() {
		if math.Abs(s-want[k]) > 2e-3*want[0] {
			t.Errorf("singular value %d is %v, exactly %v", k, s, want[k])
		}
	}
	// The projections capture the energy of the exact rank-6 part.
	var v mat.Dense
	svd.VTo(&v)
	var exact mat.Dense
	exact.Mul(toDense(x), v.Slice(0, x.Cols, 0, 6))
	got := p.ApplyAll(x, 2)
	for i := range x.Rows {
		for k := range 6 {
			// Signs of singular vectors are free; ours are fixed.
			if d := math.Abs(math.Abs(float64(got[i*dim+k])) - math.Abs(exact.At(i, k))); d > 0.02 {
				t.Fatalf("row %d component %d: |%v|, exactly |%v|", i, k, got[i*dim+k], exact.At(i, k))
			}
		}
	}
}

func TestFullRankIsAnIsometry(t *testing.T) {
	x := lowRank(40, 30, 3, 5)
	p := mustFit(t, x, 64, Options{Seed: 1})
	if p.Dim() > 30 {
		t.Fatalf("%d dimensions of a matrix with 30 columns", p.Dim())
	}
	y := p.ApplyAll(x, 1)
	for i := range x.Rows {
		var n float64
		for _, v := range y[i*p.Dim() : (i+1)*p.Dim()] {
			n += float64(v) * float64(v)
		}
		if math.Abs(n-1) > 1e-3 {
			t.Errorf("row %d of length 1 is projected to squared length %v", i, n)
		}
	}
}

func TestFitIsReproducible(t *testing.T) {
	x := lowRank(500, 200, 5, 9)
	want := mustFit(t, x, 16, Options{Seed: 4, Sample: 300, MaxFeatures: 150, Workers: 1})
	for _, workers := range []int{2, 3, 8} {
		got := mustFit(t, x, 16, Options{Seed: 4, Sample: 300, MaxFeatures: 150, Workers: workers})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers gave another projection", workers)
		}
	}
	if reflect.DeepEqual(want, mustFit(t, x, 16, Options{Seed: 5, Sample: 300, MaxFeatures: 150})) {
		t.Error("another seed drew the same sample")
	}
}

// TestFitIsTheSameOnAnyNumberOfCPUs uses sizes at which gonum's matrix
// products run in parallel.
func TestFitIsTheSameOnAnyNumberOfCPUs(t *testing.T) {
	x := lowRank(1500, 400, 5, 9)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := mustFit(t, x, 128, Options{Seed: 4})
	runtime.GOMAXPROCS(5)
	if got := mustFit(t, x, 128, Options{Seed: 4}); !reflect.DeepEqual(got, want) {
		t.Error("1 and 5 CPUs gave different projections")
	}
}

func TestRankDeficientMatrixGivesFewerDimensions(t *testing.T) {
	x := &sparse.Matrix{Cols: 6, Start: []int64{0}}
	for range 10 {
		x.Append(sparse.Vector{Index: []int32{0, 3}, Value: []float32{0.6, 0.8}})
		x.Append(sparse.Vector{Index: []int32{5}, Value: []float32{1}})
		x.Append(sparse.Vector{})
	}
	p := mustFit(t, x, 4, Options{})
	if p.Dim() != 2 {
		t.Fatalf("%d dimensions, want the rank 2", p.Dim())
	}
	var out [2]float32
	p.Apply(sparse.Vector{Index: []int32{1, 2}, Value: []float32{1, 1}}, out[:])
	if out != [2]float32{} {
		t.Errorf("unknown features projected to %v", out)
	}
}

func TestNothingToLearnFrom(t *testing.T) {
	if _, err := Fit(&sparse.Matrix{Rows: 3, Cols: 4, Start: make([]int64, 4)}, 2, Options{}); !errors.Is(err,
		ErrNoData) {
		t.Errorf("got %v, want ErrNoData", err)
	}
	// Many rows that share no feature: a user reads of texts, not of a matrix.
	x := &sparse.Matrix{Cols: 2 * fewRows}
	x.Start = []int64{0}
	for i := range 2 * fewRows {
		x.Append(sparse.Vector{Index: []int32{int32(i)}, Value: []float32{1}})
	}
	if _, err := Fit(x, 2, Options{}); !errors.Is(err, ErrNoData) ||
		err.Error() != "projection: the texts share no words" {
		t.Errorf("got %v, want ErrNoData", err)
	}
	if _, err := Fit(lowRank(5, 20, 2, 1), 0, Options{}); err == nil {
		t.Error("0 dimensions accepted")
	}
}

func TestProjectionsAreLinear(t *testing.T) {
	x := lowRank(50, 60, 4, 2)
	random, err := Random(60, 32, 7)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Projection{"fitted": mustFit(t, x, 8, Options{}), "random": random} {
		y := p.ApplyAll(x, 2)
		sum := make([]float32, 60)
		want := make([]float32, p.Dim())
		for i := range x.Rows {
			row := x.Row(i)
			for k, j := range row.Index {
				sum[j] += row.Value[k]
			}
			for k := range want {
				want[k] += y[i*p.Dim()+k]
			}
		}
		v := sparse.Vector{Value: sum}
		for j := range sum {
			v.Index = append(v.Index, int32(j))
		}
		got := make([]float32, p.Dim())
		p.Apply(v, got)
		for k := range got {
			if math.Abs(float64(got[k]-want[k])) > 1e-4 {
				t.Errorf("%s: dimension %d of the sum is %v, the sum of projections %v", name, k, got[k], want[k])
			}
		}
	}
}

func TestRandomKeepsDotProducts(t *testing.T) {
	x := lowRank(60, 500, 3, 8)
	p, err := Random(500, 512, 1)
	if err != nil {
		t.Fatal(err)
	}
	y := p.ApplyAll(x, 1)
	var worst float64
	d := toDense(x)
	for i := range x.Rows {
		for j := range x.Rows {
			var dot float64
			for k := range 512 {
				dot += float64(y[i*512+k]) * float64(y[j*512+k])
			}
			worst = max(worst, math.Abs(dot-mat.Dot(d.RowView(i), d.RowView(j))))
		}
	}
	if worst > 0.3 {
		t.Errorf("a dot product is off by %v", worst)
	}
}

func TestTruncateTakesTheFirstDimensions(t *testing.T) {
	x := lowRank(80, 60, 4, 2)
	p := mustFit(t, x, 8, Options{})
	q, err := p.Truncate(3)
	if err != nil {
		t.Fatal(err)
	}
	full, short := p.ApplyAll(x, 1), q.ApplyAll(x, 1)
	for i := range x.Rows {
		if !slices.Equal(short[i*3:(i+1)*3], full[i*8:i*8+3]) {
			t.Fatalf("row %d: %v, want the beginning of %v", i, short[i*3:(i+1)*3], full[i*8:(i+1)*8])
		}
	}
	if _, err := p.Truncate(9); err == nil {
		t.Error("truncated 8 dimensions to 9")
	}
}

func written(t testing.TB, p *Projection) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestProjectionSurvivesWriteAndRead(t *testing.T) {
	x := lowRank(80, 60, 4, 2)
	fitted := mustFit(t, x, 8, Options{MaxFeatures: 40})
	short, err := fitted.Truncate(5)
	if err != nil {
		t.Fatal(err)
	}
	random, err := Random(60, 20, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Projection{"fitted": fitted, "truncated": short, "random": random} {
		got, err := Read(bytes.NewReader(written(t, p)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(got.ApplyAll(x, 1), p.ApplyAll(x, 1)) || !slices.Equal(got.Singular(), p.Singular()) {
			t.Errorf("%s: the projection read differs", name)
		}
	}
}

func FuzzRead(f *testing.F) {
	random, err := Random(60, 20, 3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(written(f, mustFit(f, lowRank(20, 12, 2, 2), 3, Options{})))
	f.Add(written(f, random))
	f.Add([]byte(magic + "\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = datatest.Sealed(b)
		p, err := Read(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, artifact.ErrCorrupt) && !errors.Is(err, artifact.ErrUnknown) {
				t.Fatalf("error %v is neither ErrCorrupt nor ErrUnknown", err)
			}
			return
		}
		p.Apply(sparse.Vector{Index: []int32{0}, Value: []float32{1}}, make([]float32, p.Dim()))
	})
}
