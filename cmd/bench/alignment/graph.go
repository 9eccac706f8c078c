package main

import (
	"fmt"
	"slices"
	"strings"

	"giantstream/cmd/bench/internal/generations"
	"giantstream/featurize/sparse"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
)

// state is the graph at a generation's cut.
type state struct {
	there  []bool
	texts  []string
	linked []map[int32]bool // symmetric
	seq    []int64          // of the newest state in which a node's row was another
}

// draw is a number in [0, 1) of a node in a state, for one of the uses.
func (b *bench) draw(use rune, i int, k int) float64 {
	r := numeric.NewRand(b.Seed, uint64(use), numeric.HashString(b.Graph.IDs[i]), uint64(k))
	return r.Float64()
}

// evolve makes the states. Another part of the nodes is away in each. Edits and moves stay.
func (b *bench) evolve() {
	n := b.Graph.Len()
	now := state{there: make([]bool, n), texts: slices.Clone(b.Graph.Texts), linked: make([]map[int32]bool, n),
		seq: make([]int64, n)}
	for i := range n {
		now.linked[i] = map[int32]bool{}
	}
	for i := range n {
		for _, j := range b.Graph.Neighbours.Row(i).Index {
			now.linked[i][j], now.linked[j][int32(i)] = true, true
		}
	}
	for k := range b.generations {
		if k > 0 {
			b.change(&now, k)
		}
		next := state{texts: slices.Clone(now.texts), there: make([]bool, n), linked: make([]map[int32]bool, n),
			seq: make([]int64, n)}
		for i := range n {
			away := b.draw('A', i, 0)
			next.there[i] = away < float64(k)*b.come || away >= float64(k+1)*b.come
		}
		for i := range n {
			next.linked[i] = map[int32]bool{}
			for j := range now.linked[i] {
				if next.there[i] && next.there[j] {
					next.linked[i][j] = true
				}
			}
			next.seq[i] = 1
			if k > 0 {
				if next.seq[i] = b.states[k-1].seq[i]; b.rowChanged(&b.states[k-1], &next, i) {
					next.seq[i] = int64(k + 1)
				}
			}
		}
		b.states = append(b.states, next)
	}
}

// change edits texts, which lose a third of their words and gain as many of another text's, and moves half of the
// edges of nodes to neighbours of neighbours.
func (b *bench) change(now *state, k int) {
	n := b.Graph.Len()
	for i := range n {
		r := numeric.NewRand(b.Seed, 'R', numeric.HashString(b.Graph.IDs[i]), uint64(k))
		if b.draw('E', i, k) < b.edit {
			words, other := strings.Fields(now.texts[i]), strings.Fields(b.Graph.Texts[r.IntN(n)])
			kept := words[:0:0]
			for _, w := range words {
				if r.Float64() >= 1.0/3 {
					kept = append(kept, w)
				} else if len(other) > 0 {
					kept = append(kept, other[r.IntN(len(other))])
				}
			}
			now.texts[i] = strings.Join(kept, " ")
		}
		if b.draw('M', i, k) >= b.move {
			continue
		}
		for _, j := range sortedKeys(now.linked[i]) {
			next := sortedKeys(now.linked[j])
			to := next[r.IntN(len(next))]
			if r.Float64() < 0.5 || to == int32(i) {
				continue
			}
			delete(now.linked[i], j)
			delete(now.linked[j], int32(i))
			now.linked[i][to], now.linked[to][int32(i)] = true, true
		}
	}
}

func sortedKeys(m map[int32]bool) []int32 {
	out := make([]int32, 0, len(m))
	for j := range m {
		out = append(out, j)
	}
	slices.Sort(out)
	return out
}

// rowChanged says whether node i's row is another in b than in a.
func (b *bench) rowChanged(old, now *state, i int) bool {
	return old.there[i] != now.there[i] || old.texts[i] != now.texts[i] ||
		!slices.Equal(sortedKeys(old.linked[i]), sortedKeys(now.linked[i]))
}

func (b *bench) printChanges() {
	for k := 1; k < b.generations; k++ {
		var nodes, come, gone, edited, rowsChanged int
		old, now := &b.states[k-1], &b.states[k]
		for i := range now.there {
			switch {
			case now.there[i] && !old.there[i]:
				come++
			case old.there[i] && !now.there[i]:
				gone++
			case now.texts[i] != old.texts[i]:
				edited++
			}
			if now.there[i] {
				nodes++
				if now.seq[i] == int64(k+1) {
					rowsChanged++
				}
			}
		}
		fmt.Printf("cut %d: %d nodes; %d came, %d left, %d edited; %d rows are others\n", k+1, nodes, come, gone,
			edited, rowsChanged)
	}
}

// source is the graph of a state as a build reads it.
func (b *bench) source(k int) generations.Source {
	return generations.Source{Number: int64(k + 1), Each: func(yield func(generation.Row) bool) {
		now := &b.states[k]
		for i, there := range now.there {
			if !there {
				continue
			}
			r := rows.Row{NodeID: b.Graph.IDs[i], Text: now.texts[i], Class: b.Graph.Classes[i]}
			for _, j := range sortedKeys(now.linked[i]) {
				r.Labels = append(r.Labels, b.Graph.IDs[j])
			}
			if !yield(generation.Row{Row: r, Seq: now.seq[i]}) {
				return
			}
		}
	}}
}

// score asks vectors for the edges that the generation of a state has not seen. Nodes that are not there have no edges,
// and so are in no question: these are the questions of generation.json.
func (b *bench) score(k int, vectors []float32, doc *generation.Doc) (eval.LinkScores, error) {
	now := &sparse.Matrix{Cols: b.Graph.Len(), Start: []int64{0}}
	for _, linked := range b.states[k].linked {
		now.Append(sparse.Vector{Index: sortedKeys(linked)})
	}
	known, hidden := fit.HideEdges(&train.Graph{IDs: b.Graph.IDs, Neighbours: now}, doc.Settings)
	return eval.ScoreLinks(vectors, doc.Encoder.Dim, known, hidden, eval.LinkOptions{Seed: doc.Settings.EvalSeed})
}
