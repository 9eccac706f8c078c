package vectors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

const (
	// maxDim is the number of directions of a view at most.
	maxDim = 128
	// sampleRows and sampleNumbers bound what the directions of all views are fitted on, in vectors of each view and in
	// numbers of all, but leastRows of each view there are. With fewer, a vector is no view.
	sampleRows    = 1 << 13
	sampleNumbers = 1 << 22
	leastRows     = 256
	iterations    = 4
	// chunk is how many vectors are mapped at a time.
	chunk = 1 << 10
	// headBytes of a row in the output: hash u64, time i64.
	headBytes = 16
)

// View is a named vector of items.
type View struct {
	Name string `json:"name"`
	// Input is the number of the input that states it.
	Input int32 `json:"input"`
	// Length of a vector, and Dim of what it is mapped to: 0 for too few vectors that differ.
	Length int `json:"length"`
	Dim    int `json:"dim"`
}

// find returns the place of the view that vector i of a row belongs to.
func find(views []View, r *rows.Vectors, i int) (int, bool) {
	k, ok := slices.BinarySearchFunc(views, r.Names[i], func(v View, name string) int {
		return cmp.Compare(v.Name, name)
	})
	return k, ok && views[k].Length == lengthOf(r, i) && views[k].Input == r.Input
}

// Fit makes the views.
//
//	maps  section v: the map of view v, its mean and its axes, float32
//	rows  section v·partitions + p: the rows of the items of partition p in view v, in no order: headBytes and numbers
//	      as bfloat16
func Fit(ctx context.Context, t *work.Task) error {
	views, err := count(ctx, t)
	if err != nil {
		return err
	}
	all, err := takeSamples(ctx, t, views)
	if err != nil {
		return err
	}
	out := t.NewSections(len(views))
	defer out.Close() //nolint:errcheck // a temporary file
	mapped := make([]*hybrid.VectorMap, len(views))
	for k := range views {
		if mapped[k], err = all[k].fit(t, views[k].Length); err != nil {
			return err
		}
		if m := mapped[k]; m != nil {
			views[k].Dim = m.Dim()
			b := sections.AppendFloats(sections.AppendFloats(nil, m.Mean()), m.Axes())
			if err := out.Add(k, b); err != nil {
				return err
			}
		}
	}
	t.Stats = views
	if err := t.PutSections(ctx, "maps", out); err != nil {
		return err
	}
	return putRows(ctx, t, views, mapped)
}

// eachRow calls visit with every row of vectors of the cut.
func eachRow(ctx context.Context, t *work.Task, visit func(r *rows.Vectors) error) error {
	log, err := t.Log(ctx, t.Doc.Cut)
	if err != nil {
		return err
	}
	for shard := range t.Plan.Shards {
		for r, err := range log.Vectors(ctx, shard) {
			if err != nil {
				return err
			}
			for i := range r.Names {
				if len(r.Values) != len(r.Names) || len(r.Bits) != len(r.Names) || r.Bits[i] != 16 && r.Bits[i] != 32 {
					return fmt.Errorf("%w: the vectors of node %q", sink.ErrDamaged, r.NodeID)
				}
			}
			if err := visit(&r); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// lengthOf is how many numbers vector i of a row has.
func lengthOf(r *rows.Vectors, i int) int { return len(r.Values[i]) / int(r.Bits[i]/8) }

// count returns the views, in ascending order of the names. Vectors of a name have one length and are of one input, the
// most frequent: others are of a mapping that has changed.
func count(ctx context.Context, t *work.Task) (views []View, err error) {
	of := map[View]int{}
	err = eachRow(ctx, t, func(r *rows.Vectors) error {
		for i, name := range r.Names {
			if name == rows.OrderedName {
				continue // the orders say it
			}
			of[View{Name: name, Input: r.Input, Length: lengthOf(r, i)}]++
		}
		return nil
	})
	byName := slices.SortedFunc(maps.Keys(of), func(a, b View) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(of[b], of[a]), cmp.Compare(a.Input, b.Input),
			cmp.Compare(a.Length, b.Length))
	})
	return slices.CompactFunc(byName, func(a, b View) bool { return a.Name == b.Name }), err
}

// sample are vectors of a view: those whose ids have the least hashes.
type sample struct {
	most  int
	of    []sampled
	limit uint64 // vectors of a higher hash are none of them
}

type sampled struct {
	hash uint64
	time int64
	x    []float32
}

func compareSampled(a, b sampled) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.time, b.time), slices.Compare(a.x, b.x))
}

// add takes a vector. It keeps twice as many as it is to have at most.
func (s *sample) add(v sampled) {
	if s.of = append(s.of, v); len(s.of) == 2*s.most {
		s.cut()
	}
}

func (s *sample) cut() {
	slices.SortFunc(s.of, compareSampled)
	if len(s.of) >= s.most {
		clear(s.of[s.most:])
		s.of = s.of[:s.most]
		s.limit = s.of[s.most-1].hash
	}
}

func takeSamples(ctx context.Context, t *work.Task, views []View) ([]sample, error) {
	all := make([]sample, len(views))
	for k, v := range views {
		all[k].most = max(leastRows, min(sampleRows, sampleNumbers/len(views)/max(1, v.Length)))
		all[k].limit = math.MaxUint64
	}
	err := eachRow(ctx, t, func(r *rows.Vectors) error {
		for i := range r.Names {
			if k, ok := find(views, r, i); ok {
				if hash := graph.HashOf(r.NodeID); hash <= all[k].limit {
					all[k].add(sampled{hash, r.EventTime, r.Numbers(i)})
				}
			}
		}
		return nil
	})
	for k := range all {
		all[k].cut()
	}
	return all, err
}

// fit returns the map of a view, nil if there are too few vectors, or if they are all alike.
func (s *sample) fit(t *work.Task, length int) (*hybrid.VectorMap, error) {
	if len(s.of) < leastRows {
		return nil, nil
	}
	mean := make([]float32, length)
	plain, err := hybrid.NewVectorMap(mean, make([]float32, length))
	if err != nil {
		return nil, err
	}
	directions, direction := make([]float32, 0, len(s.of)*length), make([]float32, length)
	for _, v := range s.of {
		if plain.Centre(v.x, direction) {
			directions = append(directions, direction...)
		}
	}
	s.of = nil // the rest takes as much again, several times
	n := len(directions) / length
	sums := make([]float64, length)
	for at, v := range directions {
		sums[at%length] += float64(v)
	}
	for k, sum := range sums {
		mean[k] = float32(sum / float64(max(1, n)))
	}
	numbers := make([]int32, length)
	for k := range numbers {
		numbers[k] = int32(k)
	}
	centred := &sparse.Matrix{Cols: length, Start: []int64{0}}
	for at := range directions {
		directions[at] -= mean[at%length]
	}
	for row := range slices.Chunk(directions, length) {
		centred.Append(sparse.Vector{Index: numbers, Value: row})
	}
	p, err := projection.Fit(centred, min(maxDim, length), projection.Options{Sample: n, MaxFeatures: length,
		Iterations: iterations, Seed: t.Doc.Settings.Seed, Workers: t.Workers})
	if errors.Is(err, projection.ErrNoData) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	axes := make([]float32, length*p.Dim())
	for _, f := range p.Features() {
		copy(axes[int(f)*p.Dim():], p.Row(f))
	}
	return hybrid.NewVectorMap(mean, axes)
}

// putRows stores the rows of all items.
func putRows(ctx context.Context, t *work.Task, views []View, mapped []*hybrid.VectorMap) error {
	out := t.NewSections(len(views) * t.Plan.Partitions)
	defer out.Close() //nolint:errcheck // a temporary file
	waiting := make([][]sampled, len(views))
	write := func(k int) error {
		m, of := mapped[k], waiting[k]
		rows, is := make([]uint16, len(of)*m.Dim()), make([]bool, len(of))
		parallel.ForEach(len(of), 64, t.Workers, func(_, _, lo, hi int) {
			room := make([]float32, m.Len()+m.Dim())
			for i := lo; i < hi; i++ {
				is[i] = m.Row(of[i].x, room, rows[i*m.Dim():(i+1)*m.Dim()])
			}
		})
		var b []byte
		for i, v := range of {
			if !is[i] {
				continue
			}
			b = binary.LittleEndian.AppendUint64(b[:0], v.hash)
			b = binary.LittleEndian.AppendUint64(b, uint64(v.time))
			for _, x := range rows[i*m.Dim() : (i+1)*m.Dim()] {
				b = binary.LittleEndian.AppendUint16(b, x)
			}
			p := graph.PartitionOf(v.hash, t.Plan.Partitions)
			if err := out.Add(k*t.Plan.Partitions+p, b); err != nil {
				return err
			}
		}
		waiting[k] = of[:0]
		return nil
	}
	err := eachRow(ctx, t, func(r *rows.Vectors) error {
		for i := range r.Names {
			k, ok := find(views, r, i)
			if !ok || mapped[k] == nil {
				continue
			}
			waiting[k] = append(waiting[k], sampled{graph.HashOf(r.NodeID), r.EventTime, r.Numbers(i)})
			if len(waiting[k]) == chunk {
				if err := write(k); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k := range waiting {
		if len(waiting[k]) > 0 {
			if err := write(k); err != nil {
				return err
			}
		}
	}
	return t.PutSections(ctx, "rows", out)
}

// Views are those that Fit has found.
func Views(ctx context.Context, b *work.Build) ([]View, error) {
	return work.StatsOf[[]View](ctx, b, stages.Vectors, 0)
}

// Load reads the views, each with the weight 1. Of two ids that have the same hash, the one counts whose vector was
// stated last.
func Load(ctx context.Context, t *work.Task) (all []hybrid.VectorView, err error) {
	views, err := Views(ctx, t.Build)
	if err != nil {
		return nil, err
	}
	from, err := t.OutputsOf(ctx, stages.Vectors, 0)
	if err != nil {
		return nil, err
	}
	for k, v := range views {
		if v.Dim == 0 {
			continue
		}
		b, err := from.ReadSection(ctx, "maps", k)
		if err != nil {
			return nil, err
		}
		if len(b) != 4*v.Length*(1+v.Dim) {
			return nil, from.Damaged(fmt.Errorf("the map of the vector %s has %d bytes", v.Name, len(b)))
		}
		numbers := make([]float32, len(b)/4)
		sections.ReadFloats(b, numbers)
		view := hybrid.VectorView{Name: v.Name, Input: v.Input}
		if view.Map, err = hybrid.NewVectorMap(numbers[:v.Length], numbers[v.Length:]); err != nil {
			return nil, from.Damaged(err)
		}
		var hashes []uint64
		var halves []uint16
		for p := range t.Plan.Partitions {
			b, err := from.ReadSection(ctx, "rows", k*t.Plan.Partitions+p)
			if err != nil {
				return nil, err
			}
			hashes, halves = appendRows(b, v.Dim, hashes, halves)
		}
		if view.Items, err = hybrid.NewItemView(1, v.Dim, hashes, halves); err != nil {
			return nil, from.Damaged(err)
		}
		all = append(all, view)
	}
	return all, nil
}

// appendRows appends the rows of a partition, of each hash the latest.
func appendRows(b []byte, dim int, hashes []uint64, halves []uint16) ([]uint64, []uint16) {
	of := slices.Collect(slices.Chunk(b, headBytes+2*dim))
	hash := func(row []byte) uint64 { return binary.LittleEndian.Uint64(row) }
	slices.SortFunc(of, func(a, b []byte) int {
		return cmp.Or(cmp.Compare(hash(a), hash(b)),
			cmp.Compare(int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint64(a[8:]))),
			bytes.Compare(a, b))
	})
	for k, row := range of {
		if k > 0 && hash(row) == hash(of[k-1]) {
			continue
		}
		hashes = append(hashes, hash(row))
		for at := headBytes; at < len(row); at += 2 {
			halves = append(halves, binary.LittleEndian.Uint16(row[at:]))
		}
	}
	return hashes, halves
}
