package xrlinear

import (
	"math"
	"slices"

	"giantstream/featurize/sparse"
)

// Model is a trained XR-Linear. It is immutable and safe for concurrent use.
type Model struct {
	levels []modelLevel
	labels []int32 // node of the last level → label
}

type modelLevel struct {
	start  []int32 // as in level
	chunks []chunk // by parent
}

// children returns the number of children of a parent.
func (l *modelLevel) children(parent int32) int { return int(l.start[parent+1] - l.start[parent]) }

// below appends the children of a parent, whose margins are given.
func (l *modelLevel) below(nodes []node, parent node, margins []float32) []node {
	for k, s := range margins {
		nodes = append(nodes, node{l.start[parent.id] + int32(k), parent.score * hinge(s)})
	}
	return nodes
}

// Weights returns the number of weights of all levels.
func (m *Model) Weights() int {
	n := 0
	for _, l := range m.levels {
		for _, c := range l.chunks {
			n += c.weights()
		}
	}
	return n
}

// Beam says how a query is answered.
type Beam struct {
	Width int // clusters that each level passes on; 0 means 10
	Top   int // labels wanted; 0 means Width
}

func (b Beam) withDefaults() Beam {
	if b.Width <= 0 {
		b.Width = 10
	}
	if b.Top <= 0 {
		b.Top = b.Width
	}
	return b
}

// Prediction is a label and its score, in (0, 1].
type Prediction struct {
	Label int32
	Score float32
}

// Query is the scratch memory of Predict, for one goroutine.
type Query struct {
	scratch scratch
	scores  []float32
	beam    []node
	next    []node
}

// node is a cluster of some level with its score.
type node struct {
	id    int32
	score float32
}

// NewQuery makes scratch memory.
func (m *Model) NewQuery() *Query { return &Query{} }

// Predict appends the labels that score best for features x, best first.
func (m *Model) Predict(q *Query, x sparse.Vector, b Beam, dst []Prediction) []Prediction {
	b = b.withDefaults()
	q.search(m, x, len(m.levels), b.Width, b.Top)
	for _, n := range q.beam {
		dst = append(dst, Prediction{m.labels[n.id], n.score})
	}
	return dst
}

// search leaves the best nodes of the first levels of the model in q.beam,
// best first: last of the last of them, width of the others.
func (q *Query) search(m *Model, x sparse.Vector, levels, width, last int) {
	q.beam = append(q.beam[:0], node{0, 1})
	for t := range levels {
		q.next = q.next[:0]
		l := &m.levels[t]
		for _, parent := range q.beam {
			n := l.children(parent.id)
			if n == 0 {
				continue
			}
			q.scores = slices.Grow(q.scores[:0], n)[:n]
			l.chunks[parent.id].scores(x, &q.scratch, q.scores)
			q.next = l.below(q.next, parent, q.scores)
		}
		keep := width
		if t == levels-1 {
			keep = last
		}
		q.beam, q.next = best(q.next, keep), q.beam
	}
}

// hinge turns a margin into a score in (0, 1]: exp(−max(0, 1 − s)³).
func hinge(s float32) float32 {
	if s >= 1 {
		return 1
	}
	d := float64(1 - s)
	return float32(math.Exp(-d * d * d))
}

// best returns the k nodes with the highest scores, best first, ties to the
// lower number. It reorders nodes.
func best(nodes []node, k int) []node {
	for at := 0; at < len(nodes); at++ {
		n := nodes[at]
		to := min(at, k)
		if at >= k && !better(n, nodes[k-1]) {
			continue
		}
		if at >= k {
			to = k - 1
		}
		for to > 0 && better(n, nodes[to-1]) {
			nodes[to] = nodes[to-1]
			to--
		}
		nodes[to] = n
	}
	return nodes[:min(k, len(nodes))]
}

func better(a, b node) bool { return a.score > b.score || a.score == b.score && a.id < b.id }
