package xrlinear

import (
	"context"
	"fmt"
	"slices"

	"giantstream/featurize/sparse"
	"giantstream/internal/parallel"
	"giantstream/train/numeric"
	"giantstream/train/numeric/lanes"
)

// Classifiers are linear classifiers on dense rows: cluster c answers x with
// ⟨Weights[c·Dim:(c+1)·Dim], x⟩ + Bias[c].
type Classifiers struct {
	Dim     int
	Weights []float32
	Bias    []float32
}

// Heads fits the classifiers of one level of a tree to dense rows z (n × dim), such as embeddings.
// It uses the descent that Train uses on TF-IDF, and drops no weight. positives[i] are the clusters
// of row i (values ignored), parent is each cluster's cluster at the level above. A classifier sees
// the rows that have a cluster below its parent (teacher-forced negatives), or all rows if parent
// is nil. A cluster below a parent without rows gets weights of 0 and a bias of −1.
func Heads(ctx context.Context, z []float32, dim int, positives []sparse.Vector, clusters int, parent []int32,
	o Options) (*Classifiers, error) {
	if len(z) != len(positives)*dim {
		return nil, fmt.Errorf("xrlinear: %d numbers for %d rows of dimension %d", len(z), len(positives), dim)
	}
	if parent != nil && len(parent) != clusters {
		return nil, fmt.Errorf("xrlinear: %d clusters and %d parents", clusters, len(parent))
	}
	o = o.withDefaults()
	families := familiesOf(positives, clusters, parent)
	type unit struct{ family, at int }
	var units []unit
	for f := range families {
		for at := 0; at < len(families[f].clusters); at += lanes.Most {
			units = append(units, unit{f, at})
		}
	}
	out := &Classifiers{Dim: dim, Weights: make([]float32, clusters*dim), Bias: make([]float32, clusters)}
	workers := make([]descent, parallel.Workers(o.Workers))
	parallel.ForEach(len(units), 1, o.Workers, func(w, _, u, _ int) {
		if ctx.Err() == nil {
			workers[w].o = o
			f := &families[units[u].family]
			rand := numeric.NewRand(o.Seed, uint64(units[u].family), uint64(units[u].at))
			f.fit(&workers[w], z, units[u].at, rand, out)
		}
	})
	return out, ctx.Err()
}

// family is the clusters below one parent and the rows that they see.
type family struct {
	clusters, rows []int32
	positives      [][]int32 // of each cluster, as places in rows
}

// familiesOf returns the families of all parents.
func familiesOf(positives []sparse.Vector, clusters int, parent []int32) []family {
	whole := parent == nil
	if whole {
		parent = make([]int32, clusters)
	}
	families := make([]family, slices.Max(append([]int32{0}, parent...))+1)
	place := make([]int32, clusters) // within its family
	for c, p := range parent {
		f := &families[p]
		place[c] = int32(len(f.clusters))
		f.clusters, f.positives = append(f.clusters, int32(c)), append(f.positives, nil)
	}
	for i, row := range positives {
		if whole {
			families[0].rows = append(families[0].rows, int32(i))
		}
		for _, c := range row.Index {
			f := &families[parent[c]]
			if n := len(f.rows); n == 0 || f.rows[n-1] != int32(i) {
				f.rows = append(f.rows, int32(i))
			}
			f.positives[place[c]] = append(f.positives[place[c]], int32(len(f.rows)-1))
		}
	}
	return families
}

// fit solves the problems of the clusters that begin at place at, as many as there are lanes.
func (f *family) fit(d *descent, z []float32, at int, r numeric.Rand, out *Classifiers) {
	clusters := f.clusters[at:min(at+lanes.Most, len(f.clusters))]
	if len(f.rows) == 0 {
		for _, c := range clusters {
			out.Bias[c] = -1
		}
		return
	}
	d.solve(denseRows(z, out.Dim, f.rows), f.positives[at:at+len(clusters)], r)
	for k, c := range clusters {
		for j := range out.Dim {
			out.Weights[int(c)*out.Dim+j] = d.w[j*d.lanes+k]
		}
		out.Bias[c] = d.w[out.Dim*d.lanes+k]
	}
}

// denseRows is the given rows of z, with the bias as their last feature.
func denseRows(z []float32, dim int, rows []int32) *matrix {
	m := &matrix{cols: dim + 1}
	for j := range int32(m.cols) {
		m.index = append(m.index, j)
	}
	m.value = make([]float32, 0, len(rows)*m.cols)
	for _, i := range rows {
		row := z[int(i)*dim : (int(i)+1)*dim]
		m.value = append(append(m.value, row...), 1)
		m.square = append(m.square, numeric.Dot(row, row)+1)
	}
	return m
}
