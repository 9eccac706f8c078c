package eval

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/featurize/parallel"
	"giantstream/train"
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
	draw := NewSampler(known.Neighbours, hidden)
	type result struct {
		pos, neg, rank float64
		ok             bool
	}
	results := make([]result, len(hidden))
	parallel.Each(len(hidden), 64, o.Workers, func(_, _, lo, hi int) {
		candidates := make([]int32, 0, o.Negatives)
		for k := lo; k < hi; k++ {
			u, v := hidden[k].Src, hidden[k].Dst
			r := rng.New(o.Seed, uint64(k))
			if r.Uint64()&1 == 1 {
				u, v = v, u
			}
			candidates = draw.Negatives(candidates[:0], u, o.Negatives, &r)
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
