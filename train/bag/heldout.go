package bag

import (
	"math"

	"giantstream/featurize/parallel"
	"giantstream/train/eval"
)

// heldOut is the instances that are not trained on and the pairs that they
// are judged by.
type heldOut struct {
	instances []int32
	pairs     *eval.Pairs
}

// split divides the instances into those to train on and to hold out.
func split(d Data, o Options) (fit []int32, held *heldOut) {
	fit, instances := eval.HoldOut(d.Neighbours, o.MaxDegree, o.Seed, streamHold)
	held = &heldOut{instances: instances}
	if len(instances) > 0 {
		held.pairs = eval.DrawPairs(d.Neighbours, instances, eval.PairsEach, o.Seed, streamCheck)
	}
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
