package fit

import (
	"context"
	"fmt"

	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/numeric"
)

// A generation is trained from scratch, and its weights are then averaged with its parent's. Noise differs from one
// training to the next, and what the graph says does not. So vectors of neighbouring generations stay kin, and a new
// generation is as good as without a parent (docs/MEASUREMENTS.md, "Successive generations"). The shares are the
// parent's, chosen on two graphs that are not among those measured; the table's and the solution's are of weights whose
// embeddings have the length 1 on average. What items were ordered with is no noise, and all of it is known to the new
// generation, so it is not averaged: with three tenths of the parent's, a shop's vectors fell behind its orders
// (docs/measurements/2026-11-28.md).
const (
	parentProjection = 0.7
	parentTable      = 0.4
	parentSolution   = 0.3
	parentTextWeight = 0.5
	// averagingSample bounds how many texts show how the weights of two generations lie to each other.
	averagingSample = 4096
	// parentRidge keeps the parent's solution, on the new projection, from fitting noise.
	parentRidge = 0.003
)

// Parent is the generation that a new one is averaged with and turned to. Close it after use.
type Parent struct {
	Vectorizer *tfidf.Model
	Projection *projection.Projection
	Encoder    train.Encoder
}

// Close closes the encoder, on a Parent or nil.
func (p *Parent) Close() error {
	if p == nil {
		return nil
	}
	return train.Close(p.Encoder)
}

// ngramKey is what is drawn for an n-gram is drawn by, and what names it in another vocabulary.
func ngramKey(v *tfidf.Model, feature int32) uint64 {
	return numeric.HashString(v.Feature(int(feature)))
}

// placesOf returns the places of features by their keys.
func placesOf(v *tfidf.Model, features []int32) map[uint64]int {
	places := make(map[uint64]int, len(features))
	for k, f := range features {
		places[ngramKey(v, f)] = k
	}
	return places
}

// shareOf is the parent's share of the weights of an n-gram, its feature before and now: the share where as many texts
// had it before as have it now, less where fewer had, by what each generation has seen of it.
func shareOf(share float32, parent *tfidf.Model, before int32, v *tfidf.Model, now int32) float32 {
	old := float64(share) * parent.TextsWith(int(before))
	return float32(old / (old + float64(1-share)*v.TextsWith(int(now))))
}

// AverageProjection turns the projection q of the vocabulary v to where the parent's is, and averages the rows of
// n-grams that both have. own and parents are Ψ of the same texts in the two vocabularies. The first dim dimensions,
// which label features are made of, stay apart from the rest.
func AverageProjection(q *projection.Projection, v *tfidf.Model, own *sparse.Matrix, parent *Parent,
	parents *sparse.Matrix, dim, workers int) (*projection.Projection, error) {
	common := min(q.Dim(), parent.Projection.Dim())
	x, y := q.ApplyAll(firstRows(own), workers), parent.Projection.ApplyAll(firstRows(parents), workers)
	features := q.Features()
	rows := make([]float32, 0, len(features)*q.Dim())
	for _, f := range features {
		rows = append(rows, q.Row(f)...)
	}
	for from, to := 0, min(dim, common); from < to; from, to = to, common {
		rotation, err := numeric.Procrustes(columnsOf(x, q.Dim(), from, to),
			columnsOf(y, parent.Projection.Dim(), from, to), to-from)
		if err != nil {
			return nil, fmt.Errorf("turn the projection to the parent's: %w", err)
		}
		part := columnsOf(rows, q.Dim(), from, to)
		numeric.Rotate(part, rotation, to-from)
		for k := range features {
			copy(rows[k*q.Dim()+from:], part[k*(to-from):(k+1)*(to-from)])
		}
	}
	before := parent.Projection.Features()
	places := placesOf(parent.Vectorizer, before)
	for k, f := range features {
		at, ok := places[ngramKey(v, f)]
		if !ok {
			continue
		}
		row := rows[k*q.Dim() : k*q.Dim()+common]
		share := shareOf(parentProjection, parent.Vectorizer, before[at], v, f)
		scaleBy(row, 1-share)
		// Rows are of n-grams weighed by idf, which differs.
		idf := parent.Vectorizer.IDF(int(before[at])) / v.IDF(int(f))
		numeric.Axpy(share*idf, parent.Projection.Row(before[at])[:common], row)
	}
	return q.WithRows(rows)
}

// firstRows are the rows that show how two projections lie to each other.
func firstRows(m *sparse.Matrix) *sparse.Matrix {
	n := min(m.Rows, averagingSample)
	return &sparse.Matrix{Rows: n, Cols: m.Cols, Start: m.Start[:n+1], Index: m.Index, Value: m.Value}
}

// columnsOf copies columns from ≤ k < to of rows.
func columnsOf(rows []float32, dim, from, to int) []float32 {
	out := make([]float32, 0, len(rows)/dim*(to-from))
	for at := 0; at < len(rows); at += dim {
		out = append(out, rows[at+from:at+to]...)
	}
	return out
}

func scaleBy(x []float32, by float32) {
	for k := range x {
		x[k] *= by
	}
}

// average averages the views with the parent's, if that is a hybrid of the same dimensions.
func (t *Training) average(ctx context.Context, v *hybrid.Views) error {
	if !t.Average {
		return nil
	}
	parent, err := t.parent(ctx)
	if err != nil || parent == nil {
		return err
	}
	e, ok := parent.Encoder.(*hybrid.Encoder)
	if !ok || e.Views().Table.Dim() != v.Table.Dim() || e.Views().TextDim() != v.TextDim() {
		t.Resources.Log.Info(
			"only the projection is averaged with the parent's: its encoder is of another kind or dimension")
		return nil
	}
	before := e.Views()
	step := max(1, (t.Graph.Len()+averagingSample-1)/averagingSample)
	var sample []int32
	for i := 0; i < t.Graph.Len(); i += step {
		sample = append(sample, int32(i))
	}
	t.Resources.Progress.Stage("average with the generation before", int64(len(sample)))
	own, parents := newPooled(len(sample), *v), newPooled(len(sample), before)
	if err := t.Texts.Subset(sample).blocks(ctx, t.Resources.Progress, func(lo int, texts []string) error {
		parallel.ForEach(len(texts), 32, t.Resources.Workers, func(_, _, a, b int) {
			for i := a; i < b; i++ {
				own.pool(lo+i, *v, t.Features.Row(int(sample[lo+i])))
				parents.pool(lo+i, before, parent.Vectorizer.Transform(texts[i], sparse.Vector{}))
			}
		})
		return nil
	}); err != nil {
		return err
	}
	if v.Table, err = t.averageTable(v.Table, own.table, parent.Vectorizer, before.Table, parents.table); err != nil {
		return err
	}
	if v.Solution, err = averageSolution(v.Solution, own, before.Solution, parents, v.TextDim()); err != nil {
		return err
	}
	v.TextWeight = (1-parentTextWeight)*v.TextWeight + parentTextWeight*before.TextWeight
	return nil
}

// pooled are what the views of some texts are made of, a row for each text: the sums of their n-grams' vectors, and
// their projections.
type pooled struct {
	table, projected []float32
}

func newPooled(texts int, v hybrid.Views) pooled {
	return pooled{make([]float32, texts*v.Table.Dim()), make([]float32, texts*v.Projection.Dim())}
}

func (p pooled) pool(i int, v hybrid.Views, features sparse.Vector) {
	h, r := v.Table.Dim(), v.Projection.Dim()
	v.Table.Pool(features, p.table[i*h:(i+1)*h])
	v.Projection.Apply(features, p.projected[i*r:(i+1)*r])
}

// averageTable averages the vectors of n-grams that both tables have, once the parent's is turned. own and parents are
// the sums of the same texts' vectors in each.
func (t *Training) averageTable(table *bag.Model, own []float32, vocabulary *tfidf.Model, parent *bag.Model,
	parents []float32) (*bag.Model, error) {
	dim := table.Dim()
	to, length := directions(own, dim)
	from, before := directions(parents, dim)
	if length == 0 || before == 0 {
		return table, nil
	}
	rotation, err := numeric.Procrustes(from, to, dim)
	if err != nil {
		return nil, fmt.Errorf("turn the parent's table: %w", err)
	}
	old := append([]float32(nil), parent.Vectors()...)
	numeric.Rotate(old, rotation, dim)
	places := placesOf(vocabulary, parent.Features())
	vectors := append([]float32(nil), table.Vectors()...)
	scaleBy(vectors, 1/length)
	for row, f := range table.Features() {
		if at, ok := places[t.ngramKey(f)]; ok {
			vector := vectors[row*dim : (row+1)*dim]
			share := shareOf(parentTable, vocabulary, parent.Features()[at], t.Vectorizer, f)
			scaleBy(vector, 1-share)
			numeric.Axpy(share/before, old[at*dim:(at+1)*dim], vector)
		}
	}
	return bag.NewModel(table.Features(), vectors, t.Vectorizer.Dim(), dim)
}

// averageSolution averages a solution with the parent's, which is turned and brought to the new projection by least
// squares.
func averageSolution(solution []float32, own pooled, parent []float32, parents pooled, dim int) ([]float32, error) {
	rank := len(solution) / dim
	x, y := solved(own.projected, solution, dim), solved(parents.projected, parent, dim)
	to, length := directions(x, dim)
	from, before := directions(y, dim)
	if length == 0 || before == 0 {
		return solution, nil
	}
	rotation, err := numeric.Procrustes(from, to, dim)
	if err != nil {
		return nil, fmt.Errorf("turn the parent's solution: %w", err)
	}
	numeric.Rotate(y, rotation, dim)
	scaleBy(y, 1/before)
	sums := linear.NewSums(rank, dim)
	sums.Add(own.projected, y)
	w, err := sums.Solve(parentRidge)
	if err != nil {
		return nil, fmt.Errorf("bring the parent's solution to the projection: %w", err)
	}
	out := append([]float32(nil), solution...)
	scaleBy(out, (1-parentSolution)/length)
	for k := range out {
		out[k] += parentSolution * float32(w[k])
	}
	return out, nil
}

// solved returns the products of projected texts and a solution, a row of dim for each.
func solved(projected, solution []float32, dim int) []float32 {
	rank := len(solution) / dim
	n := len(projected) / rank
	out := make([]float32, n*dim)
	numeric.Gemm(numeric.NoTrans, n, dim, rank, projected, solution, out)
	return out
}

// directions returns the rows with length 1, and their mean length.
func directions(rows []float32, dim int) (unit []float32, mean float32) {
	unit = append([]float32(nil), rows...)
	var sum float64
	for at := 0; at < len(unit); at += dim {
		sum += float64(numeric.Normalize(unit[at : at+dim]))
	}
	return unit, float32(sum / float64(max(1, len(rows)/dim)))
}
