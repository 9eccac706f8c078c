package xrlinear

import (
	"context"
	"fmt"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/ambient"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
)

// Train fits the classifiers to instances x (n × features, rows of length 1
// or zero) with labels y (n × labels, values ignored). Labels that the tree
// does not hold are left out. progress may be nil.
func Train(ctx context.Context, x, y *sparse.Matrix, tree Tree, o Options, progress ambient.Progress) (*Model, error) {
	if err := check(x, y, tree); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	progress = ambient.OrDiscard(progress)
	levels, labels := pose(y, tree)
	if levels[0].y.NNZ() == 0 {
		return nil, fmt.Errorf("xrlinear: %w", ErrNoLabels)
	}
	var total int64
	for _, l := range levels {
		total += int64(l.nodes())
	}
	progress.Stage("xr-linear", total)
	m := &Model{labels: labels}
	for t := range levels {
		l := &trainer{o: o, x: x, level: &levels[t], number: t, parents: m.parents(x, levels, t, o), progress: progress}
		trained, err := l.run(ctx)
		if err != nil {
			return nil, err
		}
		m.levels = append(m.levels, trained)
	}
	return m, nil
}

// parents returns the instances of every parent of level t: those with labels below it and, if
// o.Matched > 0, those that the levels above send there.
func (m *Model) parents(x *sparse.Matrix, levels []level, t int, o Options) *sparse.Matrix {
	if t == 0 {
		all := make([]int32, x.Rows)
		for i := range all {
			all[i] = int32(i)
		}
		return &sparse.Matrix{Rows: 1, Cols: x.Rows, Start: []int64{0, int64(x.Rows)}, Index: all}
	}
	y := levels[t-1].y
	if o.Matched <= 0 {
		return y.Transpose()
	}
	rows := make([][]int32, x.Rows)
	m.searchAll(x, t, o.Matched, o.Matched, o.Workers, func(level, i int, best []node) {
		if level < t-1 {
			return
		}
		row := slices.Clone(y.Row(i).Index)
		for _, n := range best {
			row = append(row, n.id)
		}
		slices.Sort(row)
		rows[i] = slices.Compact(row)
	})
	both := &sparse.Matrix{Cols: y.Cols}
	for _, row := range rows {
		both.Append(sparse.Vector{Index: row})
	}
	return both.Transpose()
}

// trainer trains the classifiers of one level.
type trainer struct {
	o        Options
	x        *sparse.Matrix
	level    *level
	number   int
	parents  *sparse.Matrix // parents × instances
	progress ambient.Progress

	positives *sparse.Matrix // nodes × instances
	workers   []*worker
	chunks    []chunk
}

func (t *trainer) run(ctx context.Context) (modelLevel, error) {
	t.positives = t.level.y.Transpose()
	t.workers = make([]*worker, parallel.Workers(t.o.Workers))
	t.chunks = make([]chunk, t.parents.Rows)
	var small []int32
	for p := range int32(t.parents.Rows) {
		if len(t.parents.Row(int(p)).Index) < spread {
			small = append(small, p)
			continue
		}
		if err := ctx.Err(); err != nil {
			return modelLevel{}, err
		}
		t.large(p)
	}
	parallel.ForEach(len(small), 1, t.o.Workers, func(w, _, i, _ int) {
		if ctx.Err() == nil {
			t.small(t.worker(w), small[i])
		}
	})
	return modelLevel{t.level.start, t.chunks}, ctx.Err()
}

func (t *trainer) worker(w int) *worker {
	if t.workers[w] == nil {
		t.workers[w] = newWorker(t.o, t.x.Cols)
	}
	return t.workers[w]
}

// random is the source of randomness for the children from one on.
func (t *trainer) random(parent, child int32) numeric.Rand {
	return numeric.NewRand(t.o.Seed, uint64(t.number), uint64(parent), uint64(child))
}

// large trains a parent's children side by side, some on each goroutine.
func (t *trainer) large(p int32) {
	lo, hi := t.level.start[p], t.level.start[p+1]
	l := t.worker(0).localizer.take(t.x, t.parents.Row(int(p)).Index)
	size := sideBySide(l)
	parts := make([]part, parallel.Blocks(int(hi-lo), size))
	parallel.ForEach(int(hi-lo), size, t.o.Workers, func(w, b, from, to int) {
		parts[b] = t.part(t.worker(w), l, p, lo+int32(from), lo+int32(to))
	})
	t.chunks[p] = newChunk(l, parts)
}

// small trains a parent's children on one goroutine.
func (t *trainer) small(w *worker, p int32) {
	lo, hi := t.level.start[p], t.level.start[p+1]
	l := w.localizer.take(t.x, t.parents.Row(int(p)).Index)
	size := int32(sideBySide(l))
	var parts []part
	for from := lo; from < hi; from += size {
		parts = append(parts, t.part(w, l, p, from, min(from+size, hi)))
	}
	t.chunks[p] = newChunk(l, parts)
}

// part trains the children [lo, hi) of parent p, whose instances are l.
func (t *trainer) part(w *worker, l *local, p, lo, hi int32) part {
	var r part
	if len(l.rows) == 0 {
		// Never seen: as classifiers of negatives alone.
		r.bias = slices.Repeat([]float32{-1}, int(hi-lo))
	} else {
		positives := make([][]int32, hi-lo)
		for c := range positives {
			positives[c] = t.positives.Row(int(lo) + c).Index
		}
		r = w.train(l, positives, t.random(p, lo))
	}
	t.progress.Add(int64(hi - lo))
	return r
}
