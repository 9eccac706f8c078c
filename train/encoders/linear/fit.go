package linear

import (
	"context"
	"fmt"
	"math"

	"giantstream/featurize/sparse"
	"giantstream/internal/ambient"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// Data is what Fit learns from.
type Data struct {
	// Text writes the projection of node i's text, Rank numbers, to out. It
	// must be safe for concurrent use.
	Text func(i int, out []float32)
	Rank int
	// Labels holds every label's PIFA, normalized, n×Dim; zero where a label
	// has no neighbours.
	Labels []float32
	Dim    int
	// Neighbours is the adjacency: row i are the labels of instance i. Its values are the weights of the links.
	Neighbours *sparse.Matrix
	// Keys are the nodes' keys, by which instances are held out.
	Keys []uint64
}

// Options of Fit. The zero value is the default.
type Options struct {
	// MaxDegree: nodes with more labels are no instances; 0 means 1000.
	MaxDegree int
	// Seed chooses the held-out instances.
	Seed    uint64
	Workers int
}

// Report says how the fit went.
type Report struct {
	Instances int64 `json:"instances"`
	HeldOut   int64 `json:"held_out"`
	// Lambda is the regularisation chosen, relative to G's mean diagonal.
	Lambda float64 `json:"lambda"`
	// Error is the share of the targets' squares left unexplained on the
	// held-out instances; 0 when none are held out.
	Error float64 `json:"held_out_error,omitempty"`
}

// lambdas are the regularisations tried.
var lambdas = [...]float64{0.003, 0.01, 0.03, 0.1, 0.3, 1, 3}

const (
	block = 2048 // instances per call of Sums.Add
	// holdOut is the share of instances that choose λ.
	holdOut = 0.1
)

// Fit returns W, Rank×Dim.
func Fit(ctx context.Context, d Data, o Options, p ambient.Progress) ([]float32, Report, error) {
	n := d.Neighbours.Rows
	if d.Rank < 1 || d.Dim < 1 || len(d.Labels) != n*d.Dim {
		return nil, Report{}, fmt.Errorf("linear: labels %d are not %d rows of %d numbers, or rank %d is none",
			len(d.Labels), n, d.Dim, d.Rank)
	}
	if o.MaxDegree == 0 {
		o.MaxDegree = 1000
	}
	p = ambient.OrDiscard(p)
	var fit, held []int32
	for i := range n {
		if k := len(d.Neighbours.Row(i).Index); k == 0 || k > o.MaxDegree {
			continue
		}
		if r := numeric.NewRand(o.Seed, d.Keys[i]); r.Float64() < holdOut {
			held = append(held, int32(i))
		} else {
			fit = append(fit, int32(i))
		}
	}
	if len(fit) == 0 {
		fit, held = held, nil
	}
	p.Stage("linear", int64(len(fit)+len(held)))
	sums, check := NewSums(d.Rank, d.Dim), NewSums(d.Rank, d.Dim)
	if err := d.sum(ctx, sums, fit, o.Workers, p); err != nil {
		return nil, Report{}, err
	}
	if err := d.sum(ctx, check, held, o.Workers, p); err != nil {
		return nil, Report{}, err
	}
	r := Report{Instances: sums.Rows + check.Rows, HeldOut: check.Rows, Lambda: lambdas[len(lambdas)/2]}
	if check.Targets > 0 {
		r.Error = math.Inf(1)
		for _, l := range lambdas {
			w, err := sums.Solve(l)
			if err != nil {
				continue // too small a λ for these sums; a larger one may do
			}
			if e := check.Error(w); e < r.Error {
				r.Lambda, r.Error = l, e
			}
		}
	}
	if err := sums.Merge(check); err != nil {
		return nil, r, err
	}
	w, err := sums.Solve(r.Lambda)
	if err != nil {
		return nil, r, err
	}
	out := make([]float32, len(w))
	for i, v := range w {
		out[i] = float32(v)
	}
	return out, r, nil
}

// sum adds the given instances to s.
func (d Data) sum(ctx context.Context, s *Sums, instances []int32, workers int, p ambient.Progress) error {
	x, t := make([]float32, block*d.Rank), make([]float32, block*d.Dim)
	for at := 0; at < len(instances); at += block {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("linear: %w", err)
		}
		take := instances[at:min(at+block, len(instances))]
		parallel.ForEach(len(take), 64, workers, func(_, _, lo, hi int) {
			for k := lo; k < hi; k++ {
				d.row(int(take[k]), x[k*d.Rank:(k+1)*d.Rank], t[k*d.Dim:(k+1)*d.Dim])
			}
		})
		s.Add(x[:len(take)*d.Rank], t[:len(take)*d.Dim])
		p.Add(int64(len(take)))
	}
	return nil
}

// row writes instance i's text and target, times √w = degree^¼. With weights, the degree is how many labels of equal
// weight say as much: (Σv)²/Σv².
func (d Data) row(i int, x, t []float32) {
	labels := d.Neighbours.Row(i)
	w := float32(math.Sqrt(math.Sqrt(labels.Effective())))
	d.Text(i, x)
	for k := range x {
		x[k] *= w
	}
	clear(t)
	for k, l := range labels.Index {
		numeric.Axpy(labels.Weight(k), d.Labels[int(l)*d.Dim:int(l+1)*d.Dim], t)
	}
	numeric.Normalize(t)
	for k := range t {
		t[k] *= w
	}
}
