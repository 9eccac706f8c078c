package eval

import (
	"context"
	"math"
	"slices"

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

// Len is how many links are compared.
func (p *Pairs) Len() int { return len(p.positive) }

// AUC is how surely an instance is nearer to a neighbour than to another node. z holds the embeddings
// of Nodes, dim numbers and of length 1 each.
func (p *Pairs) AUC(z []float32, dim int) float64 { return p.Scores(z, dim).AUC() }

// Scores are the cosines of pairs, in their order.
type Scores struct{ positive, negative []float64 }

// Scores compares the embeddings z of Nodes, dim numbers and of length 1 each.
func (p *Pairs) Scores(z []float32, dim int) Scores {
	cosines := func(pairs [][2]int32) []float64 {
		out := make([]float64, len(pairs))
		for k, ends := range pairs {
			a, b := int(ends[0])*dim, int(ends[1])*dim
			out[k] = float64(numeric.Dot(z[a:a+dim], z[b:b+dim]))
		}
		return out
	}
	return Scores{cosines(p.positive), cosines(p.negative)}
}

// AUC is how surely a neighbour scores above another node.
func (s Scores) AUC() float64 {
	a, _ := AUC(s.positive, s.negative)
	return a
}

// GainError is the standard error of the difference between the AUC of two scores of the same pairs (DeLong et al.
// 1988). What both say of a pair alike adds nothing to it.
func (s Scores) GainError(t Scores) float64 {
	differences := func(a, b, c, d []float64) float64 { // the variance of their mean
		x, y := shares(a, b), shares(c, d)
		var sum, squares float64
		for k := range x {
			d := x[k] - y[k]
			sum, squares = sum+d, squares+float64(d*d)
		}
		n := float64(len(x))
		return max(0, squares-sum*sum/n) / max(1, n-1) / n
	}
	return math.Sqrt(differences(s.positive, s.negative, t.positive, t.negative) +
		differences(s.negative, s.positive, t.negative, t.positive))
}

// shares returns of each of a the share of b below it, ties half.
func shares(a, b []float64) []float64 {
	b = slices.Sorted(slices.Values(b))
	out := make([]float64, len(a))
	for k, x := range a {
		below, _ := slices.BinarySearch(b, x)
		upto, _ := slices.BinarySearchFunc(b, x, func(v, x float64) int {
			if v <= x {
				return -1
			}
			return 1
		})
		out[k] = float64(below+upto) / 2 / float64(len(b))
	}
	return out
}
