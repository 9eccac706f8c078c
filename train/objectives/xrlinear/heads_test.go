package xrlinear

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/numeric"
)

// embeddings has n rows around the directions of four topics, and their
// clusters: two a topic, below the topic as parent.
func embeddings(n, dim int) (z []float32, positives []sparse.Vector, parent []int32) {
	for i := range n {
		r := numeric.NewRand(1, uint64(i))
		topic := i % 4
		for j := range dim {
			v := float32(r.Float64() - 0.5)
			if j%4 == topic {
				v++
			}
			z = append(z, v)
		}
		first := int32(2*topic) + int32(r.IntN(2))
		row := sparse.Vector{Index: []int32{first}}
		if other := int32(r.IntN(8)); other > first {
			row.Index = append(row.Index, other)
		}
		positives = append(positives, row)
	}
	return z, positives, []int32{0, 0, 1, 1, 2, 2, 3, 3}
}

// Each classifier must be the optimum of its problem on the rows that it
// should see.
func TestHeadsAreOptimal(t *testing.T) {
	const n, dim = 90, 10
	z, positives, parent := embeddings(n, dim)
	x := &sparse.Matrix{Cols: dim}
	for i := range n {
		row := sparse.Vector{Value: z[i*dim : (i+1)*dim]}
		for j := range int32(dim) {
			row.Index = append(row.Index, j)
		}
		x.Append(row)
	}
	o := Options{Epsilon: 1e-4, Passes: 5000, Cost: 0.7}
	for name, parent := range map[string][]int32{"all rows": nil, "rows of the parent": parent} {
		got, err := Heads(t.Context(), z, dim, positives, 8, parent, o)
		if err != nil {
			t.Fatal(err)
		}
		for c := range int32(8) {
			var seen, own []int32
			for i, row := range positives {
				if parent == nil || slices.ContainsFunc(row.Index, func(k int32) bool { return parent[k] == parent[c] }) {
					seen = append(seen, int32(i))
				}
				if slices.Contains(row.Index, c) {
					own = append(own, int32(i))
				}
			}
			var w []float64
			for _, v := range append(slices.Clone(got.Weights[int(c)*dim:int(c+1)*dim]), got.Bias[c]) {
				w = append(w, float64(v))
			}
			loss := primalObjective(x, seen, own, o.Cost, w)
			best := primalObjective(x, seen, own, o.Cost, minimise(x, seen, own, o.Cost))
			if loss > best*(1+1e-4) {
				t.Errorf("%s, cluster %d: objective %.6f, the minimum is %.6f", name, c, loss, best)
			}
		}
	}
}

func TestHeadsAreTheSameForAnyNumberOfWorkers(t *testing.T) {
	z, positives, parent := embeddings(200, 12)
	a, err := Heads(t.Context(), z, 12, positives, 8, parent, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Heads(t.Context(), z, 12, positives, 8, parent,
		Options{Workers: 5}); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("the classifiers differ (%v)", err)
	}
}

// A cluster that no row could belong to says no.
func TestHeadsOfUnseenParents(t *testing.T) {
	z, positives, parent := embeddings(40, 12)
	got, err := Heads(t.Context(), z, 12, positives, 9, append(parent, 4), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Bias[8] != -1 || slices.Max(got.Weights[8*12:]) != 0 || slices.Min(got.Weights[8*12:]) != 0 {
		t.Errorf("bias %v, weights %v", got.Bias[8], got.Weights[8*12:])
	}
}

func TestHeadsRefuse(t *testing.T) {
	z, positives, parent := embeddings(10, 12)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Heads(t.Context(), z[1:], 12, positives, 8, parent, Options{}); err == nil {
		t.Error("rows that are too short are taken")
	}
	if _, err := Heads(t.Context(), z, 12, positives, 9, parent, Options{}); err == nil {
		t.Error("a cluster without a parent is taken")
	}
	if _, err := Heads(cancelled, z, 12, positives, 8, parent, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
