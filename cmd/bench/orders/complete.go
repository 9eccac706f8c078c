package main

import (
	"context"
	"fmt"
	"time"

	"giantstream/featurize/pairs"
	"giantstream/train/generation/eval/completion"
)

// What an order has that is asked about.
const leastItems, mostItems = 2, 60

// textShare is that of train/answer.
const textShare = 0.1

// complete prints what finds an item that is hidden of a later invoice. Figures with texts are means over generations.
func (b *bench) complete(ctx context.Context, path, until, to string, seeds uint64) error {
	s, err := readSplit(path, until, to)
	if err != nil {
		return err
	}
	var orders, later [][]int32
	for _, v := range s.training {
		orders = append(orders, s.numbers(v.items))
	}
	fresh := 0
	for _, v := range s.asked {
		if items := s.numbers(v.items); len(items) >= leastItems && len(items) <= mostItems {
			later = append(later, items)
		}
	}
	x := pairs.New(len(s.items), 0)
	for _, o := range orders {
		if _, err := x.Add(o, len(o)); err != nil {
			return err
		}
	}
	questions := completion.Questions(later, 1)
	for _, q := range questions {
		if int(q.Hidden) >= s.known {
			fresh++
		}
	}
	began := time.Now()
	ridge := completion.Ridge(x, questions, pairs.DefaultRidge, 0)
	took := time.Since(began)
	dense, err := completion.Dense(orders, len(s.items), pairs.DefaultMaxItems, pairs.DefaultRidge.Penalty)
	if err != nil {
		return err
	}
	fmt.Printf("%d items; %d invoices count; %d are asked about, of %d the hidden item is new; goes-with took %.1f s\n",
		s.known, x.Orders(), len(questions), fresh, took.Seconds())
	fmt.Printf("| recall@%d | by all others | by one |\n|---|---|---|\n", completion.At)
	row := func(f completion.Figures) { fmt.Printf("| %s | %.3f | %.3f |\n", f.Method, f.All, f.One) }
	for _, f := range completion.Recall(questions, len(s.items), []completion.Method{completion.Popularity(x),
		completion.Cosine(x, questions), dense, ridge}, 0) {
		row(f)
	}
	mean := completion.Figures{Method: "goes-with, and 0.1 × cosine of `hybrid`"}
	for seed := range seeds {
		g, vectors, err := b.build(ctx, s, source{s.rows(false), s.orders()}, seed+1)
		if err != nil {
			return err
		}
		with := completion.WithTexts(ridge, mean.Method, textShare, vectors, g.Encoder.Dim())
		f := completion.Recall(questions, len(s.items), []completion.Method{with}, 0)[0]
		mean.All, mean.One = mean.All+f.All/float64(seeds), mean.One+f.One/float64(seeds)
	}
	row(mean)
	return nil
}
