package projection

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

// ErrNoData is returned by Fit for a matrix without entries to learn from.
var ErrNoData = errors.New("projection: the texts share no words")

// Options are the settings of Fit; the zero value is a good choice: on 7,145
// product and 63,666 package descriptions, neither more rows nor more features
// made link AUC or label clusters better.
type Options struct {
	// Sample is how many rows the fit looks at, drawn by Seed (0: 8,192).
	Sample int
	// MaxFeatures bounds the features mapped to something other than zero,
	// and thus the memory (0: 32,768).
	MaxFeatures int
	// Iterations of the subspace iteration (0: 2).
	Iterations int
	Seed       uint64
	// Workers ≤ 0: one per CPU. The result does not depend on it.
	Workers int
}

func (o Options) withDefaults() Options {
	set := func(v *int, otherwise int) {
		if *v <= 0 {
			*v = otherwise
		}
	}
	set(&o.Sample, 8192)
	set(&o.MaxFeatures, 32768)
	set(&o.Iterations, 2)
	return o
}

// oversampling is how many directions more than asked for the iteration
// carries along (Halko et al. suggest 5 to 10; more helps flat spectra, as
// those of text are).
const oversampling = 32

// Fit returns the projection to the dim strongest directions of x, fewer if
// the sample's rank is less.
func Fit(x *sparse.Matrix, dim int, opt Options) (*Projection, error) {
	if dim < 1 || dim > maxDim {
		return nil, fmt.Errorf("projection: %d dimensions, want 1 to %d", dim, maxDim)
	}
	opt = opt.withDefaults()
	rows := sampleRows(x, opt.Sample, opt.Seed)
	keep := keepFeatures(x, rows, opt.MaxFeatures)
	if len(keep) == 0 {
		return nil, ErrNoData
	}
	p := &Projection{cols: x.Cols, slot: make([]int32, x.Cols)}
	for j := range p.slot {
		p.slot[j] = -1
	}
	for s, j := range keep {
		p.slot[j] = int32(s)
	}
	a := take(x, rows, p.slot, len(keep))
	at := a.Transpose()

	l := min(dim+oversampling, a.Rows, a.Cols)
	b := signs(a.Cols, l, opt.Seed)
	q := make([]float32, a.Rows*l)
	for range opt.Iterations + 1 {
		q = q[:a.Rows*l]
		multiply(a, b, l, q, opt.Workers)
		rank, err := orthonormalize(q, a.Rows, l)
		if err != nil {
			return nil, err
		}
		l = rank
		b = b[:a.Cols*l]
		multiply(at, q[:a.Rows*l], l, b, opt.Workers)
	}
	return p, p.finish(b, len(keep), l, dim)
}

// signs returns the n × l random test matrix: ±1, a seeded stream per row.
func signs(n, l int, seed uint64) []float32 {
	m := make([]float32, n*l)
	for i := range n {
		state := splitmix(seed ^ splitmix(uint64(i)+1))
		var bits uint64
		for k := range l {
			if k%64 == 0 {
				state += 0x9e3779b97f4a7c15
				bits = splitmix(state)
			}
			m[i*l+k] = float32(int64(bits&1)*2 - 1)
			bits >>= 1
		}
	}
	return m
}

// multiply computes out = s · d for sparse s (r × c) and row-major d (c × l).
func multiply(s *sparse.Matrix, d []float32, l int, out []float32, workers int) {
	parallel.ForEach(s.Rows, 64, workers, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			y := out[i*l : (i+1)*l]
			clear(y)
			row := s.Row(i)
			for k, j := range row.Index {
				blas32.Axpy(row.Value[k], blas32.Vector{N: l, Inc: 1, Data: d[int(j)*l:]},
					blas32.Vector{N: l, Inc: 1, Data: y})
			}
		}
	})
}

// general views the storage of a symmetric matrix as a full one.
func general(s *mat.SymDense) blas64.General {
	r := s.RawSymmetric()
	return blas64.General{Rows: r.N, Cols: r.N, Stride: r.Stride, Data: r.Data}
}

// eigen returns the eigenvectors (columns) and eigenvalues of a positive
// semi-definite matrix, largest first.
func eigen(g *mat.SymDense) (*mat.Dense, []float64, error) {
	var es mat.EigenSym
	if !es.Factorize(g, true) {
		return nil, nil, errors.New("projection: eigenvalues did not converge; does the matrix hold NaN or infinities?")
	}
	var vectors mat.Dense
	es.VectorsTo(&vectors)
	values := es.Values(nil)
	slices.Reverse(values)
	n := len(values)
	for i := range n {
		slices.Reverse(vectors.RawRowView(i))
	}
	return &vectors, values, nil
}

// finish turns B = AᵀQ (c × l) into the components.
func (p *Projection) finish(b []float32, c, l, dim int) error {
	bm := blas32.General{Rows: c, Cols: l, Stride: l, Data: b}
	gram := gramOf(bm)
	vectors, values, err := eigen(gram)
	if err != nil {
		return err
	}
	p.dim = 0
	for p.dim < min(dim, len(values)) && values[p.dim] > rankTolerance*values[0] {
		p.dim++
	}
	if p.dim == 0 {
		return ErrNoData
	}
	p.stride = p.dim
	w := blas32.General{Rows: l, Cols: p.dim, Stride: p.dim, Data: make([]float32, l*p.dim)}
	for k := range p.dim {
		p.singular = append(p.singular, math.Sqrt(values[k]))
		for i := range l {
			w.Data[i*p.dim+k] = float32(vectors.At(i, k) / p.singular[k])
		}
	}
	p.matrix = make([]float32, c*p.dim)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, bm, w, 0,
		blas32.General{Rows: c, Cols: p.dim, Stride: p.dim, Data: p.matrix})
	fixSigns(p.matrix, c, p.dim)
	return nil
}

// gramOf returns bᵀb, adding up blocks of rows in float64.
func gramOf(b blas32.General) *mat.SymDense {
	const block = 2048
	l := b.Cols
	sum := mat.NewSymDense(l, nil)
	part := blas32.General{Rows: l, Cols: l, Stride: l, Data: make([]float32, l*l)}
	total := general(sum).Data
	for lo := 0; lo < b.Rows; lo += block {
		n := min(block, b.Rows-lo)
		rows := blas32.General{Rows: n, Cols: l, Stride: l, Data: b.Data[lo*l : (lo+n)*l]}
		blas32.Gemm(blas.Trans, blas.NoTrans, 1, rows, rows, 0, part)
		for i, v := range part.Data {
			total[i] += float64(v)
		}
	}
	return sum
}

// fixSigns makes the largest coefficient of each column positive.
func fixSigns(m []float32, rows, cols int) {
	largest := make([]float32, cols)
	for i := range rows {
		for k, v := range m[i*cols : (i+1)*cols] {
			if abs(v) > abs(largest[k]) {
				largest[k] = v
			}
		}
	}
	for i := range rows {
		row := m[i*cols : (i+1)*cols]
		for k := range row {
			if largest[k] < 0 {
				row[k] = -row[k]
			}
		}
	}
}

func abs(v float32) float32 { return float32(math.Abs(float64(v))) }
