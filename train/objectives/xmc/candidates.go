package xmc

import (
	"math"
	"slices"

	"giantstream/featurize/sparse"
)

const (
	// fullLevel is the number of clusters up to which all are candidates.
	fullLevel = 128
	// defaultMatched is how many of the best-scored clusters pass their
	// children on as matcher-aware negatives.
	defaultMatched = 10
)

// candidates appends, ascending, the clusters of level t to score for an instance with the given
// positives, which are empty in prediction. above are the matched clusters of the level above;
// candidates uses its memory as scratch.
func (p *Problem) candidates(dst []int32, t int, positives []int32, above []int32) []int32 {
	l := &p.Levels[t]
	if p.AllCandidates(t) {
		for c := range int32(l.Clusters) {
			dst = append(dst, c)
		}
		return dst
	}
	for _, c := range positives {
		above = append(above, l.Parent[c])
	}
	slices.Sort(above)
	for _, parent := range slices.Compact(above) {
		dst = append(dst, l.childrenOf(parent)...)
	}
	slices.Sort(dst)
	return dst
}

// AllCandidates reports whether all clusters of level t are always candidates.
func (p *Problem) AllCandidates(t int) bool { return t == 0 || p.Levels[t].Clusters <= fullLevel }

// top appends the k candidates with the highest scores, best first, ties to
// the lower cluster. A score that is NaN is the lowest.
func top(dst []int32, candidates []int32, scores []float32, k int) []int32 {
	from := len(dst)
	kept := make([]float32, 0, k)
	for i, s := range scores {
		if s != s {
			s = float32(math.Inf(-1))
		}
		if len(kept) == k && s <= kept[k-1] {
			continue
		}
		at := len(kept)
		for at > 0 && kept[at-1] < s {
			at--
		}
		if len(kept) == k {
			kept, dst = kept[:k-1], dst[:from+k-1]
		}
		kept = slices.Insert(kept, at, s)
		dst = slices.Insert(dst, from+at, candidates[i])
	}
	return dst
}

// shares writes to q the share of the instance's labels that each candidate
// holds and reports whether any does. Both lists ascend.
func shares(q []float32, candidates []int32, positives sparse.Vector) bool {
	var sum float32
	for _, v := range positives.Value {
		sum += v
	}
	at := 0
	for i, c := range candidates {
		q[i] = 0
		for at < len(positives.Index) && positives.Index[at] < c {
			at++
		}
		if at < len(positives.Index) && positives.Index[at] == c {
			q[i] = positives.Value[at] / sum
		}
	}
	return sum > 0
}
