package xmc_test

import (
	"slices"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/targets"
	"giantstream/train/xmc"
)

func TestWithLabelsAddsTheLabelsAsALevel(t *testing.T) {
	// Labels 1 and 4 have no features, so they are in no cluster.
	features, err := labeltree.Dense([]float32{1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := labeltree.Build(features, labeltree.Options{Levels: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	with := xmc.WithLabels(tree)
	if with.Levels() != 2 || with.Clusters(0) != 2 || with.Clusters(1) != 4 {
		t.Fatalf("%d levels, the last of %d clusters", with.Levels(), with.Clusters(with.Levels()-1))
	}
	for label, want := range []int32{0, -1, 1, 2, -1, 3} {
		own := with.Cluster(1, label)
		if own != want {
			t.Errorf("label %d is cluster %d of the last level, want %d", label, own, want)
		}
		if own >= 0 && with.Parent(1, own) != tree.Cluster(0, label) {
			t.Errorf("label %d is below cluster %d, the tree has it in %d", label, with.Parent(1, own), tree.Cluster(0, label))
		}
	}
	if c := with.Cluster(1, 6); c != -1 {
		t.Errorf("a label that does not exist is in cluster %d", c)
	}
	clusters, counts := targets.Of(with, []int32{5, 2, 0, 1})
	if want := []int32{0, 1, 3}; !slices.Equal(clusters[1], want) || !slices.Equal(counts[1], []int32{1, 1, 1}) {
		t.Errorf("targets %v with counts %v, want %v, one each", clusters[1], counts[1], want)
	}
	if _, err := xmc.FromLevels(xmc.LevelsOf(with)); err != nil {
		t.Error(err)
	}
}
