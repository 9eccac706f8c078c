package nodemap

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"giantstream/train/generation/eval"
)

// Position is a place on a map, x and y.
type Position [2]float64

// principal projects the vectors (n×dim) on the two directions in which they vary most.
func principal(vectors []float32, dim int) []Position {
	n := len(vectors) / dim
	mean := make([]float64, dim)
	for i, v := range vectors {
		mean[i%dim] += float64(v) / float64(n)
	}
	centred := mat.NewDense(n, dim, nil)
	for i, v := range vectors {
		centred.Set(i/dim, i%dim, float64(v)-mean[i%dim])
	}
	var covariance mat.SymDense
	covariance.SymOuterK(1, centred.T())
	out := make([]Position, n)
	var eigen mat.EigenSym
	if !eigen.Factorize(&covariance, true) {
		return out // does not converge: not seen of finite numbers
	}
	var axes mat.Dense
	eigen.VectorsTo(&axes)
	for axis := range min(2, dim) {
		direction := mat.Col(nil, dim-1-axis, &axes) // eigenvalues ascend
		largest := slices.MaxFunc(direction,
			func(a, b float64) int { return int(math.Copysign(1, math.Abs(a)-math.Abs(b))) })
		for i := range n {
			// The sign of an eigenvector is arbitrary: its largest entry is made positive.
			out[i][axis] = math.Copysign(1, largest) * mat.Dot(centred.RowView(i), mat.NewVecDense(dim, direction))
		}
	}
	return out
}

// The neighbour-preserving layout, in UMAP's terms.
const (
	neighbours = 15  // k of the graph
	epochs     = 300 // over its links
	repelled   = 5   // random nodes pushed away per link
	// curveA and curveB fit 1/(1+a·d²ᵇ) to UMAP's curve for min_dist 0.5 and spread 1.
	curveA, curveB = 0.583, 1.334
	largestStep    = 4.0
)

// link is an undirected link of the fuzzy neighbour graph.
type link struct {
	a, b   int32
	weight float64 // in (0, 1]
}

// unfold moves the nodes from where they begin so that neighbours in the embeddings (near) are
// neighbours on the map: McInnes, Healy, Melville, UMAP, 2018, section 3. One goroutine, one
// generator: the same map at every run.
func unfold(near [][]eval.Neighbour, begin []Position) []Position {
	n := len(begin)
	at := spreadOut(begin)
	links := fuzzy(near)
	if len(links) == 0 {
		return at
	}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	strongest := 0.0
	for _, l := range links {
		strongest = max(strongest, l.weight)
	}
	for epoch := range epochs {
		rate := 1 - float64(epoch)/epochs
		for k, l := range links {
			// A link is followed as often as its weight says, evenly over the epochs.
			share := l.weight / strongest
			if math.Floor(share*float64(epoch+1)) == math.Floor(share*float64(epoch)) {
				continue
			}
			u, v := &at[l.a], &at[l.b]
			if (epoch+k)&1 == 1 {
				u, v = v, u // both ends have nodes pushed away
			}
			attract(u, v, rate)
			for range repelled {
				if o := &at[r.IntN(n)]; o != u {
					repel(u, o, rate)
				}
			}
		}
	}
	return at
}

func attract(u, v *Position, rate float64) {
	d2 := squared(u, v)
	if d2 == 0 {
		return
	}
	p := math.Pow(d2, curveB)
	g := -2 * curveA * curveB * p / d2 / (1 + curveA*p)
	for axis := range u {
		step := rate * min(max(g*(u[axis]-v[axis]), -largestStep), largestStep)
		u[axis] += step
		v[axis] -= step
	}
}

func repel(u, o *Position, rate float64) {
	d2 := squared(u, o)
	g := 2 * curveB / ((0.001 + d2) * (1 + curveA*math.Pow(d2, curveB)))
	for axis := range u {
		u[axis] += rate * min(max(g*(u[axis]-o[axis]), -largestStep), largestStep)
	}
}

func squared(u, v *Position) float64 {
	dx, dy := u[0]-v[0], u[1]-v[1]
	return dx*dx + dy*dy
}

// spreadOut scales positions to the size that the layout begins with, 10 units either way, and
// parts nodes that lie in the same place.
func spreadOut(begin []Position) []Position {
	r := rand.New(rand.NewPCG(2, uint64(len(begin))))
	largest := 0.0
	for _, p := range begin {
		largest = max(largest, math.Abs(p[0]), math.Abs(p[1]))
	}
	if largest == 0 {
		largest = 1
	}
	out := make([]Position, len(begin))
	for i, p := range begin {
		for axis := range p {
			out[i][axis] = 10*p[axis]/largest + (r.Float64()-0.5)*0.01
		}
	}
	return out
}

// fuzzy makes the graph of nearest neighbours symmetric: a link of weights p and q from its ends
// has p + q − p·q. From each node the weights are exp(−(d−d₁)/σ), d₁ the distance of the nearest, σ
// such that they sum up to log₂ k.
func fuzzy(near [][]eval.Neighbour) []link {
	weights := map[[2]int32]float64{}
	for i, list := range near {
		if len(list) == 0 {
			continue
		}
		d := make([]float64, len(list))
		for k, nb := range list {
			d[k] = max(0, 1-nb.Cosine)
		}
		sigma := bandwidth(d)
		for k, nb := range list {
			w := math.Exp(-(d[k] - d[0]) / sigma)
			pair := [2]int32{min(int32(i), nb.Node), max(int32(i), nb.Node)}
			weights[pair] = weights[pair] + w - weights[pair]*w
		}
	}
	links := make([]link, 0, len(weights))
	for pair, w := range weights {
		links = append(links, link{pair[0], pair[1], w})
	}
	slices.SortFunc(links, func(x, y link) int {
		if x.a != y.a {
			return int(x.a - y.a)
		}
		return int(x.b - y.b)
	})
	return links
}

func bandwidth(d []float64) float64 {
	want := math.Log2(float64(len(d)))
	lo, hi := 1e-6, 1e3
	for range 60 {
		mid := math.Sqrt(lo * hi)
		sum := 0.0
		for _, x := range d {
			sum += math.Exp(-(x - d[0]) / mid)
		}
		if sum < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// preserved is the share of the nodes' nearest neighbours that are among the as many nearest on the
// map.
func preserved(near [][]eval.Neighbour, at []Position) float64 {
	kept, all := 0, 0
	for i, list := range near {
		for _, nb := range list {
			d, nearer := squared(&at[i], &at[nb.Node]), 0
			for j := range at {
				if j != i && squared(&at[i], &at[j]) < d {
					nearer++
				}
			}
			if nearer < len(list) {
				kept++
			}
		}
		all += len(list)
	}
	return float64(kept) / float64(max(all, 1))
}
