package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/stream/commitlog"
)

// ErrLeaks: a generation has seen what came after the point.
var ErrLeaks = errors.New("no generation was made before this point")

// open chooses and opens what makes embeddings and features, nil for nothing.
func (e *run) open(ctx context.Context) (_ Model, err error) {
	switch e.Generation {
	case NoGeneration:
		return nil, nil
	case Fitting:
		e.made, err = e.fitting(ctx)
	default:
		e.made, err = e.Generations.Load(ctx, e.Generation)
	}
	if err != nil {
		return nil, err
	}
	e.doc.Generation, e.doc.Space = e.made.Number, e.made.Space
	return e.Generations.Open(ctx, e.made.Number)
}

// fitting returns the newest generation that is ready and has seen nothing beyond the point.
func (e *run) fitting(ctx context.Context) (Generation, error) {
	e.Progress.Stage("choose a generation", 0)
	why := "the store has none"
	for g, err := range e.Generations.Ready(ctx) {
		if err == nil {
			why, err = e.sawMore(ctx, g)
		}
		if err != nil || why == "" {
			return g, err
		}
		e.Progress.Add(1)
	}
	return Generation{}, fmt.Errorf("%w: %s. --generation none exports the rows alone; --generation N takes a "+
		"generation that has seen more, which leaks into what is trained on its embeddings", ErrLeaks, why)
}

// sawMore says what of beyond the point a generation was made from, "" for nothing.
func (e *run) sawMore(ctx context.Context, g Generation) (string, error) {
	for p := range e.shards {
		if g.Cut[p] > e.cut[p] {
			return fmt.Sprintf("generation %d has seen manifest %d of shard %d, the export ends at %d", g.Number,
				g.Cut[p], p, e.cut[p]), nil
		}
	}
	if e.AsOf.IsZero() {
		return "", nil
	}
	for p := range e.shards {
		latest, _, err := g.Cut.Latest(ctx, e.Store, p, commitlog.Forever)
		if err != nil {
			return "", err
		}
		if latest > e.AsOf.UnixMicro() {
			return fmt.Sprintf("generation %d has seen a change of %s", g.Number,
				time.UnixMicro(latest).UTC().Format(time.RFC3339Nano)), nil
		}
	}
	return "", nil
}
