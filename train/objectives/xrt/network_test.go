package xrt

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/train"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
)

// words is the smallest train.Network: a text's pooled vector is the mean of its
// words' vectors, a word's vector a row of a table that it is hashed to.
type words struct {
	dim                       int
	table, grad, mean, square []float32
	step                      int64
	texts                     []string
	rows                      [][]int
}

const tableRows = 1024

func newWords(g *train.Graph, dim int, seed uint64) *words {
	n := tableRows * dim
	w := &words{dim: dim, texts: g.Texts, table: make([]float32, n), grad: make([]float32, n),
		mean: make([]float32, n), square: make([]float32, n)}
	r := numeric.NewRand(seed)
	for i := range w.table {
		w.table[i] = float32(r.Float64() - 0.5)
	}
	return w
}

func (w *words) Dim() int { return w.dim }

// MaxBatch has batches run in several parts.
func (w *words) MaxBatch() int { return 32 }

// Forward drops a tenth of the words of an instance with a seed.
func (w *words) Forward(instances []int32, seeds []uint64, out []float32) error {
	w.rows = w.rows[:0]
	clear(out)
	for i, instance := range instances {
		var rows []int
		var r numeric.Rand
		if seeds != nil {
			r = numeric.NewRand(seeds[i])
		}
		for word := range strings.FieldsSeq(w.texts[instance]) {
			if seeds != nil && r.Float64() < 0.1 {
				continue
			}
			rows = append(rows, int(numeric.HashString(word)%tableRows))
		}
		for _, r := range rows {
			numeric.Axpy(1/float32(len(rows)), w.table[r*w.dim:(r+1)*w.dim], out[i*w.dim:(i+1)*w.dim])
		}
		w.rows = append(w.rows, rows)
	}
	return nil
}

func (w *words) Backward(grad []float32) error {
	for i, rows := range w.rows {
		for _, r := range rows {
			numeric.Axpy(1/float32(len(rows)), grad[i*w.dim:(i+1)*w.dim], w.grad[r*w.dim:(r+1)*w.dim])
		}
	}
	return nil
}

func (w *words) Update(rate float64) (float64, error) {
	w.step++
	numeric.Adam(w.table, w.mean, w.square, w.grad, numeric.AdamRate(rate, w.step))
	norm := math.Sqrt(float64(numeric.Dot(w.grad, w.grad)))
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

// all are the nodes of g, or the first n of them.
func all(g *train.Graph, n int) []int32 {
	nodes := make([]int32, min(n, g.Len()))
	for i := range nodes {
		nodes[i] = int32(i)
	}
	return nodes
}

// problem clusters the nodes of g by the mean vector of their neighbours'
// texts under net.
func problem(t testing.TB, g *train.Graph, net train.Network, clusters ...int) Set {
	t.Helper()
	d := net.Dim()
	z := make([]float32, g.Len()*d)
	if err := net.Forward(all(g, g.Len()), nil, z); err != nil {
		t.Fatal(err)
	}
	labels := make([]float32, len(z))
	for i := range g.Len() {
		for _, j := range g.Neighbours.Row(i).Index {
			numeric.Axpy(1, z[int(j)*d:int(j+1)*d], labels[i*d:(i+1)*d])
		}
		numeric.Normalize(labels[i*d : (i+1)*d])
	}
	features, err := labeltree.Dense(labels, d)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := labeltree.Build(features, labeltree.Options{Levels: clusters})
	if err != nil {
		t.Fatal(err)
	}
	set := Set{Neighbours: g.Neighbours, Keys: numeric.Keys(g.IDs), Tree: tree, Stream: 1}
	for i := range g.Len() {
		if len(g.Neighbours.Row(i).Index) > 0 {
			set.Instances = append(set.Instances, int32(i))
		}
	}
	return set
}

// separation says how much nearer nodes of the same class are under net than
// others: the validation of these tests.
func separation(g *train.Graph, dim, nodes int) trainer.Validate {
	return func(_ context.Context, embed trainer.Embed) (float64, error) {
		z := make([]float32, nodes*dim)
		if err := embed(all(g, nodes), z); err != nil {
			return 0, err
		}
		return graphtest.ClassSeparation(g.Classes[:nodes], z, dim), nil
	}
}
