package xmc_test

import (
	"slices"
	"testing"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/sparse"
	"giantstream/train/objectives/xmc"
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
	// One instance has labels 5, 2, 0 and 1; the others have none.
	neighbours := &sparse.Matrix{Cols: 6, Start: []int64{0}}
	neighbours.Append(sparse.Vector{Index: []int32{0, 1, 2, 5}, Value: []float32{1, 1, 1, 1}})
	for range 5 {
		neighbours.Append(sparse.Vector{})
	}
	p, err := xmc.FromTree(with, neighbours)
	if err != nil {
		t.Fatal(err)
	}
	if with.Levels() != 2 || with.Clusters(0) != 2 || with.Clusters(1) != 4 {
		t.Fatalf("%d levels, the last of %d clusters", with.Levels(), with.Clusters(with.Levels()-1))
	}
	for label, want := range []int32{0, -1, 1, 2, -1, 3} {
		own := with.Cluster(1, label)
		if own != want {
			t.Errorf("label %d is cluster %d of the last level, want %d", label, own, want)
		}
		if own >= 0 && p.Levels[1].Parent[own] != tree.Cluster(0, label) {
			t.Errorf("label %d is below cluster %d, the tree has it in %d",
				label, p.Levels[1].Parent[own], tree.Cluster(0, label))
		}
	}
	if c := with.Cluster(1, 6); c != -1 {
		t.Errorf("a label that does not exist is in cluster %d", c)
	}
	row := p.Targets(0)[1]
	if want := []int32{0, 1, 3}; !slices.Equal(row.Index, want) || !slices.Equal(row.Value, []float32{1, 1, 1}) {
		t.Errorf("targets %v with counts %v, want %v, one each", row.Index, row.Value, want)
	}
}
