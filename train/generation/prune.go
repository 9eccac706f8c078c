package generation

import (
	"context"
	"fmt"
	"slices"

	"giantstream/sink"
)

// Prune removes all but the newest keep ready generations and returns the numbers removed. The pinned one stays, too.
// A generation that is damaged or withdrawn is removed once there is a newer one that is ready, a refused one once there
// is a newer one that is ready or refused. A generation that is still building is never touched. The document goes
// first, so that nobody opens half a generation.
func Prune(ctx context.Context, store sink.Store, keep int) ([]int64, error) {
	gens, err := Numbers(ctx, store)
	if err != nil {
		return nil, err
	}
	choice, err := LoadChoice(ctx, store)
	if err != nil {
		return nil, err
	}
	var removed []int64
	ready, refused := 0, 0
	for i := len(gens) - 1; i >= 0; i-- {
		doc, damage, err := loadMarked(ctx, store, gens[i])
		switch {
		case err == nil && damage != nil && ready == 0: // kept for people until there is a whole one
			continue
		case err == nil && damage != nil:
			if err := store.Delete(ctx, docKey(gens[i])); err != nil {
				return removed, err
			}
		case err == nil && choice.Pinned == gens[i], err == nil && choice.isWithdrawn(doc) && ready == 0:
			continue
		case err == nil && choice.isReady(doc) && ready < max(keep, 1):
			ready++
			continue
		case err == nil && doc.Status == Refused && ready+refused == 0:
			refused++
			continue
		case err == nil && !doc.Complete():
			continue
		case err == nil:
			if err := store.Delete(ctx, docKey(gens[i])); err != nil {
				return removed, err
			}
		case ready+refused == 0: // no document yet: a build that is just beginning
			continue
		}
		if err := deleteObjects(ctx, store, gens[i]); err != nil {
			return removed, err
		}
		removed = append(removed, gens[i])
	}
	return removed, nil
}

// Discard removes an unfinished generation, so that the next build begins anew. Its document goes last:
// what is left when Discard fails is still that unfinished generation.
func Discard(ctx context.Context, store sink.Store, doc *Doc) error {
	if doc.Complete() {
		return fmt.Errorf("generation %d is %s: only an unfinished one is discarded", doc.Generation, doc.Status)
	}
	if err := deleteObjects(ctx, store, doc.Generation, docKey(doc.Generation)); err != nil {
		return err
	}
	return store.Delete(ctx, docKey(doc.Generation))
}

// deleteObjects removes the objects of a generation but those to keep.
func deleteObjects(ctx context.Context, store sink.Store, g int64, keep ...string) error {
	return deleteUnder(ctx, store, Prefix(g), keep...)
}

// RemoveTasks removes what the tasks of a staged build have exchanged, the plan last: while it is there, there may be
// more to remove.
func RemoveTasks(ctx context.Context, store sink.Store, g int64) error {
	plan := Prefix(g) + TasksPlan
	if err := deleteUnder(ctx, store, Prefix(g)+TasksFolder, plan); err != nil {
		return err
	}
	return store.Delete(ctx, plan)
}

// deleteUnder removes the objects below a prefix but those to keep.
func deleteUnder(ctx context.Context, store sink.Store, prefix string, keep ...string) error {
	for info, err := range store.List(ctx, prefix, "") {
		if err == nil && !slices.Contains(keep, info.Key) {
			err = store.Delete(ctx, info.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
