package labeltree

import "slices"

// Targets returns what an instance with the given labels (positions in the tree) is trained on. For
// each level of the tree, from coarse to fine, these are the clusters that hold at least one of the
// labels, ascending, and how many each holds. Labels that are in no cluster are skipped.
//
// The slices are as long as the tree has levels; targets[t] and counts[t] are empty for an instance
// without labels in the tree. Calls share no memory.
func Targets(tree *Tree, labels []int32) (targets, counts [][]int32) {
	levels := tree.Levels()
	targets, counts = make([][]int32, levels), make([][]int32, levels)
	leaves := make([]int32, 0, len(labels))
	for _, l := range labels {
		if leaf := tree.Cluster(levels-1, int(l)); leaf >= 0 {
			leaves = append(leaves, leaf)
		}
	}
	slices.Sort(leaves)
	for _, leaf := range leaves {
		targets[levels-1], counts[levels-1] = count(targets[levels-1], counts[levels-1], leaf, 1)
	}
	for t := levels - 1; t > 0; t-- {
		for i, c := range targets[t] {
			targets[t-1], counts[t-1] = count(targets[t-1], counts[t-1], tree.Parent(t, c), counts[t][i])
		}
	}
	return targets, counts
}

// count adds n to the count of cluster c. Clusters come in ascending order: parents do as their
// children do.
func count(targets, counts []int32, c, n int32) ([]int32, []int32) {
	if k := len(targets) - 1; k >= 0 && targets[k] == c {
		counts[k] += n
		return targets, counts
	}
	return append(targets, c), append(counts, n)
}
