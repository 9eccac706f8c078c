package generation

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation/fit"
)

// LocalStats says what a local refresh has made anew.
type LocalStats struct {
	// Changed nodes have rows since the parent's cut, New are nodes that the parent did not have.
	Changed int `json:"changed"`
	New     int `json:"new"`
	// NGrams were added to the vocabulary.
	NGrams int `json:"ngrams"`
	// Subtrees of level Level of the label tree were divided anew.
	Level    int `json:"level"`
	Subtrees int `json:"subtrees"`
}

// CanRefreshLocally says whether a generation of some settings can be a local refresh of its parent.
func CanRefreshLocally(parent *Doc, s fit.Settings) bool {
	before := parent.Settings
	before.Stored, s.Stored = embedding.Format{}, embedding.Format{}
	return parent.TextOnly == "" && s.Encoder == hybrid.Kind && parent.Encoder.Kind == hybrid.Kind &&
		(s.LabelFeatures == "pifa" || s.LabelFeatures == "") && reflect.DeepEqual(before, s)
}

// kept is what a local refresh or a warm start keeps of the parent.
type kept struct {
	parent  *Generation
	warm    bool
	from    []int32 // by node: the parent's label, or -1
	changed []int32
	fresh   []int32 // those of changed that the parent did not have
}

// openKept opens what a local refresh or a warm start keeps. Without a parent any more, the build is from scratch.
func (b *build) openKept(ctx context.Context) error {
	from := b.doc.LocalOf + b.doc.WarmOf // one of them is 0
	if from == 0 {
		return nil
	}
	parent, err := Load(ctx, b.Store, from)
	var g *Generation
	if err == nil {
		g, err = Open(ctx, b.Store, parent, b.resources.Device)
	}
	switch gone := errors.Is(err, ErrNone) || IsDamage(err); {
	case gone && b.doc.WarmOf != 0:
		return b.turnCold(ctx, fmt.Sprintf("the generation before is gone or damaged: %v", err))
	case gone:
		b.resources.Log.Warn("a full build instead of a local refresh: the generation before is gone or damaged",
			"before", b.doc.LocalOf, "error", err)
		b.doc.LocalOf, b.doc.LocalSteps, b.doc.Local = 0, 0, nil
		return nil
	case err != nil:
		return err
	}
	b.kept = b.keep(g)
	if b.kept.warm {
		return b.checkWarm(ctx)
	}
	b.doc.Local = &LocalStats{Changed: len(b.kept.changed), New: len(b.kept.fresh)}
	return nil
}

// keep finds the nodes of the cut among the labels of the parent.
func (b *build) keep(parent *Generation) *kept {
	k := &kept{parent: parent, warm: b.doc.WarmOf != 0, from: make([]int32, b.corpus.Graph.Len())}
	for i, id := range b.corpus.Graph.IDs {
		at, there := parent.Label(id)
		if k.from[i] = at; !there {
			k.from[i] = -1
			k.fresh = append(k.fresh, int32(i))
		}
		if m := b.corpus.meta[i]; !there || m.seq > parent.Doc.Cut[int(m.shard)] {
			k.changed = append(k.changed, int32(i))
		}
	}
	return k
}

// vectorizer fits Ψ, keeps the parent's or extends it.
func (b *build) vectorizer(ctx context.Context, in *fit.Inputs) (*tfidf.Model, error) {
	switch {
	case b.kept == nil:
		return fit.Vectorizer(ctx, in.Texts, b.doc.Settings, b.resources)
	case b.kept.warm:
		return b.kept.parent.Vectorizer, nil
	}
	return fit.ExtendVectorizer(ctx, b.kept.parent.Vectorizer, in.Texts.Subset(b.kept.fresh), in.Texts.Len(),
		b.doc.Settings, b.resources)
}

// projection fits the projection, keeps the parent's or extends it.
func (b *build) projection(in *fit.Inputs) (*projection.Projection, error) {
	s := b.doc.Settings
	switch {
	case b.kept == nil:
		return fit.Projection(in.Features, s, b.resources)
	case b.kept.warm:
		return b.kept.parent.Projection, nil
	}
	before := b.kept.parent.Projection
	return fit.ExtendProjection(before, in.Features, b.kept.fresh, min(s.EmbeddingDim, before.Dim()), s, b.resources)
}

// tree builds the label tree, or renews the parent's.
func (b *build) tree(x labeltree.Features) (*labeltree.Tree, error) {
	s := b.doc.Settings
	if b.kept == nil {
		return fit.BuildTree(x, s, b.Workers)
	}
	return fit.RenewTree(b.kept.parent.Tree, b.kept.from, x, s, b.Workers)
}

// noteKept adds to the document what a local refresh or a warm start has made anew.
func (b *build) noteKept(in *fit.Inputs) {
	if b.kept == nil {
		return
	}
	if b.kept.warm {
		b.noteWarm(in.Tree)
		return
	}
	stats, before := b.doc.Local, b.kept.parent
	stats.NGrams = in.Vectorizer.Dim() - before.Vectorizer.Dim()
	level, divided := labeltree.Divided(before.Tree, in.Tree, b.kept.from)
	stats.Level, stats.Subtrees = level, len(divided)
}

// warm is what the training goes on from, nil for one from scratch.
func (b *build) warm() *fit.Warm {
	if b.kept == nil {
		return nil
	}
	e, ok := b.kept.parent.Encoder.(*hybrid.Encoder)
	if !ok {
		return nil
	}
	w := &fit.Warm{Table: e.Views().Table, From: int32(b.kept.parent.Vectorizer.Dim()),
		TextWeight: e.Views().TextWeight, Fresh: b.kept.fresh, Changed: b.kept.changed}
	if b.kept.warm {
		w.Parent = e
	}
	return w
}

// close frees what the parent holds.
func (k *kept) close() {
	if k != nil {
		train.Close(k.parent.Encoder) //nolint:errcheck // it was read, whatever a device says
	}
}
