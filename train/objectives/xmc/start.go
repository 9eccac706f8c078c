package xmc

import (
	"fmt"
	"math"

	"giantstream/featurize/sparse"
	"giantstream/train/encoders/linear"
	"giantstream/train/numeric"
)

// Centroids starts each cluster of the span at the normalized sum of its labels' vectors (labels is
// nodes×Dim). This suits an encoder that begins at the linear solution, which predicts the mean of
// its labels' vectors.
func (h *Heads) Centroids(s Span, t Tree, labels []float32) {
	skipped := t.Levels() - len(h.Weights) // first levels of a single cluster
	for level := s.From; level < s.To; level++ {
		clear(h.Weights[level])
		for label := range len(labels) / h.Dim {
			if c := t.Cluster(skipped+level, label); c >= 0 {
				numeric.Axpy(1, labels[label*h.Dim:(label+1)*h.Dim], h.row(level, c))
			}
		}
	}
	h.EndMeans(s)
}

// AddMeans adds the embedding z of an instance to the clusters that hold its
// labels, as often as they do: positives per level. All vectors are zero
// before the first instance and have length 1 after EndMeans.
func (h *Heads) AddMeans(s Span, z []float32, positives []sparse.Vector) {
	for t := s.From; t < s.To; t++ {
		for k, c := range positives[t].Index {
			numeric.Axpy(positives[t].Value[k], z, h.row(t, c)[:len(z)])
		}
	}
}

// EndMeans ends a start at means. Clusters without an instance stay zero.
func (h *Heads) EndMeans(s Span) {
	for t := s.From; t < s.To; t++ {
		for c := range h.Problem.Levels[t].Clusters {
			numeric.Normalize(h.row(t, int32(c)))
		}
	}
}

// Random starts the clusters of level t at small random vectors.
func (h *Heads) Random(t int, seed uint64) {
	r := numeric.NewRand(seed, uint64(t))
	bound := 1 / math.Sqrt(float64(h.Dim))
	for i := range h.Weights[t] {
		h.Weights[t][i] = float32((2*r.Float64() - 1) * bound)
	}
}

// Inherit starts each cluster of level t ≥ 1 at its parent's vector.
func (h *Heads) Inherit(t int) {
	for c, parent := range h.Problem.Levels[t].Parent {
		copy(h.row(t, int32(c)), h.row(t-1, parent))
	}
}

// solveBlock is how many clusters are solved for at a time: the right-hand
// sides are float64.
const solveBlock = 512

// Solve starts the clusters of level t at the ridge regression from the
// embeddings z (rows of Dim) to +1 for an instance's clusters and −1 for all
// others. positives[i] are the clusters of row i; lambda is relative to the
// mean square of z (linear.Sums.Solve).
//
// Solve sums Σzzᵀ over the embeddings and, per cluster, its instances. Memory does not depend on
// the number of instances.
func (h *Heads) Solve(t int, z []float32, positives []sparse.Vector, lambda float64) error {
	const rows = 1024 // summed in float32 at a time
	ones := make([]float32, rows)
	for i := range ones {
		ones[i] = 1
	}
	all := linear.NewSums(h.Dim, 1)
	for at := 0; at < len(positives); at += rows {
		n := min(rows, len(positives)-at)
		all.Add(z[at*h.Dim:(at+n)*h.Dim], ones[:n])
	}
	w := h.Weights[t]
	clear(w)
	for i, p := range positives {
		for _, c := range p.Index {
			numeric.Axpy(1, z[i*h.Dim:(i+1)*h.Dim], h.row(t, c))
		}
	}
	// Σ y·z = 2·(sum over the cluster's instances) − (sum over all).
	clusters := h.Problem.Levels[t].Clusters
	for at := 0; at < clusters; at += solveBlock {
		n := min(solveBlock, clusters-at)
		s := linear.Sums{Rank: h.Dim, Dim: n, G: all.G, B: make([]float64, h.Dim*n)}
		for c := range n {
			for d, v := range h.row(t, int32(at+c)) {
				s.B[d*n+c] = 2*float64(v) - all.B[d]
			}
		}
		solution, err := s.Solve(lambda)
		if err != nil {
			return fmt.Errorf("xmc: heads of level %d: %w", t, err)
		}
		for c := range n {
			row := h.row(t, int32(at+c))
			for d := range row {
				row[d] = float32(solution[d*n+c])
			}
		}
	}
	return nil
}
