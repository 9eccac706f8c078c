package bag

import (
	"math"

	"giantstream/featurize/parallel"
	"giantstream/train/eval"
	"giantstream/train/internal/rng"
	"giantstream/train/internal/vector"
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
	// nodes are all ends of pairs, ascending.
	nodes              []int32
	positive, negative [][2]int32 // indices into nodes
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
	held.pair(d, o.Seed)
	return fit, held
}

// pair draws for each held-out instance a few neighbours and as many nodes,
// drawn by degree, that are not neighbours.
func (h *heldOut) pair(d Data, seed uint64) {
	sampler := eval.NewSampler(d.Neighbours, nil)
	index := map[int32]int32{}
	node := func(i int32) int32 {
		k, ok := index[i]
		if !ok {
			k = int32(len(h.nodes))
			index[i] = k
			h.nodes = append(h.nodes, i)
		}
		return k
	}
	for _, i := range h.instances {
		r := rng.New(seed, streamCheck, uint64(i))
		labels := append([]int32(nil), d.Neighbours.Row(int(i)).Index...)
		r.Shuffle(labels)
		labels = labels[:min(len(labels), pairsEach)]
		others := sampler.Negatives(nil, i, len(labels), &r)
		for k := range others {
			h.positive = append(h.positive, [2]int32{node(i), node(labels[k])})
			h.negative = append(h.negative, [2]int32{node(i), node(others[k])})
		}
	}
}

// auc is how surely a held-out instance's embedding is nearer to a
// neighbour's than to another node's; NaN when nothing is held out.
func (h *heldOut) auc(d Data, t *table, workers int) float64 {
	if len(h.positive) == 0 {
		return math.NaN()
	}
	z := embedNodes(d, t, h.nodes, workers)
	cosines := func(pairs [][2]int32) []float64 {
		out := make([]float64, len(pairs))
		for k, p := range pairs {
			a, b := int(p[0])*t.dim, int(p[1])*t.dim
			out[k] = float64(vector.Dot(z[a:a+t.dim], z[b:b+t.dim]))
		}
		return out
	}
	a, _ := eval.AUC(cosines(h.positive), cosines(h.negative))
	return a
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
