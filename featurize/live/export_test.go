package live

import (
	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
)

// Sketch returns the sums that follow the graph.
func (g *Graph) Sketch() *pifa.Sketch { return g.sketch }

// Targets returns the clusters of an instance's labels at every level, as
// labeltree.Targets does, and how many of its labels are in no cluster: they do not
// exist, or have no instance whose text says anything.
func (g *Graph) Targets(n int32) (clusters, counts [][]int32, unknown int) {
	labels := g.nodes[n].labels
	clusters, counts = labeltree.Targets(g.tree, labels)
	unknown = len(labels)
	for _, c := range counts[len(counts)-1] {
		unknown -= int(c)
	}
	return clusters, counts, unknown
}
