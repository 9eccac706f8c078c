package main

import (
	"context"
	"iter"
	"strconv"

	"giantstream/train/generation"
)

// source is the graph at a manifest: rows that are as they were before the family came are of manifest 1.
type source struct {
	*bench
	seq   int64
	there func(int) bool
}

func (b *bench) source(seq int64, there func(int) bool) source { return source{b, seq, there} }

func (s source) Cut() map[int]int64 { return map[int]int64{0: s.seq} }
func (s source) Hash() string       { return strconv.FormatInt(s.seq, 10) }

// Rows implements generation.Source.
func (s source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for i := range s.graph.Len() {
			if !s.there(i) {
				continue
			}
			seq := int64(1)
			if s.seq > 1 && s.touched(i) {
				seq = s.seq
			}
			if !yield(generation.Row{Row: s.row(i, s.there), Seq: seq}, nil) {
				return
			}
		}
	}
}

// touched says whether the family has changed a node's row.
func (s source) touched(i int) bool {
	if s.family[i] {
		return true
	}
	for _, j := range s.known.Neighbours.Row(i).Index {
		if s.family[j] {
			return true
		}
	}
	return false
}
