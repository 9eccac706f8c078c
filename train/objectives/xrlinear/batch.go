package xrlinear

import (
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
)

const (
	// together is how many queries are searched together. It is large enough that queries which
	// meet at a parent find its weights in the cache. With 60 children and a beam of 10 their
	// scores take 20 MB.
	together = 8192
	// visit is how many queries a goroutine scores at one parent at a time.
	visit = 128
)

// PredictAll answers every row of x as Predict does.
func (m *Model) PredictAll(x *sparse.Matrix, b Beam, workers int) [][]Prediction {
	b = b.withDefaults()
	out := make([][]Prediction, x.Rows)
	m.searchAll(x, len(m.levels), b.Width, b.Top, workers, func(t, i int, best []node) {
		if t < len(m.levels)-1 {
			return
		}
		out[i] = make([]Prediction, 0, len(best))
		for _, n := range best {
			out[i] = append(out[i], Prediction{m.labels[n.id], n.score})
		}
	})
	return out
}

// searchAll searches for all rows of x, parent by parent instead of query by query. It calls found
// with the best nodes of each row at each level, which are those that Query.search finds. Calls of
// found for different rows may run at the same time.
func (m *Model) searchAll(x *sparse.Matrix, levels, width, last, workers int, found func(level, row int, best []node)) {
	workers = parallel.Workers(workers)
	queries := make([]Query, workers)
	for from := 0; from < x.Rows; from += together {
		c := queryBatch{x: x, from: from, beams: make([][]node, min(together, x.Rows-from))}
		for q := range c.beams {
			c.beams[q] = []node{{0, 1}}
		}
		for t := range levels {
			keep := width
			if t == levels-1 {
				keep = last
			}
			l := &m.levels[t]
			c.gather(l)
			parallel.ForEach(len(c.visits), 1, workers,
				func(w, _, v, _ int) { c.visit(l, c.visits[v], &queries[w].scratch) })
			parallel.ForEach(len(c.beams), 64, workers, func(w, _, lo, hi int) {
				for q := lo; q < hi; q++ {
					c.beams[q] = append(c.beams[q][:0], c.best(l, q, keep, &queries[w])...)
					found(t, from+q, c.beams[q])
				}
			})
		}
	}
}

// queryBatch is the state of queries that are searched together.
type queryBatch struct {
	x      *sparse.Matrix
	from   int      // row of the first of them
	beams  [][]node // by query: the parents it is at
	scores []float32
	// start is where the scores below a query's first parent begin. The scores below its other
	// parents follow.
	start []int
	// pairs are queries and where their scores begin, by parent.
	pairs  []pair
	visits []visitors
}

type pair struct{ query, scores int32 }

// visitors are the pairs [lo, hi), all at one parent.
type visitors struct{ parent, lo, hi int32 }

// gather lists, for each parent, the queries that are at it.
func (c *queryBatch) gather(l *modelLevel) {
	first := make([]int32, len(l.chunks)+1)
	total := 0
	c.start = c.start[:0]
	for _, beam := range c.beams {
		c.start = append(c.start, total)
		for _, n := range beam {
			first[n.id+1]++
			total += l.children(n.id)
		}
	}
	for p := range l.chunks {
		first[p+1] += first[p]
	}
	c.scores = slices.Grow(c.scores[:0], total)[:total]
	c.pairs = slices.Grow(c.pairs[:0], int(first[len(l.chunks)]))[:first[len(l.chunks)]]
	next := slices.Clone(first)
	for q, beam := range c.beams {
		at := c.start[q]
		for _, n := range beam {
			c.pairs[next[n.id]] = pair{int32(q), int32(at)}
			next[n.id]++
			at += l.children(n.id)
		}
	}
	c.visits = c.visits[:0]
	for p := range l.chunks {
		for lo := first[p]; lo < first[p+1] && l.children(int32(p)) > 0; lo += visit {
			c.visits = append(c.visits, visitors{int32(p), lo, min(lo+visit, first[p+1])})
		}
	}
}

// visit scores a parent's children for the queries of v.
func (c *queryBatch) visit(l *modelLevel, v visitors, s *scratch) {
	children := l.children(v.parent)
	for _, p := range c.pairs[v.lo:v.hi] {
		l.chunks[v.parent].scores(c.x.Row(c.from+int(p.query)), s, c.scores[p.scores:int(p.scores)+children])
	}
}

// best returns the best nodes below a query's parents, in s's memory.
func (c *queryBatch) best(l *modelLevel, q, keep int, s *Query) []node {
	s.next = s.next[:0]
	at := c.start[q]
	for _, parent := range c.beams[q] {
		n := l.children(parent.id)
		s.next = l.below(s.next, parent, c.scores[at:at+n])
		at += n
	}
	return best(s.next, keep)
}
