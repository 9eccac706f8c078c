package xrt

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"iter"
	"math"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/targets"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/internal/optim"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
	"giantstream/train/xmc"
)

// words is the smallest Network: a text's pooled vector is the mean of its
// words' vectors, a word's vector a row of a table that it is hashed to.
type words struct {
	dim                       int
	table, grad, mean, square []float32
	step                      int64
	rows                      [][]int
}

const tableRows = 1024

func newWords(dim int, seed uint64) *words {
	n := tableRows * dim
	w := &words{dim: dim, table: make([]float32, n), grad: make([]float32, n), mean: make([]float32, n), square: make([]float32, n)}
	r := rng.New(seed)
	for i := range w.table {
		w.table[i] = float32(r.Float64() - 0.5)
	}
	return w
}

func (w *words) Dim() int { return w.dim }

// Forward drops a tenth of the words of a text with a seed.
func (w *words) Forward(texts []string, seeds []uint64, out []float32) error {
	w.rows = w.rows[:0]
	clear(out)
	for i, t := range texts {
		var rows []int
		var r rng.Source
		if seeds != nil {
			r = rng.New(seeds[i])
		}
		for word := range bytes.FieldsSeq([]byte(t)) {
			if seeds != nil && r.Float64() < 0.1 {
				continue
			}
			rows = append(rows, int(rng.String(string(word))%tableRows))
		}
		for _, r := range rows {
			vector.Axpy(1/float32(len(rows)), w.table[r*w.dim:(r+1)*w.dim], out[i*w.dim:(i+1)*w.dim])
		}
		w.rows = append(w.rows, rows)
	}
	return nil
}

func (w *words) Backward(grad []float32) error {
	for i, rows := range w.rows {
		for _, r := range rows {
			vector.Axpy(1/float32(len(rows)), grad[i*w.dim:(i+1)*w.dim], w.grad[r*w.dim:(r+1)*w.dim])
		}
	}
	return nil
}

func (w *words) Update(rate float64) (float64, error) {
	w.step++
	optim.Adam(w.table, w.mean, w.square, w.grad, optim.Rate(rate, w.step))
	norm := math.Sqrt(float64(vector.Dot(w.grad, w.grad)))
	clear(w.grad)
	return norm, nil
}

func (w *words) WriteState(to io.Writer) error {
	for _, v := range []any{w.step, w.table, w.mean, w.square} {
		if err := binary.Write(to, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	return nil
}

func (w *words) ReadState(from io.Reader) error {
	for _, v := range []any{&w.step, w.table, w.mean, w.square} {
		if err := binary.Read(from, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	return nil
}

// list is a Source in memory.
type list struct {
	examples []Example
	seed     uint64
}

func (l list) Instances() int64 { return int64(len(l.examples)) }

func (l list) Epoch(_ context.Context, epoch int, skip int64) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		r := rng.New(l.seed, uint64(epoch))
		for _, i := range r.Perm(len(l.examples))[skip:] {
			if !yield(l.examples[i], nil) {
				return
			}
		}
	}
}

// problem clusters the nodes of g by the mean vector of their neighbours'
// texts under net, and gives each node its targets.
func problem(t testing.TB, g *train.Graph, net Network, clusters ...int) (list, []xmc.Level) {
	t.Helper()
	d := net.Dim()
	z := make([]float32, g.Len()*d)
	if err := net.Forward(g.Texts, nil, z); err != nil {
		t.Fatal(err)
	}
	labels := make([]float32, len(z))
	for i := range g.Len() {
		for _, j := range g.Neighbours.Row(i).Index {
			vector.Axpy(1, z[int(j)*d:int(j+1)*d], labels[i*d:(i+1)*d])
		}
		vector.Normalize(labels[i*d : (i+1)*d])
	}
	features, err := labeltree.Dense(labels, d)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := labeltree.Build(features, labeltree.Options{Levels: clusters})
	if err != nil {
		t.Fatal(err)
	}
	src := list{seed: 1}
	for i := range g.Len() {
		if labels := g.Neighbours.Row(i).Index; len(labels) > 0 {
			e := Example{Text: g.Texts[i]}
			e.Targets, e.Counts = targets.Of(tree, labels)
			src.examples = append(src.examples, e)
		}
	}
	var levels []xmc.Level
	for l := range tree.Levels() {
		level := xmc.Level{Clusters: tree.Clusters(l)}
		for c := range tree.Clusters(l) {
			if l > 0 {
				level.Parent = append(level.Parent, tree.Parent(l, int32(c)))
			}
		}
		levels = append(levels, level)
	}
	return src, levels
}

// separation says how much nearer nodes of the same class are under net than
// others: the judge of these tests.
func separation(g *train.Graph, dim, nodes int) func(context.Context, func([]string, []float32) error) (float64, error) {
	return func(_ context.Context, embed func([]string, []float32) error) (float64, error) {
		z := make([]float32, nodes*dim)
		if err := embed(g.Texts[:nodes], z); err != nil {
			return 0, err
		}
		return graphtest.Apart(g.Classes[:nodes], z, dim), nil
	}
}
