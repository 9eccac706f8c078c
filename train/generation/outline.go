package generation

import (
	"context"
	"fmt"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/sink/rows"
)

// OutlineOptions say how much of a tree is outlined.
type OutlineOptions struct {
	Levels int // from the coarsest
	Terms  int // per cluster
}

// Cluster is a line of the outline: a cluster, and the terms that set its labels' texts apart from
// the texts of its parent (of all labels, at level 0).
type Cluster struct {
	Level   int      `json:"level"`
	Cluster int32    `json:"cluster"`
	Labels  int      `json:"labels"`
	Terms   []string `json:"terms"`
}

// OutlineTree lists the clusters of a ready generation's tree, depth first.
// The terms come from the features in its training set; labels that are no
// instances (hubs) add none.
func OutlineTree(ctx context.Context, store sink.Store, doc *Doc, o OutlineOptions) ([]Cluster, error) {
	vectorizer, err := loadOf(ctx, store, doc, VectorizerName, tfidf.Read)
	if err != nil {
		return nil, err
	}
	tree, err := loadOf(ctx, store, doc, TreeName, labeltree.Read)
	if err != nil {
		return nil, err
	}
	features, err := labelTexts(ctx, store, doc, vectorizer.Dim())
	if err != nil {
		return nil, err
	}
	if features.Rows != tree.Labels() {
		return nil, fmt.Errorf("generation %d: labels.parquet has %d labels, the tree %d", doc.Generation,
			features.Rows, tree.Labels())
	}
	return outlineOf(tree, tfidf.NewTerms(vectorizer, features), o), nil
}

func outlineOf(tree *labeltree.Tree, terms *tfidf.Terms, o OutlineOptions) (out []Cluster) {
	var visit func(level int, cluster int32, parent sparse.Vector)
	visit = func(level int, cluster int32, parent sparse.Vector) {
		members := tree.Members(level, cluster)
		c := Cluster{Level: level, Cluster: cluster, Labels: len(members)}
		mean := terms.Mean(members)
		for _, t := range terms.Top(mean, parent, o.Terms) {
			c.Terms = append(c.Terms, t.Text)
		}
		out = append(out, c)
		if level+1 >= min(o.Levels, tree.Levels()) {
			return
		}
		for child, end := tree.Children(level, cluster); child < end; child++ {
			visit(level+1, child, mean)
		}
	}
	var all []int32
	for c := range int32(tree.Clusters(0)) {
		all = append(all, tree.Members(0, c)...)
	}
	whole := terms.Mean(all)
	for c := range int32(tree.Clusters(0)) {
		visit(0, c, whole)
	}
	return out
}

// labelTexts returns Ψ of the labels' own texts, in the tree's order, with an
// empty row for labels that are not in the training set.
func labelTexts(ctx context.Context, store sink.Store, doc *Doc, cols int) (*sparse.Matrix, error) {
	byID := map[string]sparse.Vector{}
	for _, part := range doc.Dataset {
		for r, err := range rows.Nodes.Read(ctx, store, part.Ref(), rows.ReadOptions{
			Columns: []string{rows.ColNodeID, rows.ColFeatureIndices, rows.ColFeatureValues}}) {
			if err != nil {
				return nil, err
			}
			byID[r.NodeID] = sparse.Vector{Index: r.FeatureIndices, Value: r.FeatureValues}
		}
	}
	m := &sparse.Matrix{Cols: cols, Start: []int64{0}}
	for l, err := range readLabels(ctx, store, doc) {
		if err != nil {
			return nil, err
		}
		m.Append(byID[l.NodeID])
	}
	return m, nil
}
