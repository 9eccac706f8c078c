package report

import (
	"context"
	"slices"

	"giantstream/sink"
	"giantstream/train/generation"
)

// shownClusters bounds the number of clusters on a page; the levels below are left out.
const shownClusters = 1500

// branch is a cluster and those it divides into.
type branch struct {
	generation.Cluster
	Children []*branch
}

// level is a line of the table of levels.
type level struct {
	Number, Clusters int
	Size             float64 // mean labels per cluster
}

// levels returns how many labels are in the tree, which those without a link are not, and its levels.
func levels(doc *generation.Doc, roots []*branch) (labels int, out []level) {
	for _, b := range roots {
		labels += b.Labels
	}
	for k, clusters := range doc.Tree.Levels {
		out = append(out, level{k, clusters, float64(labels) / float64(clusters)})
	}
	return labels, out
}

// tree returns the coarsest clusters with what is below them, and how many levels deep. With whole, it also returns
// the clusters of all levels.
func tree(ctx context.Context, store sink.Store, doc *generation.Doc, whole bool) (roots []*branch, depth int,
	all []generation.Cluster, err error) {
	depth, shown := 1, 0
	for k, clusters := range doc.Tree.Levels {
		if shown += clusters; shown <= shownClusters {
			depth = k + 1
		}
	}
	levels := depth
	if whole {
		levels = len(doc.Tree.Levels)
	}
	all, err = generation.OutlineTree(ctx, store, doc, generation.OutlineOptions{Levels: levels, Terms: 8})
	if err != nil {
		return nil, 0, nil, err
	}
	shallow := slices.DeleteFunc(slices.Clone(all), func(c generation.Cluster) bool { return c.Level >= depth })
	return nest(shallow), depth, all, nil
}

// nest makes a tree of its clusters in depth-first order.
func nest(outline []generation.Cluster) (roots []*branch) {
	var path []*branch // from the root to the last cluster
	for _, c := range outline {
		b := &branch{Cluster: c}
		path = path[:min(c.Level, len(path))]
		if len(path) == 0 {
			roots = append(roots, b)
		} else {
			parent := path[len(path)-1]
			parent.Children = append(parent.Children, b)
		}
		path = append(path, b)
	}
	return roots
}
