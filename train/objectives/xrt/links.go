package xrt

import (
	"cmp"
	"math"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
	"giantstream/train/numeric/simd"
	"giantstream/train/objectives/trainer"
)

// links is the contrastive part of the objective: an instance and one of its neighbours, drawn at
// random, must be nearer to each other than to the other pairs of the batch. It is the symmetric
// in-batch softmax of CLIP (Radford et al., 2021) with pairs of linked nodes (InfoNCE, van den Oord
// et al., 2018):
//
//	s_ab = ⟨z_a, y_b⟩/τ,  loss = −½ Σ_a (ln softmax_b(s_a·)_a + ln softmax_b(s_·a)_a)
//
// where z_a is instance a and y_a its partner. Clusters say which region of the graph a text
// belongs to; links say which texts of the region. On sparse graphs, where a cluster's targets miss
// most of what links say, this part teaches most of the links.
type links struct {
	weight, temperature float32
	// skip marks nodes that are no partners: instances that are held out to validate.
	skip []bool
	// chance is how much less often a node is drawn by a neighbour because it is a hub, by node; 1 for others.
	chance []float32

	// Of a part of a batch: the pairs' places in the part, their instances and partners.
	slot                []int32
	instances, partners []int32
	// The directions of both ends, pairs × dim each, and the gradients with respect to them.
	z, dz []float32
	// pairs × pairs: the similarities, which become their gradient; and their transpose.
	similarity, transposed []float32
	loss                   []float64
	// columns are the pairs in the order of their partners.
	columns []int32
}

// streamPartner and streamPartnerDrop are the streams of the partner of an instance in an epoch,
// and of what the network drops of the partner.
const (
	streamPartner     = 'P'
	streamPartnerDrop = 'Q'
)

// A node with more than hubShare of all nodes as neighbours, and more than hubLinks, is a hub. That a node is linked
// to it says little, and a batch in which many pairs share a partner has few nodes to be pushed away from. So it is
// drawn less often, as frequent words are by word2vec (Mikolov et al., 2013). Measured in
// docs/measurements/2026-11-29.md.
const (
	hubShare = 0.01
	hubLinks = 32
)

// unlinked stands for the similarity of two nodes that are not to be pushed apart: its share of a
// softmax is 0.
const unlinked = -1e30

func newLinks(o Options, set Set) *links {
	if o.Links == 0 {
		return nil
	}
	l := &links{weight: float32(o.Links), temperature: float32(o.Temperature), chance: chances(set.Neighbours)}
	if len(set.HeldOut) > 0 {
		l.skip = make([]bool, set.Neighbours.Rows)
		for _, i := range set.HeldOut {
			l.skip[i] = true
		}
	}
	return l
}

// chances returns how often each node is drawn by a neighbour, of the times that it would be if it were no hub:
// √(t/d) of a node that is d nodes' neighbour, where more than t make a hub.
func chances(neighbours *sparse.Matrix) []float32 {
	chance := make([]float32, neighbours.Rows)
	for _, j := range neighbours.Index {
		chance[j]++
	}
	most := max(hubLinks, hubShare*float64(neighbours.Rows))
	for j, degree := range chance {
		chance[j] = float32(math.Sqrt(most / max(most, float64(degree))))
	}
	return chance
}

// draw chooses a partner for each instance of a part, and returns the partners. It draws a number for each link, and
// takes the neighbour with the least: a link that comes or goes changes no other choice than its own. The numbers are
// −ln(u)/v of uniform ones u, so that the chances are as v (Efraimidis and Spirakis, 2006): the link's weight, less
// where the neighbour is a hub. An instance all of whose neighbours are held out has none.
func (l *links) draw(o Options, at trainer.Place, part []int32, set Set) []int32 {
	l.slot, l.instances, l.partners = l.slot[:0], l.instances[:0], l.partners[:0]
	for k, i := range part {
		partner, least := int32(-1), math.Inf(1)
		ofInstance := numeric.NewRand(o.Seed, streamPartner, uint64(at.Epoch), set.Keys[i])
		row := set.Neighbours.Row(int(i))
		for n, j := range row.Index {
			if l.skip != nil && l.skip[j] {
				continue
			}
			u := float64(numeric.Mix(ofInstance.State()^set.Keys[j])>>11) / (1 << 53)
			drawn := -math.Log1p(-u) / float64(row.Weight(n)*l.chance[j])
			if drawn < least {
				partner, least = j, drawn
			}
		}
		if partner >= 0 {
			l.slot = append(l.slot, int32(k))
			l.instances, l.partners = append(l.instances, i), append(l.partners, partner)
		}
	}
	return l.partners
}

// run computes the loss of each pair and the gradient with respect to both ends' directions. z has
// the directions of all instances of the part and then those of the partners; dz has room for the
// same, and run adds to it.
func (l *links) run(dim, part int, neighbours *sparse.Matrix, workers int, z, dz []float32) {
	n := len(l.slot)
	if n == 0 {
		return
	}
	l.z, l.dz = grown(l.z, n*dim), grown(l.dz, n*dim)
	for k, slot := range l.slot {
		copy(l.z[k*dim:], z[int(slot)*dim:int(slot+1)*dim])
	}
	partners := z[part*dim : (part+n)*dim]
	l.similarity, l.transposed = grown(l.similarity, n*n), grown(l.transposed, n*n)
	clear(l.similarity)
	numeric.Gemm(numeric.TransB, n, n, dim, l.z, partners, l.similarity)
	l.gradient(neighbours, workers)

	clear(l.dz)
	numeric.Gemm(numeric.NoTrans, n, dim, n, l.similarity, partners, l.dz)
	for k, slot := range l.slot {
		numeric.Axpy(1, l.dz[k*dim:(k+1)*dim], dz[int(slot)*dim:int(slot+1)*dim])
	}
	numeric.Gemm(numeric.TransA, n, dim, n, l.similarity, l.z, dz[part*dim:(part+n)*dim])
}

// gradient turns similarities into the gradient of the loss with respect to them.
func (l *links) gradient(neighbours *sparse.Matrix, workers int) {
	n := len(l.slot)
	l.loss = slices.Grow(l.loss[:0], n)[:n]
	l.sortColumns()
	scale := 1 / l.temperature
	parallel.ForEach(n, 16, workers, func(_, _, lo, hi int) {
		for a := lo; a < hi; a++ {
			row, own := l.similarity[a*n:(a+1)*n], l.instances[a]
			for b := range row {
				row[b] *= scale
			}
			pair := row[a]
			l.mask(row, own)
			for _, j := range neighbours.Row(int(own)).Index {
				l.mask(row, j)
			}
			row[a] = pair
		}
	})
	parallel.ForEach(n, 16, workers, func(_, _, lo, hi int) {
		for b := lo; b < hi; b++ {
			column := l.transposed[b*n : (b+1)*n]
			for a := range n {
				column[a] = l.similarity[a*n+b]
			}
			simd.Softmax(column)
		}
	})
	parallel.ForEach(n, 16, workers, func(_, _, lo, hi int) {
		for a := lo; a < hi; a++ {
			row := l.similarity[a*n : (a+1)*n]
			simd.Softmax(row)
			l.loss[a] = -0.5 * float64(l.weight) * (logOf(row[a]) + logOf(l.transposed[a*n+a]))
			for b := range row {
				row[b] = 0.5 * l.weight * scale * (row[b] + l.transposed[b*n+a])
			}
			row[a] -= l.weight * scale
		}
	})
}

// sortColumns sorts the pairs by their partners.
func (l *links) sortColumns() {
	l.columns = l.columns[:0]
	for b := range l.partners {
		l.columns = append(l.columns, int32(b))
	}
	slices.SortFunc(l.columns, func(a, b int32) int { return cmp.Compare(l.partners[a], l.partners[b]) })
}

// mask keeps an instance from being pushed away from partners that are a given node: itself, or a neighbour.
func (l *links) mask(row []float32, node int32) {
	at, found := slices.BinarySearchFunc(l.columns, node, func(b, node int32) int {
		return cmp.Compare(l.partners[b], node)
	})
	for ; found && at < len(l.columns) && l.partners[l.columns[at]] == node; at++ {
		row[l.columns[at]] = unlinked
	}
}

// logOf is the logarithm of a share, bounded below: a share can round to 0.
func logOf(share float32) float64 { return math.Log(max(float64(share), 1e-30)) }

func grown(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
