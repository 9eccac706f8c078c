package drift

import (
	"context"
	"errors"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
)

const (
	documentKey    = "drift.json"
	documentFormat = 1
)

// Document is drift.json: what a process that refreshes has measured last. It informs people, and nothing depends on
// it. Format page: docs/format/generation.md.
type Document struct {
	Format int       `json:"format"`
	At     time.Time `json:"at"`
	// Changes is how many rows were committed since the newest generation's cut, NeedsChanges how many there must be
	// before anything that has drifted asks for a new one.
	Changes      int64      `json:"changes"`
	NeedsChanges int64      `json:"needs_changes"`
	Thresholds   Thresholds `json:"thresholds"`
	Evidence
}

// Save replaces the document in the store.
func (d Document) Save(ctx context.Context, store sink.Store) error {
	d.Format = documentFormat
	data, err := seal.JSON(d, sink.PlaceOf(store, documentKey))
	if err != nil {
		return err
	}
	return sink.PutBytes(ctx, store, documentKey, data)
}

// Load returns the document in a store. It is nil if there is none, or none that can be read: then nothing is known.
func Load(ctx context.Context, store sink.Store) (*Document, error) {
	data, err := sink.ReadAll(ctx, store, documentKey)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &Document{}
	if sealed, err := seal.Decode(data, sink.PlaceOf(store, documentKey), d); err != nil || !sealed {
		return nil, nil //nolint:nilerr // measured again by the next process that refreshes
	}
	if d.Format != documentFormat {
		return nil, nil
	}
	return d, nil
}

// Audit checks the document in a store.
func Audit(ctx context.Context, a *audit.Audit) error {
	if !a.Has(documentKey) {
		return nil
	}
	d, err := Load(ctx, a.Store)
	if err != nil {
		return err
	}
	a.Document(documentKey, d != nil)
	if d != nil {
		return nil
	}
	return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: documentKey, What: "it is not what was stored",
		Lost: "what has drifted, until a process that refreshes has measured it again"}, "remove it",
		func(ctx context.Context) error { return a.Store.Delete(ctx, documentKey) })
}
