package eval

import (
	"errors"
	"math"
	"slices"
)

// ErrNotPaired: two lists of scores are not of the same edges.
var ErrNotPaired = errors.New("the scores are not of the same hidden edges")

// LinkDifference is by how much the first of two embeddings predicts hidden links better. The same questions are asked
// of both, so that the standard errors are far below those of either.
type LinkDifference struct {
	Edges     int     `json:"edges"`
	AUC       float64 `json:"auc"`
	AUCStdErr float64 `json:"auc_stderr"`
	MRR       float64 `json:"mrr"`
	MRRStdErr float64 `json:"mrr_stderr"`
}

// Difference compares what two embeddings score on the same edges with the same options. The error of the AUC is that
// of correlated curves (DeLong et al. 1988).
func Difference(a, b LinkScores) (LinkDifference, error) {
	n := len(a)
	if n == 0 || n != len(b) {
		return LinkDifference{}, ErrNotPaired
	}
	var rr, rr2 float64
	for k := range a {
		if a[k].Query != b[k].Query {
			return LinkDifference{}, ErrNotPaired
		}
		d := 1/a[k].Rank - 1/b[k].Rank
		rr, rr2 = rr+d, rr2+d*d
	}
	d := LinkDifference{Edges: n}
	d.MRR, d.MRRStdErr = meanAndError(rr, rr2, n)
	above, below := a.placements()
	otherAbove, otherBelow := b.placements()
	auc, byPositive := meanDifference(above, otherAbove)
	_, byNegative := meanDifference(below, otherBelow)
	d.AUC, d.AUCStdErr = auc, math.Hypot(byPositive, byNegative)
	return d, nil
}

// RankGain is by how much the first of two rankings of the same edges is better, in the share of the negatives that are
// below and in 1/rank together, and its standard error. Each edge is compared with all its negatives, so that weaker
// evidence counts than by Difference.
func RankGain(a, b LinkScores, negatives int) (mean, stdErr float64) {
	var sum, squares float64
	for k := range a {
		d := (b[k].Rank-a[k].Rank)/float64(negatives) + 1/a[k].Rank - 1/b[k].Rank
		sum, squares = sum+d, squares+float64(d*d)
	}
	return meanAndError(sum, squares, len(a))
}

// placements returns what share of the negatives each positive is above, and what share of the positives each negative
// is below.
func (s LinkScores) placements() (above, below []float64) {
	pos, neg := make([]float64, len(s)), make([]float64, len(s))
	for k, one := range s {
		pos[k], neg[k] = one.Positive, one.Negative
	}
	slices.Sort(pos)
	slices.Sort(neg)
	above, below = make([]float64, len(s)), make([]float64, len(s))
	for k, one := range s {
		above[k], below[k] = shareBelow(neg, one.Positive), 1-shareBelow(pos, one.Negative)
	}
	return above, below
}

// shareBelow is the share of ascending numbers that are below x, ties half.
func shareBelow(sorted []float64, x float64) float64 {
	lo, _ := slices.BinarySearch(sorted, x)
	hi, _ := slices.BinarySearch(sorted, math.Nextafter(x, math.Inf(1)))
	return float64(lo+hi) / 2 / float64(len(sorted))
}

// meanDifference returns the mean of a-b, and its standard error.
func meanDifference(a, b []float64) (mean, stderr float64) {
	var sum, squares float64
	for k := range a {
		d := a[k] - b[k]
		sum, squares = sum+d, squares+d*d
	}
	return meanAndError(sum, squares, len(a))
}
