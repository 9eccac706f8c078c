package xrlinear

import (
	"context"
	"fmt"
	"slices"

	"giantstream/featurize/parallel"
	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/internal/rng"
)

// Train fits the classifiers to instances x (n × features, rows of length 1
// or zero) with labels y (n × labels, values ignored). Labels that the tree
// does not hold are left out. progress may be nil.
func Train(ctx context.Context, x, y *sparse.Matrix, tree Tree, o Options, progress train.Progress) (*Model, error) {
	if err := check(x, y, tree); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	progress = train.OrDiscard(progress)
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

// parents returns the instances of every parent of level t: where they have
// labels, and where the levels above send them.
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
	m.each(x.Rows, o.Workers, func(q *Query, i int) {
		row := slices.Clone(y.Row(i).Index)
		q.search(m, x.Row(i), t, o.Matched, o.Matched)
		for _, n := range q.beam {
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
	progress train.Progress

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
	parallel.Each(len(small), 1, t.o.Workers, func(w, _, i, _ int) {
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

// random is the source of randomness for one child, or the parent itself (-1).
func (t *trainer) random(parent, child int32) rng.Source {
	return rng.New(t.o.Seed, uint64(t.number), uint64(parent), uint64(child+1))
}

// large trains a parent's children side by side.
func (t *trainer) large(p int32) {
	lo, hi := t.level.start[p], t.level.start[p+1]
	f := t.worker(0).family(t.x, t.parents.Row(int(p)).Index, int(hi-lo), t.random(p, -1))
	children := make([]classifier, hi-lo)
	parallel.Each(len(children), 1, t.o.Workers, func(w, _, c, _ int) {
		children[c] = t.worker(w).child(f, t.positives.Row(int(lo)+c).Index, t.random(p, int32(c)))
		t.progress.Add(1)
	})
	t.chunks[p] = newChunk(children)
}

// small trains a parent's children one after the other.
func (t *trainer) small(w *worker, p int32) {
	lo, hi := t.level.start[p], t.level.start[p+1]
	rows := t.parents.Row(int(p)).Index
	children := make([]classifier, hi-lo)
	if len(rows) > 0 {
		f := w.family(t.x, rows, int(hi-lo), t.random(p, -1))
		for c := range children {
			children[c] = w.child(f, t.positives.Row(int(lo)+c).Index, t.random(p, int32(c)))
		}
	} else {
		for c := range children {
			children[c].bias = -1 // never seen: as a classifier of negatives alone
		}
	}
	t.progress.Add(int64(hi - lo))
	t.chunks[p] = newChunk(children)
}
