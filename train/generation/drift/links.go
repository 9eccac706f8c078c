package drift

import (
	"slices"
	"strings"

	"giantstream/train/numeric"
)

const (
	// sampledEdges is how many edges are scored.
	sampledEdges = 1024
	// poolSize is how many nodes of the cut, drawn by degree, are negatives, and negatives how many an end is asked.
	poolSize  = 1024
	negatives = 8
)

// edge is one between nodes a and b, a < b. stated says which of the two has it in its row.
type edge struct {
	ends   [2]string
	stated [2]bool
}

// links is a sample of edges, and the embeddings of their ends.
type links struct {
	edges *lowest[*edge]
	ends  map[string]*end
}

type end struct {
	vector []float32 // nil as long as it is not known, and for a text without one
	edges  []uint64
}

func newLinks() *links { return &links{newLowest[*edge](sampledEdges), map[string]*end{}} }

// state notes that the row of a node has an edge to another.
func (l *links) state(hash uint64, node, other string) {
	e, has := l.edges.values[hash]
	if !has {
		if !l.edges.admits(hash) {
			return
		}
		e = &edge{ends: [2]string{strings.Clone(min(node, other)), strings.Clone(max(node, other))}}
		for _, id := range e.ends {
			if l.ends[id] == nil {
				l.ends[id] = &end{}
			}
			l.ends[id].edges = append(l.ends[id].edges, hash)
		}
		if gone, left := l.edges.put(hash, e); left {
			l.forget(l.hashOf(gone), gone)
		}
	}
	e.stated[e.side(node)] = true
}

func (e *edge) side(node string) int {
	if e.ends[0] == node {
		return 0
	}
	return 1
}

func (l *links) hashOf(e *edge) uint64 {
	return edgeHash(numeric.HashString(e.ends[0]), numeric.HashString(e.ends[1]))
}

// forget takes an edge that has left the sample from its ends.
func (l *links) forget(hash uint64, e *edge) {
	for _, id := range e.ends {
		x := l.ends[id]
		if x == nil {
			continue
		}
		x.edges = slices.DeleteFunc(x.edges, func(h uint64) bool { return h == hash })
		if len(x.edges) == 0 {
			delete(l.ends, id)
		}
	}
}

// restate takes back the edges that a node's row has no more; labels ascend.
func (l *links) restate(node string, labels []string) {
	x := l.ends[node]
	if x == nil {
		return
	}
	for _, hash := range slices.Clone(x.edges) {
		e := l.edges.values[hash]
		side := e.side(node)
		if _, still := slices.BinarySearch(labels, e.ends[1-side]); still {
			continue
		}
		e.stated[side] = false
		if !e.stated[1-side] || len(labels) == 0 {
			l.edges.remove(hash)
			l.forget(hash, e)
		}
	}
}

// negative is a node that edges are compared with.
type negative struct {
	id     string
	vector []float32
}

// auc returns the share of the negatives that the true end of an edge beats, and of how many edges. Half of the
// negatives come from the pool, half are ends of other edges of the sample: of a subject that the embeddings do not
// know, all ends may be far from what they know, and yet not be told apart.
func (l *links) auc(pool []negative) Measure {
	type scored struct {
		hash uint64
		ends [2]negative
	}
	var edges []scored
	for hash, e := range l.edges.ascending {
		s := scored{hash: hash}
		for side, id := range e.ends {
			s.ends[side] = negative{id, l.ends[id].vector}
		}
		if s.ends[0].vector != nil && s.ends[1].vector != nil {
			edges = append(edges, s)
		}
	}
	if len(pool) == 0 {
		return Measure{Cases: len(edges)}
	}
	var sum float64
	for _, s := range edges {
		won, asked := 0.0, 0
		for side, query := range s.ends {
			truth := s.ends[1-side]
			positive := numeric.Dot(query.vector, truth.vector)
			for j := range uint64(negatives) {
				at := hashOf(hashNegative, s.hash, uint64(side), j)
				n := pool[at%uint64(len(pool))]
				if j%2 == 0 {
					n = edges[at/2%uint64(len(edges))].ends[at%2]
				}
				if n.vector == nil || n.id == query.id || n.id == truth.id {
					continue
				}
				asked++
				switch score := numeric.Dot(query.vector, n.vector); {
				case score < positive:
					won++
				case score == positive:
					won += 0.5
				}
			}
		}
		sum += won / float64(max(1, asked))
	}
	return mean(sum, len(edges))
}
