package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"giantstream/sink/rows"
	"giantstream/train/generation"
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
	r := numeric.NewRand(b.seed, uint64(use), numeric.HashString(b.graph.IDs[i]), uint64(k))
	return r.Float64()
}

// evolve makes the states. Another part of the nodes is away in each. Edits and moves stay.
func (b *bench) evolve() {
	n := b.graph.Len()
	now := state{there: make([]bool, n), texts: slices.Clone(b.graph.Texts), linked: make([]map[int32]bool, n),
		seq: make([]int64, n)}
	for i := range n {
		now.linked[i] = map[int32]bool{}
	}
	for i := range n {
		for _, j := range b.graph.Neighbours.Row(i).Index {
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
	n := b.graph.Len()
	for i := range n {
		r := numeric.NewRand(b.seed, 'R', numeric.HashString(b.graph.IDs[i]), uint64(k))
		if b.draw('E', i, k) < b.edit {
			words, other := strings.Fields(now.texts[i]), strings.Fields(b.graph.Texts[r.IntN(n)])
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

// source is the graph at a cut as a build reads it.
type source struct {
	*bench
	state int
}

func (s source) Cut() map[int]int64 { return map[int]int64{0: int64(s.state + 1)} }
func (s source) Hash() string       { return strconv.Itoa(s.state + 1) }

// Rows implements generation.Source.
func (s source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		now := &s.states[s.state]
		for i, there := range now.there {
			if !there {
				continue
			}
			r := rows.Row{NodeID: s.graph.IDs[i], Text: now.texts[i]}
			if s.graph.Classes != nil {
				r.Class = s.graph.Classes[i]
			}
			for _, j := range sortedKeys(now.linked[i]) {
				r.Labels = append(r.Labels, s.graph.IDs[j])
			}
			if !yield(generation.Row{Row: r, Seq: now.seq[i]}, nil) {
				return
			}
		}
	}
}
