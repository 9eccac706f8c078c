package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"giantstream/cmd/bench/internal/generate"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
)

const day = 24 * time.Hour

// life is a shop that lives through windows of some days each. Each window is predicted before it is learned.
type life struct {
	days, windows int
	seed          uint64
	first         map[string]int // the generation that an item came with, by its code
}

// model is a way of keeping vectors current, and what it says of the items of the window before.
type model struct {
	name   string
	store  *memstore.Store
	newest *generation.Generation
	before map[string][]float32
	near   float64 // the share of a new vector's nearest that it finds among the vectors before
	scores [2]eval.LinkScores
}

// live prints what models predict of each window from a day on: "kept" has a generation a window, which is averaged
// with the one before, and "scratch" one that has never had another.
func (b *bench) live(ctx context.Context, path, until string, l life) error {
	invoices, err := readInvoices(path)
	if err != nil {
		return err
	}
	from, err := time.Parse(time.DateOnly, until)
	if err != nil {
		return err
	}
	l.first, b.config.Train.Seed = map[string]int{}, l.seed
	models := []*model{{name: "kept", store: &memstore.Store{}}, {name: "scratch"}}
	fmt.Println("| window from | links, with a new item | kept: AUC / MRR | kept less scratch: AUC, MRR " +
		"| new items: kept, less scratch: AUC | new on old: kept, scratch |\n|---|---|---|---|---|---|")
	for k := range l.windows {
		begin := from.Add(time.Duration(k*l.days) * day)
		s := divide(invoices, begin, begin.Add(time.Duration(l.days)*day))
		for _, m := range models {
			if err := b.step(ctx, m, s, &l, k); err != nil {
				return fmt.Errorf("%s, window from %s: %w", m.name, begin.Format(time.DateOnly), err)
			}
		}
		if err := printWindow(begin.Format(time.DateOnly), s, models); err != nil {
			return err
		}
	}
	return nil
}

// step builds the generation of a window, and asks it what the window is about to bring.
func (b *bench) step(ctx context.Context, m *model, s *split, l *life, number int) error {
	if m.store == nil || m.name == "scratch" {
		m.store = &memstore.Store{}
	}
	src := cutSource{source{s.rows(false), s.orders()}, number, l.first}
	for _, r := range src.Source {
		if _, known := l.first[r.NodeID]; !known {
			l.first[r.NodeID] = number
		}
	}
	var err error
	if m.newest, err = generate.BuildNext(ctx, &b.config, b.log, m.store, src, nil); err != nil {
		return err
	}
	if _, err := generation.Prune(ctx, m.store, 2); err != nil {
		return err
	}
	dim := m.newest.Encoder.Dim()
	vectors := make([]float32, len(s.items)*dim)
	if err := m.newest.Encode(s.items, s.texts, vectors); err != nil {
		return err
	}
	for k, edges := range [][]eval.Edge{s.later, s.cold} {
		var err error
		if m.scores[k], err = eval.ScoreLinks(vectors, dim, s.graph(), edges, eval.LinkOptions{Seed: 1}); err != nil {
			return err
		}
	}
	m.compare(s, vectors, dim)
	return nil
}

// compare finds how near the vectors of known items are to those of the window before.
func (m *model) compare(s *split, vectors []float32, dim int) {
	old := make([]float32, s.known*dim)
	var both []int32
	for i, code := range s.items[:s.known] {
		if v, known := m.before[code]; known {
			copy(old[i*dim:], v)
			both = append(both, int32(i))
		}
	}
	if len(both) > 0 {
		o, _ := eval.Overlaps(old, vectors[:s.known*dim], dim, both, make([]uint8, s.known), 10)
		m.near = o.NewOnOld
	}
	m.before = map[string][]float32{}
	for i, code := range s.items[:s.known] {
		m.before[code] = vectors[i*dim : (i+1)*dim]
	}
}

// printWindow prints a line of the table.
func printWindow(begin string, s *split, models []*model) error {
	kept, scratch := models[0], models[1]
	var less [2]eval.LinkDifference
	for k := range less {
		var err error
		if less[k], err = eval.Difference(kept.scores[k], scratch.scores[k]); err != nil {
			return err
		}
	}
	known, cold := kept.scores[0].Metrics(), kept.scores[1].Metrics()
	fmt.Printf("| %s | %d, %d | %.3f / %.3f | %+.4f ± %.4f, %+.4f ± %.4f | %.3f, %+.4f ± %.4f | %.3f, %.3f |\n",
		begin, len(s.later), len(s.cold), known.AUC, known.MRR, less[0].AUC, less[0].AUCStdErr, less[0].MRR,
		less[0].MRRStdErr, cold.AUC, less[1].AUC, less[1].AUCStdErr, kept.near, scratch.near)
	return nil
}

// cutSource is the shop at the beginning of a window as a build reads it.
type cutSource struct {
	source
	number int
	first  map[string]int
}

// Cut implements generation.Source.
func (s cutSource) Cut() map[int]int64 { return map[int]int64{0: int64(s.number) + 1} }

// Hash implements generation.Source.
func (s cutSource) Hash() string { return strconv.Itoa(s.number) }

// Rows implements generation.Source.
func (s cutSource) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for _, r := range s.Source {
			if !yield(generation.Row{Row: r, Seq: int64(s.first[r.NodeID]) + 1}, nil) {
				return
			}
		}
	}
}
