package bag

import (
	"math"

	"giantstream/featurize/parallel"
	"giantstream/train/eval"
	"giantstream/train/internal/rng"
)

const (
	// holdOut is the share of instances held out, of graphs that have at
	// least minHoldOut instances; no more than maxHoldOut.
	holdOut    = 0.05
	minHoldOut = 200
	maxHoldOut = 2000
	// pairsEach is how many neighbours of a held-out instance are scored.
	pairsEach = 5
)

// heldOut is the instances that are not trained on and the pairs that they
// are judged by.
type heldOut struct {
	instances []int32
	pairs     *eval.Pairs
}

// split divides eligible instances into those to train on and to hold out.
func split(d Data, o Options) (fit []int32, held *heldOut) {
	var eligible []int32
	for i := range d.Neighbours.Rows {
		if k := len(d.Neighbours.Row(i).Index); k > 0 && k <= o.MaxDegree {
			eligible = append(eligible, int32(i))
		}
	}
	held = &heldOut{}
	if len(eligible) < minHoldOut {
		return eligible, held
	}
	share := min(holdOut, float64(maxHoldOut)/float64(len(eligible)))
	for _, i := range eligible {
		if r := rng.New(o.Seed, streamHold, uint64(i)); r.Float64() < share {
			held.instances = append(held.instances, i)
		} else {
			fit = append(fit, i)
		}
	}
	held.pairs = eval.DrawPairs(d.Neighbours, held.instances, pairsEach, o.Seed, streamCheck)
	return fit, held
}

// auc is how surely a held-out instance's embedding is nearer to a
// neighbour's than to another node's; NaN when nothing is held out.
func (h *heldOut) auc(d Data, t *table, workers int) float64 {
	if len(h.instances) == 0 {
		return math.NaN()
	}
	return h.pairs.AUC(embedNodes(d, t, h.pairs.Nodes, workers), t.dim)
}

// embedNodes returns the embeddings of nodes, one row each.
func embedNodes(d Data, t *table, nodes []int32, workers int) []float32 {
	z := make([]float32, len(nodes)*t.dim)
	parallel.Each(len(nodes), 32, workers, func(_, _, lo, hi int) {
		for k := lo; k < hi; k++ {
			t.embed(d.Features.Row(int(nodes[k])), z[k*t.dim:(k+1)*t.dim])
		}
	})
	return z
}
