package generation

import (
	"context"
	"errors"
	"fmt"
	"math"

	"giantstream/featurize/labeltree"
	"giantstream/sink"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
)

// Limits of warm starts, beyond which a generation is built from scratch.
const (
	// warmSteps is how many generations in a row start warm, or are local refreshes.
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
	case !CanRefreshLocally(parent, b.Settings):
		return fmt.Sprintf("generation %d has other settings, or no encoder hybrid of label features pifa",
			parent.Generation)
	case parent.WarmSteps+parent.LocalSteps >= warmSteps:
		return fmt.Sprintf("%d generations in a row have started warm or were local refreshes",
			parent.WarmSteps+parent.LocalSteps)
	case refused != nil && refused.WarmOf != 0:
		return fmt.Sprintf("generation %d started warm, and was refused", refused.Generation)
	case parent.WarmOf != 0 && len(parent.Shortfalls) > 0:
		return fmt.Sprintf("generation %d started warm, and is worse than text alone", parent.Generation)
	case m != nil && s.AUC-m.AUC > warmWorse*math.Hypot(s.StdErr, m.AUCStdErr):
		return fmt.Sprintf("the link AUC has fallen from %.3f to %.3f since generation %d", s.AUC, m.AUC, s.Generation)
	}
	return ""
}

// startWarm notes in the document of a build that begins that it starts from the parent, or logs why not. Other
// encoders than hybrid never do, and who has chosen one need not read so of every generation.
func (b *Builder) startWarm(doc, parent, refused *Doc) {
	if b.Settings.Encoder != hybrid.Kind {
		return
	}
	if why := b.cold(parent, refused); why != "" {
		b.logCold(parent.Generation, why)
		return
	}
	doc.WarmOf, doc.WarmSteps, doc.WarmUnknown = parent.Generation, parent.WarmSteps+1, b.WarmUnknown
	doc.Scratch = new(parent.scratch())
}

func (b *Builder) logCold(parent int64, why string) {
	b.Log.Info("the generation is built from scratch and does not start warm", "parent", parent, "because", why)
}

// forget makes a document that of a build from scratch.
func (d *Doc) forget() {
	d.WarmOf, d.WarmSteps, d.Warm, d.Scratch = 0, 0, nil, nil
	d.LocalOf, d.LocalSteps, d.Local = 0, 0, nil
}

// BeginFromScratch is Begin for a build that can keep nothing of the parent but its space.
func (b *Builder) BeginFromScratch(ctx context.Context, g int64, cut map[int]int64) (*Doc, error) {
	full := *b
	full.Mode = Full
	doc, err := full.Begin(ctx, g, cut)
	if err != nil || doc.Complete() || doc.LocalOf+doc.WarmOf == 0 {
		return doc, err
	}
	b.logCold(doc.Parent, "a staged build is always one from scratch")
	doc.forget()
	return doc, doc.save(ctx, b.Store)
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
	b.logCold(b.doc.WarmOf, why)
	b.doc.forget()
	for _, name := range []string{VectorizerName, ProjectionName, TreeName} {
		if err := b.Store.Delete(ctx, b.key(name)); err != nil {
			return err
		}
	}
	return b.doc.save(ctx, b.Store)
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
	level, divided := labeltree.Divided(b.kept.parent.Tree, tree, b.kept.from)
	b.doc.Warm.Level, b.doc.Warm.Subtrees = level, len(divided)
}
