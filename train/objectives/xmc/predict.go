package xmc

import (
	"fmt"
	"slices"

	"giantstream/internal/parallel"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/numeric"
)

// Matcher answers neighbourhood prediction: which clusters hold the labels of
// an instance with this embedding. It is immutable and safe for concurrent
// use.
type Matcher struct {
	Problem *Problem
	Dim     int
	// Weights are per level, Clusters×Dim.
	Weights [][]float32
	// Bias is what each cluster's score begins with, per level; nil for none.
	Bias [][]float32
}

// WithoutLast returns the matcher of all levels but the finest.
func (m *Matcher) WithoutLast() *Matcher {
	n := len(m.Weights) - 1
	short := &Matcher{Problem: &Problem{Levels: m.Problem.Levels[:n]}, Dim: m.Dim, Weights: m.Weights[:n]}
	if m.Bias != nil {
		short.Bias = m.Bias[:n]
	}
	return short
}

// Rotate makes m, which may be nil, the matcher for embeddings multiplied by axes (Dim×Dim, orthogonal),
// which it scores as it did before.
func (m *Matcher) Rotate(axes []float32) {
	if m == nil {
		return
	}
	for _, w := range m.Weights {
		numeric.Rotate(w, axes, m.Dim)
	}
}

// Tensors returns the matcher as an encoder's artifact has it (docs/format/encoder.md); none of
// a nil matcher.
func (m *Matcher) Tensors() []safetensors.Tensor {
	if m == nil {
		return nil
	}
	var out []safetensors.Tensor
	for t, l := range m.Problem.Levels {
		out = append(out, safetensors.Tensor{
			Name: fmt.Sprintf("head.%d", t), Shape: []int{l.Clusters, m.Dim}, Float32: m.Weights[t],
		})
		if m.Bias != nil {
			out = append(out, safetensors.Tensor{
				Name: fmt.Sprintf("bias.%d", t), Shape: []int{l.Clusters}, Float32: m.Bias[t],
			})
		}
		if t > 0 {
			out = append(out, safetensors.Tensor{
				Name: fmt.Sprintf("parent.%d", t), Shape: []int{l.Clusters}, Int32: l.Parent,
			})
		}
	}
	return out
}

// Predict returns, per level, the k clusters that score highest, best first. Below the first level
// it scores only the children of the best max(k, 10) clusters of the level above, as training does.
func (m *Matcher) Predict(z []float32, k int) [][]int32 {
	out := make([][]int32, len(m.Weights))
	beam := max(k, defaultMatched)
	var above, candidates []int32
	var scores []float32
	for t, w := range m.Weights {
		candidates = m.Problem.candidates(candidates[:0], t, nil, above)
		scores = grow(scores, len(candidates))
		for i, c := range candidates {
			scores[i] = numeric.Dot(w[int(c)*m.Dim:int(c+1)*m.Dim], z)
			if m.Bias != nil {
				scores[i] += m.Bias[t][c]
			}
		}
		above = top(above[:0], candidates, scores, beam)
		out[t] = slices.Clone(above[:min(k, len(above))])
	}
	return out
}

// LevelMetrics is how well the matcher finds the clusters that hold the
// neighbours of instances it was not trained on.
type LevelMetrics struct {
	Clusters int     `json:"clusters"`
	P1       float64 `json:"p_at_1"`
	P3       float64 `json:"p_at_3"`
	P5       float64 `json:"p_at_5"`
	// Recall10 is the share of an instance's clusters among the best 10.
	Recall10 float64 `json:"recall_at_10"`
}

// Evaluate averages precision and recall over instances; z holds their
// embeddings, one row each. Instances without a target are left out.
func (m *Matcher) Evaluate(z []float32, instances []int32) []LevelMetrics {
	out := make([]LevelMetrics, len(m.Weights))
	predicted := make([][][]int32, len(instances))
	parallel.ForEach(len(instances), 16, 0, func(_, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			predicted[i] = m.Predict(z[i*m.Dim:(i+1)*m.Dim], 10)
		}
	})
	for t := range out {
		l := &m.Problem.Levels[t]
		r := &out[t]
		r.Clusters = l.Clusters
		counted := 0.0
		for k, i := range instances {
			truth := l.Targets.Row(int(i)).Index
			if len(truth) == 0 {
				continue
			}
			counted++
			best := predicted[k][t]
			r.P1 += float64(hits(best, truth, 1))
			r.P3 += float64(hits(best, truth, 3)) / 3
			r.P5 += float64(hits(best, truth, 5)) / 5
			r.Recall10 += float64(hits(best, truth, 10)) / float64(len(truth))
		}
		if counted > 0 {
			r.P1, r.P3, r.P5, r.Recall10 = r.P1/counted, r.P3/counted, r.P5/counted, r.Recall10/counted
		}
	}
	return out
}

// hits counts the true clusters among the best k.
func hits(best, truth []int32, k int) int {
	n := 0
	for _, c := range best[:min(k, len(best))] {
		if _, ok := slices.BinarySearch(truth, c); ok {
			n++
		}
	}
	return n
}
