package generation

import (
	"context"

	"giantstream/sink"
)

// Prune removes all but the newest keep ready generations and returns the
// numbers removed. A generation that is still building is never touched. The
// document goes first, so that nobody opens half a generation.
func Prune(ctx context.Context, store sink.Store, keep int) ([]int64, error) {
	gens, err := Numbers(ctx, store)
	if err != nil {
		return nil, err
	}
	var removed []int64
	ready := 0
	for i := len(gens) - 1; i >= 0; i-- {
		doc, err := Load(ctx, store, gens[i])
		switch {
		case err == nil && doc.Status != Ready:
			continue
		case err == nil:
			if ready++; ready <= max(keep, 1) {
				continue
			}
			if err := store.Delete(ctx, docKey(gens[i])); err != nil {
				return removed, err
			}
		case ready == 0: // no document yet: a build that is just beginning
			continue
		}
		for info, err := range store.List(ctx, Prefix(gens[i]), "") {
			if err != nil {
				return removed, err
			}
			if err := store.Delete(ctx, info.Key); err != nil {
				return removed, err
			}
		}
		removed = append(removed, gens[i])
	}
	return removed, nil
}
