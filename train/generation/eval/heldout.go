package eval

import (
	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

const (
	// holdOut is the share of instances held out, of graphs that have at
	// least minHoldOut instances; no more than maxHoldOut.
	holdOut    = 0.05
	minHoldOut = 200
	maxHoldOut = 2000
	// PairsEach is how many neighbours of a held-out instance are compared
	// when an encoder in training is scored.
	PairsEach = 5
)

// HoldOut divides the instances, the nodes with at most maxDegree neighbours
// and at least one, into those to train on and those that validate an encoder in
// training: one in twenty, at most 2,000, none of small graphs. Which is held out is a
// function of its key, the seed and the given coordinates.
func HoldOut(neighbours *sparse.Matrix, keys []uint64, maxDegree int, seed uint64, at ...uint64) (fit, held []int32) {
	var eligible []int32
	for i := range neighbours.Rows {
		if k := len(neighbours.Row(i).Index); k > 0 && k <= maxDegree {
			eligible = append(eligible, int32(i))
		}
	}
	if len(eligible) < minHoldOut {
		return eligible, nil
	}
	share := min(holdOut, float64(maxHoldOut)/float64(len(eligible)))
	at = append(at[:len(at):len(at)], 0)
	for _, i := range eligible {
		at[len(at)-1] = keys[i]
		if r := numeric.NewRand(seed, at...); r.Float64() < share {
			held = append(held, i)
		} else {
			fit = append(fit, i)
		}
	}
	return fit, held
}
