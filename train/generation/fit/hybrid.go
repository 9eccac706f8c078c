package fit

import (
	"context"

	"giantstream/featurize/sparse"
	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation/eval"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrt"
)

// The settings of the hybrid, chosen on amazon-products, citeseer and slackbuilds
// (docs/measurements/2026-11-23.md).
const (
	// minLinksWeight is the least weight of the contrastive part in the training of the table.
	minLinksWeight = 0.1
	// maxLabels is how many labels are predicted themselves, below the leaves of the tree. On larger
	// graphs the contrastive part alone tells the labels of a leaf apart, at a third of the time.
	maxLabels = 1 << 14
	// joinSample bounds how many nodes' views the join is fitted on.
	joinSample = 16384
	// minTextWeight is the least weight of the text, which a new node without links depends on.
	minTextWeight = 0.4
	// The next three were chosen on drawn graphs (docs/measurements/2026-11-30.md).
	// clearLinks is what a table says, at least, of links that are no noise: an AUC of 0.85. Of links that were drawn
	// it says up to .4, the more the fewer there are, since held-out instances are neighbours of others that are not.
	clearLinks = 0.7
	// clearText is what the text says, at least, of links that have to do with it.
	clearText = 0.2
	// noiseTextWeight is the weight of the text where neither says anything.
	noiseTextWeight = 3
	// unknownTextWeight is its weight where nothing is held out to tell.
	unknownTextWeight = 0.7
)

// trainHybrid trains a table of n-grams on links and neighbourhoods and joins it to the text.
func trainHybrid(ctx context.Context, t *Training) (*Trained, error) {
	e, report, err := t.trainJoined(ctx, Whole, 0, nil)
	if err != nil {
		return nil, err
	}
	return &Trained{Encoder: e, Metrics: report}, nil
}

// trainJoined trains the table of a hybrid, of at most rows n-grams (0 for the default), as the given part of the
// training, and joins it to what the text says by itself and, if there is one, to what model says of
// the text.
func (t *Training) trainJoined(ctx context.Context, part Part, rows int, model train.Encoder) (
	*hybrid.Encoder, hybridReport, error) {
	var tree xmc.Tree = t.Tree
	if t.Tree.Labels() <= maxLabels {
		tree = xmc.WithLabels(t.Tree)
	}
	n, err := t.trainNGrams(ctx, part, xrt.Bag{Set: xrt.Set{Tree: tree}, Name: hybrid.Kind, MaxRows: rows,
		Links: linksWeight(t.Graph.Neighbours)})
	if err != nil {
		return nil, hybridReport{}, err
	}
	e, err := t.join(ctx, n, model)
	if err != nil {
		return nil, hybridReport{}, err
	}
	return e, hybridReport{n.report, e.Views().TextWeight}, nil
}

// join joins a table to the other views of the text.
func (t *Training) join(ctx context.Context, n table, model train.Encoder) (*hybrid.Encoder, error) {
	nodes := t.Graph.Len()
	step := (nodes + joinSample - 1) / joinSample
	sample := make([]int32, 0, joinSample)
	for i := 0; i < nodes; i += step {
		sample = append(sample, int32(i))
	}
	ends := 0
	if n.pairs != nil {
		ends = len(n.pairs.Nodes)
	}
	t.Resources.Progress.Stage("join text and links", int64(len(sample)+ends))
	v := hybrid.Views{Vectorizer: t.Vectorizer, Projection: t.Projection, Table: n.model,
		Solution: n.start.Weights(), TextWeight: 1}
	weight, err := t.textWeight(ctx, n.pairs, v) // of the LSA, since a fine-tuned model may have seen the pairs
	if err != nil {
		return nil, err
	}
	if v.Behaviour, v.Directions = t.Behaviour, t.Directions; v.Behaviour != nil {
		// What orders link is said by two views, and what the text says by the text alone.
		weight += max(0, orderedTextWeight-weight) * t.OrderedLinks
	}
	v.TextWeight = weight
	if v.Vectors, t.vectors, err = t.weighVectors(ctx, n.pairs, v); err != nil {
		return nil, err
	}
	v.Model = model
	// After the weights, since the parent may have seen the pairs, too.
	if err := t.average(ctx, &v); err != nil {
		return nil, err
	}
	views, err := t.views(ctx, v, sample)
	if err != nil {
		return nil, err
	}
	dim := v.Table.Dim()
	join, err := hybrid.Join(views, v.Len(), dim)
	if err != nil {
		return nil, err
	}
	return hybrid.New(v, join, dim)
}

// linksWeight is the weight of the contrastive part beside the clusters: one over the mean number of
// neighbours of the nodes that have any. The clusters learn from all neighbours of an instance at
// once, the contrastive part from one. So the fewer neighbours there are, the more of what links say
// is lost on the clusters.
func linksWeight(neighbours *sparse.Matrix) float64 {
	linked := 0
	for i := range neighbours.Rows {
		if len(neighbours.Row(i).Index) > 0 {
			linked++
		}
	}
	return max(minLinksWeight, float64(linked)/max(1, float64(neighbours.NNZ())))
}

// hybridReport says how the training of a hybrid went.
type hybridReport struct {
	xrt.BagReport
	// TextWeight is the weight of the text beside the table's 1.
	TextWeight float32 `json:"text_weight"`
}

// orderedTextWeight is the least weight of the text beside a view of orders, where orders make all links. It was chosen
// on two months of a shop's invoices (docs/measurements/2026-11-29.md).
const orderedTextWeight = 0.7

// textWeight decides by evidence how much the text weighs beside the table: as much as it says
// of the links of held-out instances, compared with what the table says. What a view says is 0
// where it ranks a neighbour no better than chance (AUC 0.5) and 1 where it always ranks the neighbour
// first. Links of which neither says much may be noise, and the text then weighs more.
func (t *Training) textWeight(ctx context.Context, pairs *eval.Pairs, v hybrid.Views) (float32, error) {
	if pairs == nil {
		return unknownTextWeight, nil
	}
	views, err := t.views(ctx, v, pairs.Nodes)
	if err != nil {
		return 0, err
	}
	says := func(from, dim int) float64 {
		part := make([]float32, len(pairs.Nodes)*dim)
		for k := range pairs.Nodes {
			copy(part[k*dim:(k+1)*dim], views[k*v.Len()+from:])
		}
		return 2*pairs.AUC(part, dim) - 1
	}
	table, text := says(0, v.Table.Dim()), says(v.Table.Dim()+v.TextDim(), v.TextDim())
	if !(table > 0) {
		return noiseTextWeight, nil
	}
	doubt := noiseTextWeight * max(0, 1-table/clearLinks) * max(0, 1-max(0, text)/clearText)
	return float32(max(minTextWeight, min(1, text/table), doubt)), nil
}

// views returns the views of nodes, a row each.
func (t *Training) views(ctx context.Context, v hybrid.Views, nodes []int32) ([]float32, error) {
	n := v.Len()
	out := make([]float32, len(nodes)*n)
	err := t.Texts.Subset(nodes).blocks(ctx, t.Resources.Progress, func(lo int, texts []string) error {
		featuresOf := func(i int, _ sparse.Vector) sparse.Vector { return t.Features.Row(int(nodes[lo+i])) }
		return v.WriteViews(idsOf(t.Graph, nodes[lo:lo+len(texts)]), texts, featuresOf, out[lo*n:(lo+len(texts))*n])
	})
	return out, err
}

// idsOf returns the ids of nodes.
func idsOf(g *train.Graph, nodes []int32) []string {
	ids := make([]string, len(nodes))
	for k, i := range nodes {
		ids[k] = g.IDs[i]
	}
	return ids
}
