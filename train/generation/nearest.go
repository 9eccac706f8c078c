package generation

import (
	"context"
	"fmt"
	"slices"

	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// Nearest is a node and the nodes whose embeddings are closest to its own, by
// text alone and by the generation's encoder.
type Nearest struct {
	ID         string   `json:"id"`
	TextOnly   []string `json:"text_only"`
	GraphAware []string `json:"graph_aware"`
}

// Nearest returns the k nearest neighbours of some nodes of the source's
// graph. It encodes every text with both encoders.
func (g *Generation) Nearest(ctx context.Context, source Source, ids []string, k int) ([]Nearest, error) {
	quiet := ambient.OrDiscard(nil)
	corpus, err := ReadCut(ctx, source, g.Doc.Settings.MaxDegree, fit.Resources{Progress: quiet})
	if err != nil {
		return nil, err
	}
	defer corpus.Close() //nolint:errcheck // in memory: nothing can fail
	all := corpus.Graph.IDs
	queries := make([]int32, len(ids))
	out := make([]Nearest, len(ids))
	for i, id := range ids {
		at, ok := slices.BinarySearch(all, id)
		if !ok {
			return nil, fmt.Errorf("node %q is not in the graph", id)
		}
		queries[i], out[i].ID = int32(at), id
	}
	text, err := linear.NewLSA(g.Vectorizer, g.Projection, min(g.Encoder.Dim(), g.Projection.Dim()))
	if err != nil {
		return nil, err
	}
	for _, e := range []struct {
		encoder train.Encoder
		set     func(*Nearest, []string)
	}{
		{text, func(n *Nearest, names []string) { n.TextOnly = names }},
		{g.Encoder, func(n *Nearest, names []string) { n.GraphAware = names }},
	} {
		vectors, err := fit.EmbedNodes(ctx, e.encoder, all, corpus.Texts, quiet)
		if err != nil {
			return nil, err
		}
		for i, found := range eval.Nearest(vectors, e.encoder.Dim(), queries, k) {
			names := make([]string, len(found))
			for j, n := range found {
				names[j] = all[n.Node]
			}
			e.set(&out[i], names)
		}
	}
	return out, nil
}
