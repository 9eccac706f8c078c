package eval

import (
	"context"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
	"giantstream/train/objectives/trainer"
)

// Pairs score embeddings while an encoder is in training: held-out instances,
// each with a few of its neighbours and as many nodes, drawn by degree, that
// are none. Only the nodes of pairs need to be embedded.
type Pairs struct {
	// Nodes are all ends of pairs.
	Nodes              []int32
	positive, negative [][2]int32 // indices into Nodes
}

// DrawPairs draws at most each neighbours of every instance, a function of its key, the seed
// and the given coordinates. It returns nil if there is no pair to compare: where everything is linked,
// no node is none of an instance's neighbours.
func DrawPairs(neighbours *sparse.Matrix, keys []uint64, instances []int32, each int, seed uint64,
	at ...uint64) *Pairs {
	p := &Pairs{}
	sampler := NewSampler(neighbours, nil)
	index := map[int32]int32{}
	node := func(i int32) int32 {
		k, ok := index[i]
		if !ok {
			k = int32(len(p.Nodes))
			index[i] = k
			p.Nodes = append(p.Nodes, i)
		}
		return k
	}
	at = append(at[:len(at):len(at)], 0)
	for _, i := range instances {
		at[len(at)-1] = keys[i]
		r := numeric.NewRand(seed, at...)
		labels := append([]int32(nil), neighbours.Row(int(i)).Index...)
		r.Shuffle(labels)
		labels = labels[:min(len(labels), each)]
		others := sampler.Negatives(nil, i, len(labels), &r)
		for k := range others {
			p.positive = append(p.positive, [2]int32{node(i), node(labels[k])})
			p.negative = append(p.negative, [2]int32{node(i), node(others[k])})
		}
	}
	if len(p.positive) == 0 {
		return nil
	}
	return p
}

// Validate returns a function that embeds Nodes, in embeddings of dimension dim, and returns
// the AUC.
func (p *Pairs) Validate(dim int) trainer.Validate {
	return func(_ context.Context, embed trainer.Embed) (float64, error) {
		z := make([]float32, len(p.Nodes)*dim)
		if err := embed(p.Nodes, z); err != nil {
			return 0, err
		}
		return p.AUC(z, dim), nil
	}
}

// AUC is how surely an instance is nearer to a neighbour than to another node. z holds the embeddings
// of Nodes, dim numbers and of length 1 each.
func (p *Pairs) AUC(z []float32, dim int) float64 {
	cosines := func(pairs [][2]int32) []float64 {
		out := make([]float64, len(pairs))
		for k, ends := range pairs {
			a, b := int(ends[0])*dim, int(ends[1])*dim
			out[k] = float64(numeric.Dot(z[a:a+dim], z[b:b+dim]))
		}
		return out
	}
	a, _ := AUC(cosines(p.positive), cosines(p.negative))
	return a
}
