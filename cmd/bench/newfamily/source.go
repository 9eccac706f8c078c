package main

import (
	"giantstream/cmd/bench/internal/generations"
	"giantstream/train/generation"
)

// source is the graph at a manifest: rows that are as they were before the family came are of manifest 1.
func (b *bench) source(number int64, there func(int) bool) generations.Source {
	return generations.Source{Number: number, Each: func(yield func(generation.Row) bool) {
		for i := range b.Graph.Len() {
			if !there(i) {
				continue
			}
			seq := int64(1)
			if number > 1 && b.touched(i) {
				seq = number
			}
			if !yield(generation.Row{Row: b.row(i, there), Seq: seq}) {
				return
			}
		}
	}}
}

// touched says whether the family has changed a node's row.
func (b *bench) touched(i int) bool {
	if b.family[i] {
		return true
	}
	for _, j := range b.known.Neighbours.Row(i).Index {
		if b.family[j] {
			return true
		}
	}
	return false
}
