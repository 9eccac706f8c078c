package main

import (
	"context"
	"fmt"
	"slices"

	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

// bins are groups of items by how many training invoices have them at least.
var bins = []struct {
	least int
	name  string
}{{0, "0"}, {1, "1 to 4"}, {5, "5 to 19"}, {20, "20 or more"}}

// support prints how well later links are predicted from items of few and of many orders, by text alone, by behaviour
// alone, and by both.
func (b *bench) support(ctx context.Context, path, until, to string, seeds uint64) error {
	s, err := readSplit(path, until, to)
	if err != nil {
		return err
	}
	group := s.bins()
	var edges []eval.Edge // each from both of its ends
	for _, e := range slices.Concat(s.later, s.cold) {
		edges = append(edges, e, eval.Edge{Src: e.Dst, Dst: e.Src})
	}
	names := []string{"text alone", "behaviour alone", "both"}
	asked := make([]int, len(bins))
	sums := make([][3]struct{ auc, mrr float64 }, len(bins))
	for seed := range seeds {
		g, both, err := b.build(ctx, s, source{s.rows(false), s.orders()}, seed+1)
		if err != nil {
			return err
		}
		views, err := s.projections(g)
		if err != nil {
			return err
		}
		for v, vectors := range append(views, both) {
			scores, err := eval.ScoreLinks(vectors, len(vectors)/len(s.items), s.graph(), edges,
				eval.LinkOptions{Seed: 1, FromSource: true})
			if err != nil {
				return err
			}
			for k := range bins {
				m := scores.Where(group, k).Metrics()
				asked[k] = m.Edges
				sums[k][v].auc += m.AUC / float64(seeds)
				sums[k][v].mrr += m.MRR / float64(seeds)
			}
		}
	}
	fmt.Printf("| invoices of the item | links | %s AUC / MRR | %s | %s |\n|---|---|---|---|---|\n", names[0], names[1],
		names[2])
	for k, bin := range bins {
		fmt.Printf("| %s | %d |", bin.name, asked[k])
		for _, of := range sums[k] {
			fmt.Printf(" %.3f / %.3f |", of.auc, of.mrr)
		}
		fmt.Println()
	}
	return nil
}

// bins returns the bin of each item.
func (s *split) bins() []uint8 {
	support, of := make([]int, len(s.items)), make([]uint8, len(s.items))
	for _, v := range s.training {
		for _, i := range s.numbers(v.items) {
			support[i]++
		}
	}
	for i, n := range support {
		for k, bin := range bins {
			if n >= bin.least {
				of[i] = uint8(k)
			}
		}
	}
	return of
}

// projections returns the projected texts of all items, and their behaviour, zero where there is none.
func (s *split) projections(g *generation.Generation) ([][]float32, error) {
	dim := g.Encoder.Dim()
	e, err := linear.NewLSA(g.Vectorizer, g.Projection, dim)
	if err != nil {
		return nil, err
	}
	texts := make([]float32, len(s.texts)*dim)
	if err := e.Encode(s.texts, texts); err != nil {
		return nil, err
	}
	h, ok := g.Encoder.(*hybrid.Encoder)
	if !ok || h.Views().Behaviour == nil {
		return nil, fmt.Errorf("the encoder %s has no view of the orders", g.Encoder.Kind())
	}
	view := h.Views().Behaviour
	behaviour := make([]float32, len(s.items)*view.Dim())
	for i, id := range s.items {
		if k, ok := slices.BinarySearch(view.Hashes(), numeric.HashString(id)); ok {
			for j, v := range view.Rows()[k*view.Dim() : (k+1)*view.Dim()] {
				behaviour[i*view.Dim()+j] = numeric.FromBF16(v)
			}
		}
	}
	return [][]float32{texts, behaviour}, nil
}
