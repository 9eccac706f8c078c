package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

const (
	// leastVectorPairs of held-out instances are needed to decide what a vector weighs.
	leastVectorPairs = 50
	// nearBest: of weights whose AUC is at most as many standard errors of the gain below the best, the least counts.
	// Held-out instances are new to the table of n-grams, which knows more of the others.
	nearBest = 1
	// significantGain is how many standard errors the gain of a view is at least. The best of several weights is asked,
	// and a few links of each instance, so that the error is larger than it looks.
	significantGain = 3
)

// vectorWeights are those that are tried.
var vectorWeights = []float32{0.25, 0.35, 0.5, 0.7, 1, 1.4}

// VectorStats says what the items' own vectors of one name add to the embeddings, as a view of their own.
type VectorStats struct {
	Name string `json:"name"`
	// Length of a vector, and Dim of its view.
	Length int `json:"length"`
	Dim    int `json:"dim"`
	// Items that have the vector. Weight is the length of the view beside that of the text, 0 where the vectors do not
	// help, or cannot be judged: the encoder is then without them.
	Items  int     `json:"items"`
	Weight float32 `json:"weight"`
	// Asked is how many links of held-out instances decided the weight. Without is how surely the other views tell
	// these from random pairs (AUC), With the same with this view at the weight in question. Error is the standard
	// error of the difference.
	Asked   int     `json:"asked"`
	Without float64 `json:"without"`
	With    float64 `json:"with"`
	Error   float64 `json:"stderr"`
}

// weighVectors decides what each of the items' own vectors weighs beside the views v, one after the other.
func (t *Training) weighVectors(ctx context.Context, pairs *eval.Pairs, v hybrid.Views) (kept []hybrid.VectorView,
	stats []VectorStats, err error) {
	if len(t.Vectors) == 0 {
		return nil, nil, nil
	}
	v.Vectors, stats = nil, make([]VectorStats, len(t.Vectors))
	var asked []int // places in t.Vectors of v.Vectors
	for k, own := range t.Vectors {
		s := &stats[k]
		s.Name, s.Length, s.Dim, s.Items = own.Name, own.Map.Len(), own.Map.Dim(), len(own.Items.Hashes())
		if pairs == nil || pairs.Len() < leastVectorPairs {
			continue
		}
		own.Metric, err = t.vectorMetric(ctx, own.Items)
		if errors.Is(err, linear.ErrSingular) {
			continue // too few nodes of the graph have one
		}
		if err != nil {
			return nil, nil, err
		}
		s.Asked, v.Vectors, asked = pairs.Len(), append(v.Vectors, own), append(asked, k)
	}
	if len(asked) == 0 {
		return nil, stats, nil
	}
	views, err := t.views(ctx, v, pairs.Nodes)
	if err != nil {
		return nil, nil, err
	}
	from := v.Len()
	for _, own := range v.Vectors {
		from -= own.Items.Dim()
	}
	w := newVectorWeigher(pairs, views, v.Len(), from)
	for k, own := range v.Vectors {
		s, to := &stats[asked[k]], from+own.Items.Dim()
		if w.weigh(s, from, to); s.Weight != 0 {
			own.Items = own.Items.WithWeight(s.Weight)
			kept = append(kept, own)
		}
		from = to
	}
	return kept, stats, nil
}

// vectorWeigher decides what views of the nodes of some pairs weigh.
type vectorWeigher struct {
	pairs *eval.Pairs
	n     int       // columns of views
	views []float32 // by node
	// known are the columns of views that are decided, times their weights. What is refused is 0, as are those to be
	// decided.
	known []float32
	room  []float32
}

// newVectorWeigher returns one that knows the first columns of views.
func newVectorWeigher(pairs *eval.Pairs, views []float32, n, first int) *vectorWeigher {
	w := &vectorWeigher{pairs, n, views, make([]float32, len(views)), make([]float32, len(views))}
	for at := 0; at < len(views); at += n {
		copy(w.known[at:at+first], views[at:])
	}
	return w
}

// try returns the scores of the pairs with columns at a weight beside those that are known.
func (w *vectorWeigher) try(from, to int, weight float32) eval.Scores {
	copy(w.room, w.known)
	for at := 0; at < len(w.room); at += w.n {
		numeric.Axpy(weight, w.views[at+from:at+to], w.room[at+from:at+to])
	}
	numeric.NormalizeRows(w.room, w.n)
	return w.pairs.Scores(w.room, w.n)
}

// weigh decides what the columns of a vector weigh: the least weight that is about as good as the best, if it is surely
// better than none.
func (w *vectorWeigher) weigh(s *VectorStats, from, to int) {
	without := w.try(from, to, 0)
	s.Without = without.AUC()
	with := make([]eval.Scores, len(vectorWeights))
	best := 0
	for i, weight := range vectorWeights {
		if with[i] = w.try(from, to, weight); with[i].AUC() > with[best].AUC() {
			best = i
		}
	}
	least := with[best].AUC() - nearBest*with[best].GainError(without)
	best = slices.IndexFunc(with, func(c eval.Scores) bool { return c.AUC() >= least })
	s.With, s.Error = with[best].AUC(), with[best].GainError(without)
	if s.With-s.Without > significantGain*s.Error {
		s.Weight = vectorWeights[best]
		for at := 0; at < len(w.views); at += w.n {
			numeric.Axpy(s.Weight, w.views[at+from:at+to], w.known[at+from:at+to])
		}
	}
}

// vectorMetric says which directions of the rows u of a vector count: M with M·Mᵀ = W·Wᵀ, where Wᵀu is the best linear
// prediction of the mean row of a node's neighbours. So two rows are as near as what they predict. The held-out
// instances, which decide about the view, are no part of it.
func (t *Training) vectorMetric(ctx context.Context, items *hybrid.ItemView) ([]float32, error) {
	n, d := t.Graph.Len(), items.Dim()
	us := make([]float32, n*d)
	for i, id := range t.Graph.IDs {
		items.Row(id, us[i*d:(i+1)*d])
	}
	_, held := t.holdOut(streamBagHoldOut)
	out := make([]bool, n)
	for _, i := range held {
		out[i] = true
	}
	known := &sparse.Matrix{Cols: n, Start: []int64{0}}
	for i := range n {
		var links sparse.Vector
		if u := us[i*d : (i+1)*d]; !out[i] && numeric.Dot(u, u) > 0 {
			links = t.Graph.Neighbours.Row(i)
		}
		known.Append(links)
	}
	w, _, err := linear.Fit(ctx, linear.Data{Text: func(i int, out []float32) { copy(out, us[i*d:(i+1)*d]) }, Rank: d,
		Labels: us, Dim: d, Neighbours: known, Keys: numeric.Keys(t.Graph.IDs)},
		linear.Options{MaxDegree: t.Settings.MaxDegree, Seed: t.Settings.Seed, Workers: t.Resources.Workers},
		t.Resources.Progress)
	if err != nil {
		return nil, err
	}
	// M is U·S of the singular values S of W: its left vectors are the axes of the columns of W.
	columns := make([]float32, d*d)
	for i := range d {
		for k := range d {
			columns[k*d+i] = w[i*d+k]
		}
	}
	axes, err := numeric.PrincipalAxes(columns, d)
	if err != nil {
		return nil, err
	}
	lengths := make([]float64, d)
	numeric.Rotate(columns, axes, d)
	for at, v := range columns {
		lengths[at%d] += float64(float64(v) * float64(v))
	}
	for at := range axes {
		axes[at] *= float32(math.Sqrt(lengths[at%d]))
	}
	return axes, nil
}

// Why says in a few words what decided the weight.
func (s VectorStats) Why() string {
	switch {
	case s.Dim == 0:
		return "too few vectors, or all alike"
	case s.Asked == 0:
		return "too few links to tell"
	}
	figures := fmt.Sprintf("held-out links are told with an AUC of %.3f, without the vector %.3f (± %.3f)", s.With,
		s.Without, s.Error)
	if s.Weight > 0 {
		return figures
	}
	return "it does not help: " + figures
}
