package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"giantstream/sink"
)

// Prune removes all but the newest keep ready generations and returns the numbers removed. The pinned one stays, too.
// A generation that is damaged or withdrawn is removed once there is a newer one that is ready, a refused one once
// there is a newer one that is ready or refused, a canary once there is a newer one or a newer one is served. A
// generation that is still building is never touched. The document goes first, so that nobody opens half a generation.
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
	p := pruning{choice: choice, keep: max(keep, 1)}
	for _, g := range slices.Backward(gens) {
		doc, damage, err := loadMarked(ctx, store, g)
		if err != nil && !errors.Is(err, ErrNone) {
			return removed, err
		}
		if p.keeps(g, doc, damage) {
			continue
		}
		if err := store.Delete(ctx, docKey(g)); err != nil {
			return removed, err
		}
		if err := deleteObjects(ctx, store, g); err != nil {
			return removed, err
		}
		removed = append(removed, g)
	}
	return removed, nil
}

// pruning decides about generations, from the newest to the oldest.
type pruning struct {
	choice                   *Choice
	keep                     int
	ready, refused, canaries int // so far
}

// keeps decides about the next generation. doc and damage are as loadMarked returns them.
func (p *pruning) keeps(g int64, doc *Doc, damage *Damage) bool {
	switch {
	case damage != nil: // kept for people until there is a whole one
		return p.ready == 0
	case doc == nil: // nothing newer: a build that is just beginning
		return p.ready+p.refused+p.canaries == 0
	case !doc.Complete(), p.choice.Pinned == g:
		return true
	case p.choice.isWithdrawn(doc):
		return p.ready == 0
	case p.choice.isReady(doc):
		p.ready++
		return p.ready <= p.keep
	case p.choice.isCanary(doc):
		p.canaries++
		return p.ready == 0 && p.canaries == 1
	}
	p.refused++
	return p.ready == 0 && p.refused == 1
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

// RemoveTasks removes what the tasks of a build have exchanged. The plan goes after the rest: while it is there, there
// may be more to remove. A task that comes too late may write until it sees that the plan is gone, and so RemoveTasks
// looks once more.
func RemoveTasks(ctx context.Context, store sink.Store, g int64) error {
	plan := Prefix(g) + TasksPlan
	if err := deleteUnder(ctx, store, Prefix(g)+TasksFolder, plan); err != nil {
		return err
	}
	if err := store.Delete(ctx, plan); err != nil {
		return err
	}
	return deleteUnder(ctx, store, Prefix(g)+TasksFolder)
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
