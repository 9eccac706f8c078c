package refreshing

import (
	"context"
	"errors"
	"time"

	"giantstream/train/generation"
)

// Load makes current what the store says is to be served, and notes what is newer and is not. A generation that
// turns out to be damaged is passed over.
func (r *Refresh) Load(ctx context.Context) error {
	for {
		began := time.Now()
		latest, err := generation.Newest(ctx, r.Store)
		r.noteChoice(err)
		if err != nil {
			return err
		}
		r.refuse(latest.Refused)
		r.noteDamage(latest.Damaged)
		r.noteHeld(latest.Held)
		r.last.Store(latest.Last())
		doc := latest.Current
		if doc == nil || r.Served.Number() == doc.Generation {
			again, err := r.openCanary(ctx, latest.Canary)
			if again && err == nil {
				continue
			}
			if err == nil {
				r.Served.Looked(began, latest.PassedOver())
			}
			return err
		}
		if warning := doc.Warning(); warning != "" {
			r.Log.Warn("the quality gate warns of the generation that is served", "generation", doc.Generation,
				"because", warning)
		}
		err = r.serve(ctx, doc)
		if err == nil {
			continue // with the canary
		}
		if !errors.Is(err, generation.ErrDamaged) {
			return err
		}
		if err := r.Condemn(ctx, doc.Generation, err, func() error { return r.serve(ctx, doc) }); err != nil {
			return err
		}
	}
}

// serve makes a ready generation current.
func (r *Refresh) serve(ctx context.Context, doc *generation.Doc) error {
	before := r.Served.Number()
	g, err := generation.Open(ctx, r.Store, doc, r.Device)
	if err != nil {
		return err
	}
	g.UnknownLabels, g.NGrams = &r.metrics.unknownLabels, &r.metrics.ngrams
	r.drift.serves(doc, &r.metrics.ngrams)
	r.Served.Serve(g)
	if before > doc.Generation {
		r.Log.Info("an older generation is served again, and its embeddings are published again", "generation",
			doc.Generation, "before", before)
	}
	if stored := doc.Settings.Stored; r.Format.LimitTo(stored).String() != r.Format.String() {
		r.Log.Warn("this generation's embeddings were stored smaller than sink.embedding_type and "+
			"sink.embedding_dim now ask for; "+
			"the next generation will have what they say", "generation", doc.Generation,
			"published", r.Format.LimitTo(stored).String(), "configured", r.Format.String())
	}
	r.metrics.generation.Set(float64(doc.Generation))
	r.metrics.shortfalls.Set(float64(len(doc.Shortfalls)))
	r.metrics.declines.Set(float64(len(doc.Declines)))
	r.metrics.compared(doc.Overlap)
	r.Heads.WakeAll()
	return nil
}

// noteHeld notes the newest generation that is ready and, by a choice of people, not served; nil for none.
func (r *Refresh) noteHeld(doc *generation.Doc) {
	number := int64(0)
	if doc != nil {
		number = doc.Generation
		if r.held != number {
			r.Log.Info("a generation is ready and not served: it was withdrawn, or another one is pinned",
				"generation", number)
		}
	}
	r.held = number
	r.metrics.held.Set(float64(number))
}

// refuse notes the newest refused generation, nil for none.
func (r *Refresh) refuse(doc *generation.Doc) {
	r.refused.Store(doc)
	number := 0.0
	if doc != nil {
		number = float64(doc.Generation)
	}
	r.metrics.refused.Set(number)
}

// Refused returns the generation that the quality gate has refused after the one that is served, nil
// for none.
func (r *Refresh) Refused() *generation.Doc { return r.refused.Load() }
