package generation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/projection"
	"giantstream/featurize/tfidf"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// Limits of warm starts, beyond which a generation is built from scratch.
const (
	// warmSteps is how many generations in a row start warm.
	warmSteps = 4
	// warmNew is the share of the nodes that the parent did not have.
	warmNew = 0.2
	// warmWorse is by how many standard errors of the difference the link AUC may be below that of the generation that
	// was last built from scratch.
	warmWorse = 2
	// minUnknownTexts is how many changed texts tell what share of n-grams is unknown.
	minUnknownTexts = 200
)

// WarmStats says what a warm start has found changed, and made anew.
type WarmStats struct {
	// Changed nodes have rows since the parent's cut, New are nodes that the parent did not have.
	Changed int `json:"changed"`
	New     int `json:"new"`
	// UnknownShare of the n-grams of the changed nodes' texts are not in the vocabulary.
	UnknownShare float64 `json:"unknown_share"`
	// Subtrees of level Level of the label tree were divided anew.
	Level    int `json:"level"`
	Subtrees int `json:"subtrees"`
}

// Scratch is the generation that warm starts go back to, and its figures; AUC is 0 where it was not measured.
type Scratch struct {
	Generation int64   `json:"generation"`
	AUC        float64 `json:"link_auc,omitempty"`
	StdErr     float64 `json:"link_auc_stderr,omitempty"`
}

// scratch returns what the warm starts after a generation go back to.
func (d *Doc) scratch() Scratch {
	if d.Scratch != nil {
		return *d.Scratch
	}
	s := Scratch{Generation: d.Generation}
	if m := d.links(); m != nil {
		s.AUC, s.StdErr = m.AUC, m.AUCStdErr
	}
	return s
}

// links returns how well the encoder tells held-out links, nil where it was not measured.
func (d *Doc) links() *eval.LinkMetrics {
	for _, e := range d.Evaluation {
		if e.Encoder == d.Encoder.Kind {
			return e.Links
		}
	}
	return nil
}

// cold says why a generation cannot start warm from its parent, "" if it can: what is known before the cut is read.
func (b *Builder) cold(parent, refused *Doc) string {
	s := parent.scratch()
	m := parent.links()
	switch {
	case b.NewSpace:
		return "a new space is asked for"
	case !suits(parent, b.Settings):
		return fmt.Sprintf("generation %d has other settings, or no encoder that can go on, of label features pifa",
			parent.Generation)
	case parent.WarmSteps >= warmSteps:
		return fmt.Sprintf("%d generations in a row have started warm", parent.WarmSteps)
	case refused != nil && refused.WarmOf != 0:
		return fmt.Sprintf("generation %d started warm, and was refused", refused.Generation)
	case parent.WarmOf != 0 && len(parent.Shortfalls) > 0:
		return fmt.Sprintf("generation %d started warm, and is worse than text alone", parent.Generation)
	case m != nil && s.AUC-m.AUC > warmWorse*math.Hypot(s.StdErr, m.AUCStdErr):
		return fmt.Sprintf("the link AUC has fallen from %.3f to %.3f since generation %d", s.AUC, m.AUC, s.Generation)
	}
	return ""
}

// startWarm notes in the document of a build that begins that it starts from the parent, or logs why not. Kinds of
// encoders that never do are not logged.
func (b *Builder) startWarm(doc, parent, refused *Doc) {
	if !fit.KindOf(b.Settings.Encoder).StartsWarm {
		return
	}
	if why := b.cold(parent, refused); why != "" {
		LogCold(b.Log, parent.Generation, why)
		return
	}
	doc.WarmOf, doc.WarmSteps, doc.WarmUnknown = parent.Generation, parent.WarmSteps+1, b.WarmUnknown
	doc.Scratch = new(parent.scratch())
}

// LogCold says why a generation does not start from its parent.
func LogCold(log *slog.Logger, parent int64, why string) {
	log.Info("the generation is built from scratch and does not start warm", "parent", parent, "because", why)
}

// Forget makes a document that of a build from scratch.
func (d *Doc) Forget() {
	d.WarmOf, d.WarmSteps, d.Warm, d.Scratch = 0, 0, nil, nil
}

// BeginFromScratch is Begin for a build that can keep nothing of the parent but its space.
func (b *Builder) BeginFromScratch(ctx context.Context, g int64, cut map[int]int64) (*Doc, error) {
	full := *b
	full.Warm = false
	doc, err := full.Begin(ctx, g, cut)
	if err != nil || doc.Complete() || doc.WarmOf == 0 {
		return doc, err
	}
	LogCold(b.Log, doc.Parent, "a staged build is always one from scratch")
	doc.Forget()
	return doc, doc.Save(ctx, b.Store)
}

// suits says whether a generation of some settings can start from its parent.
func suits(parent *Doc, s fit.Settings) bool {
	before := parent.Settings
	before.Stored, s.Stored = embedding.Format{}, embedding.Format{}
	return parent.TextOnly == "" && fit.KindOf(s.Encoder).StartsWarm && parent.Encoder.Kind == s.Encoder &&
		(s.LabelFeatures == "pifa" || s.LabelFeatures == "") && reflect.DeepEqual(before, s)
}

// kept is what a warm start keeps of the parent.
type kept struct {
	parent  *Generation
	from    []int32 // by node: the parent's label, or -1
	changed []int32
	fresh   []int32 // those of changed that the parent did not have
}

// openKept opens what a warm start keeps. Without a parent any more, the build is from scratch.
func (b *build) openKept(ctx context.Context) error {
	if b.doc.WarmOf == 0 {
		return nil
	}
	parent, err := Load(ctx, b.Store, b.doc.WarmOf)
	var g *Generation
	if err == nil {
		g, err = Open(ctx, b.Store, parent, b.resources.Device)
	}
	if errors.Is(err, ErrNone) || IsDamage(err) {
		return b.turnCold(ctx, fmt.Sprintf("the generation before is gone or damaged: %v", err))
	}
	if err != nil {
		return err
	}
	b.kept = b.keep(g)
	return b.checkWarm(ctx)
}

// keep finds the nodes of the cut among the labels of the parent.
func (b *build) keep(parent *Generation) *kept {
	k := &kept{parent: parent, from: make([]int32, b.corpus.Graph.Len())}
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

// vectorizer fits Ψ, or keeps the parent's.
func (b *build) vectorizer(ctx context.Context, in *fit.Inputs) (*tfidf.Model, error) {
	if b.kept != nil {
		return b.kept.parent.Vectorizer, nil
	}
	return fit.Vectorizer(ctx, in.Texts, b.doc.Settings, b.resources)
}

// projection fits the projection, or keeps the parent's.
func (b *build) projection(in *fit.Inputs) (*projection.Projection, error) {
	if b.kept != nil {
		return b.kept.parent.Projection, nil
	}
	return fit.Projection(in.Features, b.doc.Settings, b.resources)
}

// tree builds the label tree, or renews the parent's.
func (b *build) tree(x labeltree.Features) (*labeltree.Tree, error) {
	s := b.doc.Settings
	if b.kept == nil {
		return fit.BuildTree(x, s, b.Workers)
	}
	return fit.RenewTree(b.kept.parent.Tree, b.kept.from, x, s, b.Workers)
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
	return &fit.Warm{Parent: e, Changed: len(b.kept.changed)}
}

// close frees what the parent holds.
func (k *kept) close() {
	if k != nil {
		train.Close(k.parent.Encoder) //nolint:errcheck // it was read, whatever a device says
	}
}

// turnCold makes a build that was to start warm one from scratch, unless its encoder is trained already. What an
// interrupted run has kept of the parent is removed: everything after it is made for a vocabulary of its own.
func (b *build) turnCold(ctx context.Context, why string) error {
	b.kept.close()
	b.kept = nil
	switch _, err := sink.ReadAll(ctx, b.Store, b.key(EncoderName+"/config.json")); {
	case err == nil:
		return nil
	case !errors.Is(err, sink.ErrNotFound):
		return err
	}
	LogCold(b.Log, b.doc.WarmOf, why)
	b.doc.Forget()
	for _, name := range []string{VectorizerName, ProjectionName, TreeName} {
		if err := b.Store.Delete(ctx, b.key(name)); err != nil {
			return err
		}
	}
	return b.doc.Save(ctx, b.Store)
}

// checkWarm decides, now that the cut is read, whether the parent is near enough to start from.
func (b *build) checkWarm(ctx context.Context) error {
	k, nodes := b.kept, b.corpus.Graph.Len()
	if share := float64(len(k.fresh)) / float64(max(1, nodes)); share > warmNew {
		return b.turnCold(ctx, fmt.Sprintf("%.0f %% of the nodes are new, more than %.0f %%", 100*share, 100*warmNew))
	}
	stats := &WarmStats{Changed: len(k.changed), New: len(k.fresh)}
	var err error
	stats.UnknownShare, err = fit.UnknownShare(ctx, k.parent.Vectorizer, b.corpus.Texts.Subset(k.changed), b.resources)
	if err != nil {
		return err
	}
	before := k.parent.Doc.Vectorizer.UnknownShare
	if b.doc.WarmUnknown > 0 && len(k.changed) >= minUnknownTexts && stats.UnknownShare > before+b.doc.WarmUnknown {
		return b.turnCold(ctx, fmt.Sprintf("the vocabulary lacks %.3f of the changed texts' n-grams, and %.3f of "+
			"those that it was fitted to", stats.UnknownShare, before))
	}
	b.doc.Warm = stats
	return nil
}

// noteWarm adds to the document what a warm start has made anew.
func (b *build) noteWarm(tree *labeltree.Tree) {
	if b.kept == nil {
		return
	}
	level, divided := labeltree.Divided(b.kept.parent.Tree, tree, b.kept.from)
	b.doc.Warm.Level, b.doc.Warm.Subtrees = level, len(divided)
}
