package xrlinear

import (
	"math"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/internal/rng"
)

const (
	// gramRows is the number of instances up to which the descent runs on
	// their Gram matrix: its n² numbers are then 9 MB, and moving along one of
	// its rows costs no more than a text's features do.
	gramRows = 1536
	// gramChildren is the number of children from which making it pays.
	gramChildren = 4
	// spread is the number of instances from which the children of one parent
	// are divided among the goroutines, and not the parents.
	spread = 8192
)

// worker is one goroutine's scratch memory.
type worker struct {
	o         Options
	localizer *localizer
	descent   descent
	primal    primal
	dual      dual
	positives []int32
}

func newWorker(o Options, cols int) *worker {
	return &worker{o: o, localizer: newLocalizer(cols), descent: descent{o: o}}
}

// family is a parent's problem, ready for its children: the solution
// without positives.
type family struct {
	*local
	alpha   []float32
	none    *primal
	gram    []float32 // nil if the children descend on w
	margins []float32 // of the solution without positives, with gram
}

// family prepares the parent whose instances are rows.
func (w *worker) family(x *sparse.Matrix, rows []int32, children int, r rng.Source) *family {
	f := &family{local: w.localizer.take(x, rows)}
	f.none = newPrimal(f.local)
	if n := f.n(); n <= gramRows && children >= gramChildren {
		f.gram = f.local.gram(w.dual.gram)
		w.dual.gram = f.gram
		w.dual.reset(n)
		w.descent.none(f.local, &w.dual, &r)
		f.margins = slices.Clone(w.dual.margins)
		for k, a := range w.descent.alpha {
			if a != 0 {
				f.none.add(int32(k), -a)
			}
		}
	} else {
		w.descent.none(f.local, f.none, &r)
	}
	f.alpha = slices.Clone(w.descent.alpha)
	return f
}

// classifier is one child's w, its features in no order, and bias.
type classifier struct {
	sparse.Vector
	bias float32
}

// child solves the problem of one child, whose instances are positives.
func (w *worker) child(f *family, positives []int32, r rng.Source) classifier {
	w.positives = w.positives[:0]
	for _, i := range positives {
		k, _ := slices.BinarySearch(f.rows, i)
		w.positives = append(w.positives, int32(k))
	}
	w.primal.become(f.none)
	d := &w.descent
	if f.gram == nil {
		d.some(f.local, &w.primal, &r, f.alpha, w.positives)
	} else {
		w.dual.gram = f.gram
		w.dual.margins = append(w.dual.margins[:0], f.margins...)
		d.some(f.local, &w.dual, &r, f.alpha, w.positives)
		for _, k := range d.active {
			if s := d.sign[k]*d.alpha[k] + f.alpha[k]; s != 0 {
				w.primal.add(k, s)
			}
		}
	}
	return w.weights(f)
}

// weights drops what is below the threshold.
func (w *worker) weights(f *family) classifier {
	c := classifier{bias: w.primal.b}
	small := w.o.Threshold
	for j, v := range w.primal.w {
		if v >= small || v <= -small {
			c.Index, c.Value = append(c.Index, f.cols[j]), append(c.Value, v)
		}
	}
	for k, a := range w.descent.alpha {
		if a*f.ownMost[k] < small {
			continue
		}
		for at := f.ownStart[k]; at < f.ownStart[k+1]; at++ {
			v := w.descent.sign[k] * a * f.ownValue[at]
			if float32(math.Abs(float64(v))) >= small {
				c.Index, c.Value = append(c.Index, f.ownIndex[at]), append(c.Value, v)
			}
		}
	}
	return c
}
