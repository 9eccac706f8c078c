// Package generationtest has a source of generations in memory, for tests.
package generationtest

import (
	"context"
	"iter"

	"giantstream/sink/rows"
	"giantstream/train/generation"
)

// Source is the live rows of a graph, ascending by id. It implements generation.Source.
type Source []rows.Row

// Cut implements generation.Source: all rows are of the first manifest of shard 0.
func (Source) Cut() map[int]int64 { return map[int]int64{0: 1} }

// Hash implements generation.Source.
func (Source) Hash() string { return "hash" }

// Rows implements generation.Source.
func (s Source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for _, r := range s {
			if !yield(generation.Row{Row: r, Seq: 1}, nil) {
				return
			}
		}
	}
}
