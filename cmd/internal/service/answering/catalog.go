package answering

import (
	"context"
	"time"

	"giantstream/internal/retry"
)

// catalogPoll is the interval at which the index follows the commit log.
const catalogPoll = 500 * time.Millisecond

// followCatalog keeps the index of similar items up to date until ctx ends. While the store is away, what is in the
// index is answered.
func (a *Answer) followCatalog(ctx context.Context) error {
	pause := retry.Backoff{Min: catalogPoll, Max: 30 * time.Second}
	number := int64(0)
	for {
		began := time.Now()
		_, err := a.Catalog.Update(ctx)
		wait := catalogPoll
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			wait = pause.Next()
			a.Log.Warn("the index of similar items is behind, trying again", "in", wait, "error", err)
		default:
			pause.Reset()
			a.observer.read.Store(began.UnixNano())
			if size, err := a.Catalog.Size(); err == nil && size.Generation != number {
				number = size.Generation
				a.Log.Info("similar items are served", "generation", number, "nodes", size.Nodes,
					"cells", size.Cells, "cells_a_question", size.Probed)
			}
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
