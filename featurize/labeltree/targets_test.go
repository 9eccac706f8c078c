package labeltree_test

import (
	"reflect"
	"slices"
	"testing"

	"giantstream/featurize/labeltree"
)

// line returns a tree over 16 labels on a line, so that leaf k of 8 holds
// labels 2k and 2k+1; label 16 has no features and is in no cluster.
func line(t *testing.T) *labeltree.Tree {
	t.Helper()
	values := make([]float32, 17)
	for i := range 16 {
		values[i] = 1 // alike labels are cut by number
	}
	x, err := labeltree.Dense(values, 1)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := labeltree.Build(x, labeltree.Options{Levels: []int{2, 8}})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTargets(t *testing.T) {
	tree := line(t)
	for _, tc := range []struct {
		name            string
		labels          []int32
		targets, counts [][]int32
	}{
		{"no labels", nil, [][]int32{nil, nil}, [][]int32{nil, nil}},
		{"one", []int32{5}, [][]int32{{0}, {2}}, [][]int32{{1}, {1}}},
		{"several, any order", []int32{15, 0, 1, 6}, [][]int32{{0, 1}, {0, 3, 7}}, [][]int32{{3, 1}, {2, 1, 1}}},
		{"not in the tree", []int32{16, 99, -3, 8}, [][]int32{{1}, {4}}, [][]int32{{1}, {1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, counts := labeltree.Targets(tree, tc.labels)
			if !reflect.DeepEqual(got, tc.targets) || !reflect.DeepEqual(counts, tc.counts) {
				t.Errorf("targets %v counts %v, want %v %v", got, counts, tc.targets, tc.counts)
			}
		})
	}
}

func TestEveryLevelAgreesWithTheTree(t *testing.T) {
	tree := line(t)
	labels := []int32{1, 2, 3, 9, 10, 14}
	got, counts := labeltree.Targets(tree, labels)
	for level := range tree.Levels() {
		want := map[int32]int32{}
		for _, l := range labels {
			want[tree.Cluster(level, int(l))]++
		}
		if !slices.IsSorted(got[level]) || len(got[level]) != len(want) {
			t.Fatalf("level %d: targets %v", level, got[level])
		}
		for i, c := range got[level] {
			if counts[level][i] != want[c] {
				t.Errorf("level %d cluster %d holds %d labels, want %d", level, c, counts[level][i], want[c])
			}
		}
	}
}
