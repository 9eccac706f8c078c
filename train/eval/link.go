package eval

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/train"
	"giantstream/train/internal/parallel"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
)

// ErrNoLinks: no hidden edge could be scored.
var ErrNoLinks = errors.New("no hidden edge to score; hide a larger share or use a larger graph")

// LinkOptions says how hidden links are ranked.
type LinkOptions struct {
	Seed uint64
	// Negatives per hidden edge for MRR and Hits@10; 0 means 100.
	Negatives int
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

// LinkMetrics is how well embeddings predict hidden links. The standard
// errors are those of the sample of edges, not of training.
type LinkMetrics struct {
	// Edges is the number of hidden edges scored.
	Edges        int     `json:"edges"`
	AUC          float64 `json:"auc"`
	AUCStdErr    float64 `json:"auc_stderr"`
	MRR          float64 `json:"mrr"`
	MRRStdErr    float64 `json:"mrr_stderr"`
	Hits10       float64 `json:"hits_at_10"`
	Hits10StdErr float64 `json:"hits_at_10_stderr"`
}

// Links scores hidden edges by the cosine of their ends. emb is n×dim, one
// row per node of known; the package documentation describes the protocol.
func Links(emb []float32, dim int, known *train.Graph, hidden []Edge, o LinkOptions) (LinkMetrics, error) {
	n := known.Len()
	if dim < 1 || len(emb) != n*dim {
		return LinkMetrics{}, fmt.Errorf("evaluate links: %d numbers are not %d embeddings of dimension %d", len(emb), n, dim)
	}
	if o.Negatives == 0 {
		o.Negatives = 100
	}
	unit := normalized(emb, dim)
	draw := newSampler(known, hidden)
	type result struct {
		pos, neg, rank float64
		ok             bool
	}
	results := make([]result, len(hidden))
	parallel.Each(len(hidden), 64, o.Workers, func(_, lo, hi int) {
		candidates := make([]int32, 0, o.Negatives)
		for k := lo; k < hi; k++ {
			u, v := hidden[k].Src, hidden[k].Dst
			r := rng.New(o.Seed, uint64(k))
			if r.Uint64()&1 == 1 {
				u, v = v, u
			}
			candidates = draw.negatives(candidates[:0], u, o.Negatives, &r)
			if len(candidates) == 0 {
				continue
			}
			q := unit[int(u)*dim : int(u+1)*dim]
			score := func(x int32) float64 { return float64(vector.Dot(q, unit[int(x)*dim:int(x+1)*dim])) }
			pos, rank := score(v), 1.0
			for i, x := range candidates {
				s := score(x)
				if i == 0 {
					results[k].neg = s
				}
				switch {
				case s > pos:
					rank++
				case s == pos:
					rank += 0.5
				}
			}
			results[k].pos, results[k].rank, results[k].ok = pos, rank, true
		}
	})

	var m LinkMetrics
	var pos, neg []float64
	var rr, rr2, hits float64
	for _, r := range results {
		if !r.ok {
			continue
		}
		pos, neg = append(pos, r.pos), append(neg, r.neg)
		rr += 1 / r.rank
		rr2 += 1 / (r.rank * r.rank)
		if r.rank <= 10 {
			hits++
		}
	}
	m.Edges = len(pos)
	if m.Edges == 0 {
		return m, fmt.Errorf("evaluate links: %w", ErrNoLinks)
	}
	m.AUC, m.AUCStdErr = AUC(pos, neg)
	m.MRR, m.MRRStdErr = meanAndError(rr, rr2, m.Edges)
	m.Hits10, m.Hits10StdErr = meanAndError(hits, hits, m.Edges)
	return m, nil
}

// AUC is the probability that a random positive scores above a random
// negative, ties half, and its standard error (DeLong et al. 1988).
func AUC(pos, neg []float64) (auc, stderr float64) {
	if len(pos) == 0 || len(neg) == 0 {
		return math.NaN(), math.NaN()
	}
	p, q := slices.Sorted(slices.Values(pos)), slices.Sorted(slices.Values(neg))
	// Placement values: the share of the other set that each member beats.
	mean, vp := placements(p, q)
	_, vq := placements(q, p)
	return mean, math.Sqrt(vp/float64(len(p)) + vq/float64(len(q)))
}

// placements returns mean and variance over a of the share of b below it;
// both ascend.
func placements(a, b []float64) (mean, variance float64) {
	var sum, squares float64
	below, upto := 0, 0
	for _, x := range a {
		for below < len(b) && b[below] < x {
			below++
		}
		for upto < len(b) && b[upto] <= x {
			upto++
		}
		s := float64(below+upto) / 2 / float64(len(b))
		sum += s
		squares += s * s
	}
	mean = sum / float64(len(a))
	if len(a) > 1 {
		variance = max(0, (squares-sum*mean)/float64(len(a)-1))
	}
	return mean, variance
}

// sampler draws negatives by degree.
type sampler struct {
	known *train.Graph
	// cumulative[i] is the degree of nodes 0..i in the known graph.
	cumulative []int64
	hidden     map[int32][]int32
}

func newSampler(known *train.Graph, hidden []Edge) *sampler {
	s := &sampler{known: known, cumulative: make([]int64, known.Len()), hidden: make(map[int32][]int32)}
	// In a directed graph a hub may have no out-edges, so count both ends.
	degree := make([]int64, known.Len())
	for i := range degree {
		for _, j := range known.Neighbours.Row(i).Index {
			degree[i]++
			degree[j]++
		}
	}
	var sum int64
	for i, d := range degree {
		sum += d
		s.cumulative[i] = sum
	}
	for _, e := range hidden {
		s.hidden[e.Src] = append(s.hidden[e.Src], e.Dst)
		s.hidden[e.Dst] = append(s.hidden[e.Dst], e.Src)
	}
	return s
}

// negatives appends up to k nodes that are not u or its neighbours; fewer when
// they are too hard to find (u is linked to nearly all).
func (s *sampler) negatives(dst []int32, u int32, k int, r *rng.Source) []int32 {
	if len(s.cumulative) == 0 {
		return dst
	}
	total := s.cumulative[len(s.cumulative)-1]
	if total == 0 {
		return dst
	}
	for attempt := 0; attempt < 20*k && len(dst) < k; attempt++ {
		at, _ := slices.BinarySearch(s.cumulative, int64(r.IntN(int(total)))+1)
		x := int32(at)
		if x == u || Linked(s.known, int(u), x) || Linked(s.known, int(x), u) || slices.Contains(s.hidden[u], x) {
			continue
		}
		dst = append(dst, x)
	}
	return dst
}
