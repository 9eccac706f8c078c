package fit

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/internal/parallel"
)

// failure keeps the first error of reads that have nowhere to return it. A stage that has read
// asks for the error before its result counts.
type failure struct{ first atomic.Pointer[error] }

func (f *failure) note(err error) { f.first.CompareAndSwap(nil, &err) }

func (f *failure) err() error {
	if e := f.first.Load(); e != nil {
		return *e
	}
	return nil
}

// Features are Ψ of every node's text, kept as records of indices and values, 4 bytes each. They
// implement bag.Features.
type Features struct {
	failure
	spool   *spool
	cols    int
	ngrams  tfidf.NGramCount
	records recorder // while features are appended
}

// NewFeatures returns features that keep their share of r.MemoryLimit in memory: append those of all nodes, then seal.
// Close them after use.
func NewFeatures(cols int, r Resources) *Features {
	return &Features{spool: r.spool(featureShare), cols: cols}
}

// Append adds the features of n more nodes. reader returns, for a worker, the function that returns those of the i-th
// of them, re-using the capacity of dst.
func (f *Features) Append(n, workers int, reader func() func(i int, dst sparse.Vector) sparse.Vector) error {
	return f.records.run(f.spool, n, workers, func(int) func(int, []byte) []byte {
		row := reader()
		var x sparse.Vector
		return func(i int, out []byte) []byte {
			x = row(i, x)
			for _, j := range x.Index {
				out = binary.LittleEndian.AppendUint32(out, uint32(j))
			}
			return appendFloats(out, x.Value)
		}
	})
}

// Seal ends the appending; from then on Row is safe for concurrent use.
func (f *Features) Seal() error {
	f.records = recorder{}
	return f.spool.seal()
}

// Vectorize applies the vectorizer to all texts. Close the features after use, also after an error.
func Vectorize(ctx context.Context, v *tfidf.Model, t *Texts, r Resources) (*Features, error) {
	r.Progress.Stage("vectorize texts", int64(t.Len()))
	f := NewFeatures(v.Dim(), r)
	err := t.blocks(ctx, r.Progress, func(_ int, texts []string) error {
		return f.Append(len(texts), r.Workers, func() func(int, sparse.Vector) sparse.Vector {
			return func(i int, dst sparse.Vector) sparse.Vector {
				x, n := v.TransformCounting(texts[i], dst)
				f.ngrams.Add(n)
				return x
			}
		})
	})
	if err == nil {
		err = f.Seal()
	}
	return f, err
}

// Size returns the numbers of nodes and of features.
func (f *Features) Size() (rows, cols int) { return f.spool.len(), f.cols }

// UnknownShare is the share of the texts' n-grams that are no features.
func (f *Features) UnknownShare() float64 {
	return tfidf.NGrams{Total: f.ngrams.Total(), Unknown: f.ngrams.Unknown()}.Share()
}

// Close gives memory and file back. It may be called more than once, and on nil.
func (f *Features) Close() error {
	if f == nil {
		return nil
	}
	return f.spool.close()
}

// Row returns Ψ of node i's text. It is safe for concurrent use.
func (f *Features) Row(i int) sparse.Vector {
	b, err := f.spool.recordAt(i, nil)
	if err != nil {
		f.note(err)
		return sparse.Vector{}
	}
	n := len(b) / 8
	v := sparse.Vector{Index: make([]int32, n), Value: make([]float32, n)}
	for k := range v.Index {
		v.Index[k] = int32(binary.LittleEndian.Uint32(b[4*k:]))
	}
	floats(b[4*n:], v.Value)
	return v
}

// ProjectionSample is how many texts the projection is fitted to.
const ProjectionSample = 8192

// sample returns the features of a seeded sample of the nodes that have any, in ascending order. If
// they are no more than size, it returns those of all.
func (f *Features) sample(size int, seed uint64) (*sparse.Matrix, error) {
	nodes := make([]int32, f.spool.len())
	for i := range nodes {
		nodes[i] = int32(i)
	}
	// The first steps of a Fisher-Yates shuffle, until enough are found.
	r := rand.New(rand.NewPCG(seed, 'S'))
	chosen := nodes[:0]
	for i := range nodes {
		j := i + r.IntN(len(nodes)-i)
		nodes[i], nodes[j] = nodes[j], nodes[i]
		if f.spool.bytes(int(nodes[i])) > 0 {
			if chosen = append(chosen, nodes[i]); len(chosen) == size {
				break
			}
		}
	}
	slices.Sort(chosen)
	x := &sparse.Matrix{Cols: f.cols, Start: []int64{0}}
	for _, i := range chosen {
		x.Append(f.Row(int(i)))
	}
	return x, f.err()
}

// Projected are the projections of every node's text.
type Projected struct {
	failure
	spool *spool
	dim   int
}

// Project applies the projection to all features. Close the result after use, also after an error.
func Project(ctx context.Context, q *projection.Projection, f *Features, r Resources) (*Projected, error) {
	r.Progress.Stage("project texts", int64(f.spool.len()))
	out := &Projected{spool: r.spool(projectedShare), dim: q.Dim()}
	n := f.spool.len()
	var records recorder
	for lo := 0; lo < n; lo += block {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		err := records.run(out.spool, min(block, n-lo), r.Workers, func(int) func(int, []byte) []byte {
			x := make([]float32, q.Dim())
			return func(i int, out []byte) []byte {
				q.Apply(f.Row(lo+i), x)
				return appendFloats(out, x)
			}
		})
		if err != nil {
			return out, err
		}
		r.Progress.Add(int64(min(block, n-lo)))
	}
	if err := f.err(); err != nil {
		return out, err
	}
	return out, out.spool.seal()
}

// Close gives memory and file back. It may be called more than once, and on nil.
func (q *Projected) Close() error {
	if q == nil {
		return nil
	}
	return q.spool.close()
}

// Row writes the first len(out) numbers of node i's projection. It is safe for concurrent use.
func (q *Projected) Row(i int, out []float32) {
	b, err := q.spool.recordAt(i, nil)
	if err != nil {
		q.note(err)
		return
	}
	floats(b, out)
}

// rows writes the first dim numbers of the projections of nodes lo to hi.
func (q *Projected) rows(lo, hi, dim int, out []float32, workers int) error {
	parallel.ForEach(hi-lo, 64, workers, func(_, _, a, b int) {
		for k := a; k < b; k++ {
			q.Row(lo+k, out[k*dim:(k+1)*dim])
		}
	})
	return q.err()
}

// recorder makes records on several goroutines and spools them in order.
type recorder struct {
	bytes [][]byte // by batch
	end   []int    // of record i, within its batch
}

// recordBatch is how many records one goroutine makes at a time.
const recordBatch = 64

// run appends n records; start returns, for each batch, the function that appends record i to a
// buffer.
func (r *recorder) run(s *spool, n, workers int, start func(worker int) func(i int, out []byte) []byte) error {
	for len(r.bytes)*recordBatch < n {
		r.bytes = append(r.bytes, nil)
		r.end = append(r.end, make([]int, recordBatch)...)
	}
	parallel.ForEach(n, recordBatch, workers, func(worker, _, lo, hi int) {
		add := start(worker)
		out := r.bytes[lo/recordBatch][:0]
		for i := lo; i < hi; i++ {
			out = add(i, out)
			r.end[i] = len(out)
		}
		r.bytes[lo/recordBatch] = out
	})
	for i := range n {
		from := 0
		if i%recordBatch > 0 {
			from = r.end[i-1]
		}
		if err := s.append(r.bytes[i/recordBatch][from:r.end[i]]); err != nil {
			return err
		}
	}
	return nil
}

func appendFloats(out []byte, values []float32) []byte {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// floats reads len(out) numbers.
func floats(b []byte, out []float32) {
	for k := range out {
		out[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
	}
}
