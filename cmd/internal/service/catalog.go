package service

import (
	"context"
	"time"

	"giantstream/internal/retry"
)

// followCatalog keeps the index of similar items up to date until ctx ends. While the store is away, what is in the
// index is answered.
func (s *Service) followCatalog(ctx context.Context) error {
	pause := retry.Backoff{Min: pollAlone, Max: 30 * time.Second}
	number := int64(0)
	for {
		_, err := s.catalog.Update(ctx)
		wait := pollAlone
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			wait = pause.Next()
			s.log.Warn("the index of similar items is behind, trying again", "in", wait, "error", err)
		default:
			pause.Reset()
			if size, err := s.catalog.Size(); err == nil && size.Generation != number {
				number = size.Generation
				s.log.Info("similar items are served", "generation", number, "nodes", size.Nodes,
					"cells", size.Cells, "cells_a_question", size.Probed)
			}
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
