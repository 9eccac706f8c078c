package fit

import (
	"context"
	"errors"
	"slices"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train/encoders/bag"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/numeric"
)

// The settings of a local refresh. None was varied yet; docs/MEASUREMENTS.md has what they give on one graph.
const (
	// extendTexts is how many texts of new nodes the vocabulary must have to gain n-grams, and newNGrams how many it
	// gains at most, as a share of those that it has.
	extendTexts = 32
	newNGrams   = 0.25
	// newDimensions is how many directions of the new n-grams the projection gains.
	newDimensions = 64
	// renewShare is the share of the labels of a subtree that must be new or gone to divide it anew.
	renewShare = 0.1
	// warmEpochs is how often training goes through the nodes that have changed and the others with them.
	warmEpochs = 5
	// sampledOthers is how many other nodes are trained on for each that has changed, so that what they know stays.
	sampledOthers = 1

	streamDirections = 'D'
	streamOthers     = 'W'
)

// Warm is what a training goes on from.
type Warm struct {
	Table *bag.Model
	// From is the first feature that the table was not trained on.
	From int32
	// TextWeight is that of the text beside the table before, for want of nodes to measure it on.
	TextWeight float32
	// Fresh are the nodes that the table has never seen, ascending. Only they can validate: all others may have been
	// trained on.
	Fresh []int32
	// Changed are the nodes whose texts or links are others than the table was trained on, ascending.
	Changed []int32
	// Parent, if not nil, is the encoder that the table is of. Its other views remain, and the map from all of them to
	// embeddings (a warm start). Else they are made anew (a local refresh).
	Parent *hybrid.Encoder
}

// minHeldOut is how many fresh nodes validate at least; with fewer, all epochs are trained.
const minHeldOut = 32

// heldOut returns those of the held-out instances that can validate, nil for too few.
func (w *Warm) heldOut(all []int32) (chosen []int32) {
	for _, i := range all {
		if _, fresh := slices.BinarySearch(w.Fresh, i); fresh {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) < minHeldOut {
		return nil
	}
	return chosen
}

// instances returns the instances that have changed, and a sample of the others.
func (w *Warm) instances(all []int32, seed uint64) (chosen []int32) {
	changed := make(map[int32]struct{}, len(w.Changed))
	for _, i := range w.Changed {
		changed[i] = struct{}{}
	}
	var others []int32
	for _, i := range all {
		if _, has := changed[i]; has {
			chosen = append(chosen, i)
		} else {
			others = append(others, i)
		}
	}
	r := numeric.NewRand(seed, streamOthers)
	r.Shuffle(others)
	chosen = append(chosen, others[:min(len(others), sampledOthers*max(len(chosen), 1024))]...)
	slices.Sort(chosen)
	return chosen
}

// ExtendVectorizer returns a vectorizer with the n-grams of the texts of new nodes beside its own, which keep their
// numbers. There are docs texts in all. With too few new ones, it returns the vectorizer as it is.
func ExtendVectorizer(ctx context.Context, before *tfidf.Model, fresh *Texts, docs int, s Settings, r Resources) (
	*tfidf.Model, error) {
	if fresh.Len() < extendTexts {
		return before, nil
	}
	own, err := Vectorizer(ctx, fresh, s, r)
	if errors.Is(err, tfidf.ErrNoText) {
		return before, nil
	}
	if err != nil {
		return nil, err
	}
	return before.Extend(own, docs, int(newNGrams*float64(before.Dim())))
}

// ExtendProjection returns a projection of the features that an extended vectorizer makes. The new n-grams get the
// strongest directions of the texts of new nodes as far as these consist of them, turned at random among the dimensions
// that label features and texts are compared in: near each other where they stand in the same texts, and far from all
// that was there before.
func ExtendProjection(before *projection.Projection, f *Features, fresh []int32, dim int, s Settings, r Resources) (
	*projection.Projection, error) {
	from, cols := int32(before.Cols()), f.cols
	x := &sparse.Matrix{Cols: cols, Start: []int64{0}}
	for _, i := range fresh {
		v := f.Row(int(i))
		at, _ := slices.BinarySearch(v.Index, from)
		if at < len(v.Index) {
			x.Append(sparse.Vector{Index: v.Index[at:], Value: v.Value[at:]})
		}
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	own, err := projection.Fit(x, newDimensions, projection.Options{Sample: ProjectionSample, Seed: s.Seed,
		Workers: r.Workers})
	if errors.Is(err, projection.ErrNoData) {
		return before.Extend(cols, nil, nil)
	}
	if err != nil {
		return nil, err
	}
	turn := directions(own.Dim(), before.Dim(), dim, s.Seed)
	var features []int32
	var rows []float32
	for j := from; int(j) < cols; j++ {
		row := own.Row(j)
		if row == nil {
			continue
		}
		out := make([]float32, before.Dim())
		for k, v := range row {
			numeric.Axpy(v, turn[k*before.Dim():(k+1)*before.Dim()], out)
		}
		features, rows = append(features, j), append(rows, out...)
	}
	return before.Extend(cols, features, rows)
}

// directions returns n random directions among the first dim of width dimensions, rows of about length 1.
func directions(n, width, dim int, seed uint64) []float32 {
	out := make([]float32, n*width)
	r := numeric.NewRand(seed, streamDirections)
	for k := range n {
		row := out[k*width : k*width+dim]
		for j := range row {
			for range 4 { // nearly normal
				row[j] += float32(r.Float64() - 0.5)
			}
		}
		numeric.Normalize(row)
	}
	return out
}

// RenewTree returns the tree for other labels: label i was from[i] of it, or is new for -1.
func RenewTree(before *labeltree.Tree, from []int32, x labeltree.Features, s Settings, workers int) (
	*labeltree.Tree, error) {
	return labeltree.Renew(before, from, x, renewShare, TreeOptions(s, workers))
}
