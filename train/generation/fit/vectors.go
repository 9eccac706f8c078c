package fit

import (
	"context"

	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

const (
	// leastVectorPairs of held-out instances are needed to decide what a vector weighs.
	leastVectorPairs = 50
	// significantGain is how many standard errors the gain of a view is at least. The best of several weights is asked,
	// and a few links of each instance, so that the error is larger than it looks.
	significantGain = 3
)

// vectorWeights are those that are tried, chosen on amazon-products (docs/measurements/2026-11-27.md).
var vectorWeights = []float32{0.35, 0.7, 1, 1.4}

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
	// Asked is how many links of held-out instances decided the weight. Without is how surely these are told from
	// random pairs by the other views (AUC), With the same with this view at its best weight. Error is the standard
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
	v.Vectors = t.Vectors
	asked := 0
	var views []float32
	if pairs != nil {
		asked = pairs.Len()
		if views, err = t.views(ctx, v, pairs.Nodes); err != nil {
			return nil, nil, err
		}
	}
	n, from := v.Len(), v.Len()
	for _, own := range t.Vectors {
		from -= own.Items.Dim()
	}
	// known are the columns of views that are decided. What is refused is 0.
	known := make([]float32, len(views))
	for at := 0; at < len(views); at += n {
		copy(known[at:at+from], views[at:])
	}
	room := make([]float32, len(views))
	try := func(from, to int, weight float32) eval.Scores {
		copy(room, known)
		for at := 0; at < len(room); at += n {
			numeric.Axpy(weight, views[at+from:at+to], room[at+from:at+to])
		}
		numeric.NormalizeRows(room, n)
		return pairs.Scores(room, n)
	}
	for _, own := range t.Vectors {
		to := from + own.Items.Dim()
		s := VectorStats{Name: own.Name, Length: own.Map.Len(), Dim: own.Map.Dim(), Items: len(own.Items.Hashes()),
			Asked: asked}
		if asked >= leastVectorPairs {
			without := try(from, to, 0)
			s.Without, s.With = without.AUC(), 0
			best := float32(0)
			for _, w := range vectorWeights {
				with := try(from, to, w)
				if auc := with.AUC(); auc > s.With {
					s.With, s.Error, best = auc, with.GainError(without), w
				}
			}
			if s.With-s.Without > significantGain*s.Error {
				s.Weight = best
				own.Items = own.Items.WithWeight(best)
				kept = append(kept, own)
				for at := 0; at < len(views); at += n {
					numeric.Axpy(best, views[at+from:at+to], known[at+from:at+to])
				}
			}
		}
		stats = append(stats, s)
		from = to
	}
	return kept, stats, nil
}
