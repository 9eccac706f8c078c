package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"giantstream/featurize/sparse"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

const (
	hiddenShare = 0.1 // of the links, from all generations
	firstShare  = 0.6 // of the nodes, at the beginning
	familyShare = 0.05
	families    = 4 // that are kept back for steps of their own
)

// state is the graph at a moment. Texts and links are those of all nodes, also of those that are not there.
type state struct {
	cut    int64
	there  []bool
	texts  []string
	linked []map[int32]bool // symmetric, with hidden links
	// moved nodes have links that the graph of the folder does not have: nobody is asked about them.
	moved []bool
	seq   []int64 // the cut at which a node's row became what it is
	// family is the number of the family that a node belongs to and comes with, 0 for none.
	family []int
}

func (s *state) clone() *state {
	out := *s
	out.there, out.texts, out.moved, out.seq = slices.Clone(s.there), slices.Clone(s.texts), slices.Clone(s.moved),
		slices.Clone(s.seq)
	out.linked = make([]map[int32]bool, len(s.linked))
	for i, m := range s.linked {
		out.linked[i] = maps.Clone(m)
	}
	return &out
}

// draw is a number in [0, 1) of a node, for one of the uses.
func (b *bench) draw(use rune, i, step int) float64 {
	r := numeric.NewRand(b.seed, uint64(use), numeric.HashString(b.graph.IDs[i]), uint64(step))
	return r.Float64()
}

// isHidden reports whether a link is one of those that nobody learns.
func (b *bench) isHidden(i, j int32) bool {
	first, second := b.graph.IDs[min(i, j)], b.graph.IDs[max(i, j)]
	r := numeric.NewRand(b.seed, 'H', numeric.HashString(first), numeric.HashString(second))
	return r.Float64() < hiddenShare
}

// begin returns the graph of the first generation.
func (b *bench) begin() *state {
	n := b.graph.Len()
	s := &state{cut: 1, there: make([]bool, n), texts: slices.Clone(b.graph.Texts), linked: make([]map[int32]bool, n),
		moved: make([]bool, n), seq: make([]int64, n), family: make([]int, n)}
	for i := range n {
		s.linked[i], s.seq[i] = map[int32]bool{}, 1
	}
	for i := range n {
		for _, j := range b.graph.Neighbours.Row(i).Index {
			s.linked[i][j], s.linked[j][int32(i)] = true, true
		}
	}
	if slices.Contains(b.history, "family") {
		for f := range families {
			b.keepBack(s, f+1)
		}
	}
	for i := range n {
		s.there[i] = s.family[i] == 0 && b.draw('N', i, 0) < firstShare
	}
	return s
}

// keepBack makes a family of the nodes that are nearest to one by links.
func (b *bench) keepBack(s *state, number int) {
	n := len(s.there)
	r := numeric.NewRand(b.seed, 'F', uint64(number))
	want := int(familyShare * float64(n))
	for tries := 0; want > 0 && tries < n; tries++ {
		queue := []int32{int32(r.IntN(n))}
		for len(queue) > 0 && want > 0 {
			i := queue[0]
			if queue = queue[1:]; s.family[i] != 0 {
				continue
			}
			s.family[i] = number
			want--
			queue = append(queue, sortedKeys(s.linked[i])...)
		}
	}
}

// happen is a step of the history.
func (b *bench) happen(s *state, what string, step int) error {
	before := s.clone()
	switch what {
	case "grow":
		b.come(s, 0.1, step)
	case "change":
		b.edit(s, 0.075, step)
	case "family":
		number := 1
		for i := range s.there { // the first that is not there yet
			if s.there[i] && s.family[i] >= number {
				number = s.family[i] + 1
			}
		}
		for i := range s.there {
			s.there[i] = s.there[i] || s.family[i] == number
		}
	case "remove":
		b.leave(s, 0.1, step)
	case "rewire":
		b.rewire(s, 0.1, step)
	case "drift":
		b.leave(s, 0.015, step)
		b.come(s, 0.015, step)
		b.edit(s, 0.01, step)
		b.rewire(s, 0.01, step)
	default:
		return fmt.Errorf("step %q: use grow, change, family, remove, rewire or drift", what)
	}
	s.cut++
	for i := range s.there {
		if s.there[i] != before.there[i] || s.texts[i] != before.texts[i] ||
			!slices.Equal(b.labels(s, i), b.labels(before, i)) {
			s.seq[i] = s.cut
		}
	}
	return nil
}

// come brings nodes that are not there and in no family: a share of all.
func (b *bench) come(s *state, share float64, step int) {
	var away []int
	for i, there := range s.there {
		if !there && s.family[i] == 0 {
			away = append(away, i)
		}
	}
	b.pick(away, share*float64(len(s.there)), 'C', step, func(i int) { s.there[i] = true })
}

// leave takes a share of the nodes away.
func (b *bench) leave(s *state, share float64, step int) {
	here := s.nodes()
	b.pick(here, share*float64(len(here)), 'L', step, func(i int) { s.there[i] = false })
}

// pick picks n of the nodes, for something to do with each.
func (b *bench) pick(nodes []int, n float64, use rune, step int, do func(i int)) {
	order := slices.Clone(nodes)
	slices.SortFunc(order, func(i, j int) int {
		if b.draw(use, i, step) < b.draw(use, j, step) {
			return -1
		}
		return 1
	})
	for _, i := range order[:min(len(order), int(n))] {
		do(i)
	}
}

// edit changes texts, which lose a third of their words and gain as many of a neighbour's.
func (b *bench) edit(s *state, share float64, step int) {
	here := s.nodes()
	b.pick(here, share*float64(len(here)), 'E', step, func(i int) {
		r := numeric.NewRand(b.seed, 'W', numeric.HashString(b.graph.IDs[i]), uint64(step))
		var other []string
		if near := sortedKeys(s.linked[i]); len(near) > 0 {
			other = strings.Fields(b.graph.Texts[near[r.IntN(len(near))]])
		}
		var kept []string
		for _, w := range strings.Fields(s.texts[i]) {
			if r.Float64() >= 1.0/3 {
				kept = append(kept, w)
			} else if len(other) > 0 {
				kept = append(kept, other[r.IntN(len(other))])
			}
		}
		s.texts[i] = strings.Join(kept, " ")
	})
}

// rewire moves half of the links of nodes to neighbours of neighbours.
func (b *bench) rewire(s *state, share float64, step int) {
	here := s.nodes()
	b.pick(here, share*float64(len(here)), 'M', step, func(i int) {
		r := numeric.NewRand(b.seed, 'T', numeric.HashString(b.graph.IDs[i]), uint64(step))
		for _, j := range sortedKeys(s.linked[i]) {
			next := sortedKeys(s.linked[j])
			to := next[r.IntN(len(next))]
			if r.Float64() < 0.5 || to == int32(i) {
				continue
			}
			delete(s.linked[i], j)
			delete(s.linked[j], int32(i))
			s.linked[i][to], s.linked[to][int32(i)] = true, true
			s.moved[i], s.moved[j], s.moved[to] = true, true, true
		}
	})
}

func (s *state) nodes() (here []int) {
	for i, there := range s.there {
		if there {
			here = append(here, i)
		}
	}
	return here
}

// labels are the links of a node that generations are shown.
func (b *bench) labels(s *state, i int) (out []int32) {
	for _, j := range sortedKeys(s.linked[i]) {
		if s.there[i] && s.there[j] && !b.isHidden(int32(i), j) {
			out = append(out, j)
		}
	}
	return out
}

// source is the graph of a state as a build reads it.
func (b *bench) source(s *state) cutSource {
	return cutSource{number: s.cut, each: func(yield func(generation.Row) bool) {
		for i, there := range s.there {
			if !there {
				continue
			}
			r := rows.Row{NodeID: b.graph.IDs[i], Text: s.texts[i], Class: b.graph.Classes[i]}
			for _, j := range b.labels(s, i) {
				r.Labels = append(r.Labels, b.graph.IDs[j])
			}
			if !yield(generation.Row{Row: r, Seq: s.seq[i]}) {
				return
			}
		}
	}}
}

// exam is what generations of a state are asked: the hidden links between nodes whose links have not been moved, and
// classes. A node that is not there has neither.
func (b *bench) exam(s *state) (known *train.Graph, hidden []eval.Edge, classes []string) {
	adjacency := &sparse.Matrix{Cols: b.graph.Len(), Start: []int64{0}}
	classes = make([]string, b.graph.Len())
	for i := range s.there {
		adjacency.Append(sparse.Vector{Index: b.labels(s, i)})
		if !s.there[i] {
			continue
		}
		classes[i] = b.graph.Classes[i]
		for _, j := range sortedKeys(s.linked[i]) {
			if int32(i) < j && s.there[j] && !s.moved[i] && !s.moved[j] && b.isHidden(int32(i), j) {
				hidden = append(hidden, eval.Edge{Src: int32(i), Dst: j})
			}
		}
	}
	return &train.Graph{IDs: b.graph.IDs, Neighbours: adjacency}, hidden, classes
}

func sortedKeys(m map[int32]bool) []int32 { return slices.Sorted(maps.Keys(m)) }
