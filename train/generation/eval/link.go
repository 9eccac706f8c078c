package eval

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/internal/parallel"
	"giantstream/train"
	"giantstream/train/numeric"
)

// ErrNoLinks: no hidden edge could be scored.
var ErrNoLinks = errors.New("no hidden edge to score; hide a larger share or use a larger graph")

// LinkOptions says how hidden links are ranked.
type LinkOptions struct {
	Seed uint64
	// Negatives per hidden edge for MRR and Hits@10; 0 means 100.
	Negatives int
	// FromSource makes an edge's Src its query; else chance chooses the end.
	FromSource bool
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
	scores, err := ScoreLinks(emb, dim, known, hidden, o)
	if err != nil {
		return LinkMetrics{}, err
	}
	return scores.Metrics(), nil
}

// LinkScore is the outcome for one hidden edge.
type LinkScore struct {
	Query int32 // the end that was asked about
	// Positive and Negative are the cosines of the query with the edge's other end and with the first
	// negative.
	Positive, Negative float64
	// Rank of the other end among the negatives, from 1, ties half.
	Rank float64
}

// LinkScores are the outcomes for some hidden edges.
type LinkScores []LinkScore

// ScoreLinks scores each hidden edge. It returns ErrNoLinks if no edge could be scored.
func ScoreLinks(emb []float32, dim int, known *train.Graph, hidden []Edge, o LinkOptions) (LinkScores, error) {
	n := known.Len()
	if dim < 1 || len(emb) != n*dim {
		return nil, fmt.Errorf("evaluate links: %d numbers are not %d embeddings of dimension %d",
			len(emb), n, dim)
	}
	if o.Negatives == 0 {
		o.Negatives = 100
	}
	unit := normalized(emb, dim)
	draw := NewSampler(known.Neighbours, hidden)
	scores := make(LinkScores, len(hidden))
	parallel.ForEach(len(hidden), 64, o.Workers, func(_, _, lo, hi int) {
		candidates := make([]int32, 0, o.Negatives)
		for k := lo; k < hi; k++ {
			u, v := hidden[k].Src, hidden[k].Dst
			r := numeric.NewRand(o.Seed, uint64(k))
			if !o.FromSource && r.Uint64()&1 == 1 {
				u, v = v, u
			}
			candidates = draw.Negatives(candidates[:0], u, o.Negatives, &r)
			if len(candidates) == 0 {
				continue // its rank stays 0
			}
			q := unit[int(u)*dim : int(u+1)*dim]
			cosine := func(x int32) float64 { return float64(numeric.Dot(q, unit[int(x)*dim:int(x+1)*dim])) }
			s := LinkScore{Query: u, Positive: cosine(v), Rank: 1}
			for i, x := range candidates {
				c := cosine(x)
				if i == 0 {
					s.Negative = c
				}
				switch {
				case c > s.Positive:
					s.Rank++
				case c == s.Positive:
					s.Rank += 0.5
				}
			}
			scores[k] = s
		}
	})
	scores = slices.DeleteFunc(scores, func(s LinkScore) bool { return s.Rank == 0 })
	if len(scores) == 0 {
		return nil, fmt.Errorf("evaluate links: %w", ErrNoLinks)
	}
	return scores, nil
}

// Metrics sums up the scores.
func (s LinkScores) Metrics() LinkMetrics {
	m := LinkMetrics{Edges: len(s)}
	if len(s) == 0 {
		return m
	}
	pos, neg := make([]float64, len(s)), make([]float64, len(s))
	var rr, rr2, hits float64
	for k, one := range s {
		pos[k], neg[k] = one.Positive, one.Negative
		rr += 1 / one.Rank
		rr2 += 1 / (one.Rank * one.Rank)
		if one.Rank <= 10 {
			hits++
		}
	}
	m.AUC, m.AUCStdErr = AUC(pos, neg)
	m.MRR, m.MRRStdErr = meanAndError(rr, rr2, m.Edges)
	m.Hits10, m.Hits10StdErr = meanAndError(hits, hits, m.Edges)
	return m
}

// Where returns the scores of the edges whose query is in a group.
func (s LinkScores) Where(group []uint8, k int) (out LinkScores) {
	for _, one := range s {
		if int(group[one.Query]) == k {
			out = append(out, one)
		}
	}
	return out
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
