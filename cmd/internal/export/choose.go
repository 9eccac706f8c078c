package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// ErrLeaks: a generation has seen what came after the point.
var ErrLeaks = errors.New("no generation was made before this point")

// generation opens the one that makes embeddings and features, nil for none.
func (e *run) generation(ctx context.Context) (*generation.Generation, error) {
	var doc *generation.Doc
	var err error
	switch e.Generation {
	case NoGeneration:
		return nil, nil
	case Fitting:
		doc, err = e.fitting(ctx)
	default:
		doc, err = generation.Load(ctx, e.Store, e.Generation)
	}
	if err != nil {
		return nil, err
	}
	e.doc.Generation, e.doc.Space = doc.Generation, doc.SpaceOf()
	return generation.Open(ctx, e.Store, doc, e.Device)
}

// fitting returns the newest generation that is ready and has seen nothing beyond the point.
func (e *run) fitting(ctx context.Context) (*generation.Doc, error) {
	numbers, err := generation.Numbers(ctx, e.Store)
	if err != nil {
		return nil, err
	}
	e.Progress.Stage("choose a generation", int64(len(numbers)))
	why := "the store has none"
	for _, n := range slices.Backward(numbers) {
		doc, err := e.ready(ctx, n)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			continue
		}
		if why, err = e.sawMore(ctx, doc); err != nil {
			return nil, err
		}
		if why == "" {
			return doc, nil
		}
		e.Progress.Add(1)
	}
	return nil, fmt.Errorf("%w: %s. --generation none exports the rows alone; --generation N takes a generation that "+
		"has seen more, which leaks into what is trained on its embeddings", ErrLeaks, why)
}

// ready returns a generation's document, nil if it is not ready.
func (e *run) ready(ctx context.Context, n int64) (*generation.Doc, error) {
	doc, err := generation.Load(ctx, e.Store, n)
	if errors.Is(err, generation.ErrNone) || generation.IsDamage(err) {
		return nil, nil
	}
	if err != nil || doc.Status != generation.Ready {
		return nil, err
	}
	damage, err := generation.Damaged(ctx, e.Store, n)
	if damage != nil {
		return nil, err
	}
	return doc, err
}

// sawMore says what of beyond the point a generation was made from, "" for nothing.
func (e *run) sawMore(ctx context.Context, doc *generation.Doc) (string, error) {
	for p := range e.shards {
		if doc.Cut[p] > e.cut[p] {
			return fmt.Sprintf("generation %d has seen manifest %d of shard %d, the export ends at %d", doc.Generation,
				doc.Cut[p], p, e.cut[p]), nil
		}
	}
	if e.AsOf.IsZero() {
		return "", nil
	}
	for p := range e.shards {
		latest, _, err := commitlog.Cut(doc.Cut).Latest(ctx, e.Store, p, commitlog.Forever)
		if err != nil {
			return "", err
		}
		if latest > e.AsOf.UnixMicro() {
			return fmt.Sprintf("generation %d has seen a change of %s", doc.Generation,
				time.UnixMicro(latest).UTC().Format(time.RFC3339Nano)), nil
		}
	}
	return "", nil
}
