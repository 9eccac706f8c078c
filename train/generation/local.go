package generation

import (
	"context"
	"errors"
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

// local is what a local refresh keeps of the parent.
type local struct {
	parent  *Generation
	from    []int32 // by node: the parent's label, or -1
	changed []int32
	fresh   []int32 // those of changed that the parent did not have
}

// openLocal opens what a local refresh keeps. Without a parent any more, the refresh is a full one.
func (b *build) openLocal(ctx context.Context) error {
	if b.doc.LocalOf == 0 {
		return nil
	}
	parent, err := Load(ctx, b.Store, b.doc.LocalOf)
	var g *Generation
	if err == nil {
		g, err = Open(ctx, b.Store, parent, b.resources.Device)
	}
	if errors.Is(err, ErrNone) || IsDamage(err) {
		b.resources.Log.Warn("a full build instead of a local refresh: the generation before is gone or damaged",
			"before", b.doc.LocalOf, "error", err)
		b.doc.LocalOf, b.doc.LocalSteps, b.doc.Local = 0, 0, nil
		return nil
	}
	if err != nil {
		return err
	}
	l := &local{parent: g, from: make([]int32, b.corpus.Graph.Len())}
	for i, id := range b.corpus.Graph.IDs {
		at, there := g.Label(id)
		if l.from[i] = at; !there {
			l.from[i] = -1
			l.fresh = append(l.fresh, int32(i))
		}
		if m := b.corpus.meta[i]; !there || m.seq > parent.Cut[int(m.shard)] {
			l.changed = append(l.changed, int32(i))
		}
	}
	b.local = l
	b.doc.Local = &LocalStats{Changed: len(l.changed), New: len(l.fresh)}
	return nil
}

// vectorizer fits Ψ, or extends the parent's.
func (b *build) vectorizer(ctx context.Context, in *fit.Inputs) (*tfidf.Model, error) {
	if b.local == nil {
		return fit.Vectorizer(ctx, in.Texts, b.doc.Settings, b.resources)
	}
	return fit.ExtendVectorizer(ctx, b.local.parent.Vectorizer, in.Texts.Subset(b.local.fresh), in.Texts.Len(),
		b.doc.Settings, b.resources)
}

// projection fits the projection, or extends the parent's.
func (b *build) projection(in *fit.Inputs) (*projection.Projection, error) {
	s := b.doc.Settings
	if b.local == nil {
		return fit.Projection(in.Features, s, b.resources)
	}
	before := b.local.parent.Projection
	return fit.ExtendProjection(before, in.Features, b.local.fresh, min(s.EmbeddingDim, before.Dim()), s, b.resources)
}

// tree builds the label tree, or renews the parent's.
func (b *build) tree(x labeltree.Features) (*labeltree.Tree, error) {
	s := b.doc.Settings
	if b.local == nil {
		return fit.BuildTree(x, s, b.Workers)
	}
	return fit.RenewTree(b.local.parent.Tree, b.local.from, x, s, b.Workers)
}

// noteLocal adds to the document what a local refresh has made anew.
func (b *build) noteLocal(in *fit.Inputs) {
	if b.local == nil {
		return
	}
	stats, before := b.doc.Local, b.local.parent
	stats.NGrams = in.Vectorizer.Dim() - before.Vectorizer.Dim()
	level, divided := labeltree.Divided(before.Tree, in.Tree, b.local.from)
	stats.Level, stats.Subtrees = level, len(divided)
}

// warm is what the training of a local refresh goes on from, nil for a full one.
func (b *build) warm() *fit.Warm {
	if b.local == nil {
		return nil
	}
	e, ok := b.local.parent.Encoder.(*hybrid.Encoder)
	if !ok {
		return nil
	}
	return &fit.Warm{Table: e.Views().Table, From: int32(b.local.parent.Vectorizer.Dim()),
		TextWeight: e.Views().TextWeight, Fresh: b.local.fresh, Changed: b.local.changed}
}

// close frees what the parent holds.
func (l *local) close() {
	if l != nil {
		train.Close(l.parent.Encoder) //nolint:errcheck // it was read, whatever a device says
	}
}
