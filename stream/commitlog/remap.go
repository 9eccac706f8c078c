package commitlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"giantstream/internal/retry"
	"giantstream/internal/seal"
	"giantstream/sink"
)

// ErrRemapped: the pipeline of the store may not publish because of a change of its mapping.
const ErrRemapped = retry.FinalError("cannot publish because of a change of its mapping")

// Remap is a change of the mapping: the pipeline of the store From goes on in the store Into, which reads all records
// again. Unlike with Reshard, workers may run on both stores meanwhile, but for those that publish: on Into until
// Complete, and on From since Leave.
type Remap struct {
	From, Into sink.Store
	FromID     string // id of the pipeline in From
	Shards     int
	// Groups are the consumer groups of the pipeline in From.
	Groups []string
}

// document is that of both stores.
func (r *Remap) document() Reshard {
	return Reshard{Format: reshardFormat, From: r.From.URL(), FromID: r.FromID, Into: r.Into.URL(), Shards: r.Shards,
		Remap: true, Began: time.Now().UTC()}
}

// CheckRemap returns ErrRemapped if the pipeline of a store may not publish.
func CheckRemap(ctx context.Context, store sink.Store) error {
	into, from, err := LoadReshards(ctx, store)
	switch {
	case err != nil:
		return err
	case into != nil && into.Remap:
		return fmt.Errorf("store %s %w: 'giantstream remap' has handed over to the store %s. Start workers with its "+
			"configuration; the way back is 'giantstream remap' with that of this store and --from %s", store.URL(),
			ErrRemapped, into.Into, into.Into)
	case from != nil && from.Remap && !from.Done:
		return fmt.Errorf("store %s %w: 'giantstream remap' fills it beside the store %s, and has not handed over "+
			"yet. Run that command until it has; meanwhile workers may help with --roles stream,refresh", store.URL(),
			ErrRemapped, from.From)
	}
	return nil
}

// Begin notes in Into that it is filled: an empty store, one of the same change, or one that was left for From by an
// earlier change, which is the way back. It returns true if the change is complete.
func (r *Remap) Begin(ctx context.Context) (complete bool, err error) {
	left, filled, err := LoadReshards(ctx, r.Into)
	if err != nil {
		return false, err
	}
	doc := r.document()
	switch {
	case left != nil && left.Remap && left.Into == r.From.URL():
		return false, nil
	case left != nil:
		return false, fmt.Errorf("store %s was left for %s: name that one with --from", r.Into.URL(), left.Into)
	case filled != nil && filled.Remap && filled.isSameChange(&doc):
		return filled.Done, nil
	}
	for info, err := range sink.Objects(ctx, r.Into) {
		if err != nil {
			return false, err
		}
		return false, fmt.Errorf("store %s is not empty: it has %s. Name an empty folder or an unused prefix",
			r.Into.URL(), info.Key)
	}
	return false, doc.replace(ctx, r.Into, nil)
}

// Leave notes in From that its pipeline publishes no more, and reads Groups where this was noted before.
func (r *Remap) Leave(ctx context.Context) error {
	doc := r.document()
	doc.Groups = r.Groups
	data, err := seal.JSON(doc, sink.PlaceOf(r.From, reshardIntoKey))
	if err == nil {
		err = r.From.Create(ctx, reshardIntoKey, data)
	}
	if !errors.Is(err, sink.ErrExists) {
		return err
	}
	have, _, err := loadReshard(ctx, r.From, reshardIntoKey)
	switch {
	case err != nil:
		return err
	case have == nil || !have.Remap || !have.isSameChange(&doc):
		return fmt.Errorf("store %s was left for another one: see %s there", r.From.URL(), reshardIntoKey)
	}
	r.Groups = slices.Clone(have.Groups)
	return nil
}

// Complete lets the pipeline of Into publish all of its nodes. What Into says of earlier publications goes: the
// pipeline of From has published since.
func (r *Remap) Complete(ctx context.Context) error {
	left, filled, err := LoadReshards(ctx, r.Into)
	if err != nil {
		return err
	}
	for shard := range r.Shards {
		for _, o := range []Outlet{Served, Canary} {
			if err := r.Into.Delete(ctx, o.key(shard)); err != nil {
				return fmt.Errorf("forget what shard %d published: %w", shard, err)
			}
		}
	}
	if filled != nil && filled.Remap && !filled.Done {
		_, stored, err := loadReshard(ctx, r.Into, reshardFromKey)
		if err != nil {
			return err
		}
		filled.Done = true
		if err := filled.replace(ctx, r.Into, stored); err != nil {
			return err
		}
	}
	if left != nil {
		return r.Into.Delete(ctx, reshardIntoKey)
	}
	return nil
}

// Unheard calls each with the ids of nodes that a shard of a store has, and of which the same shard of another store
// has no row, not even of a deletion. It holds the ids of a shard in memory.
func Unheard(ctx context.Context, of, by sink.Store, ofCut, byCut Cut, shard int, each func(row Row) error) error {
	known := map[string]struct{}{}
	for row, err := range byCut.Attributes(ctx, by, shard) {
		if err != nil {
			return err
		}
		known[row.NodeID] = struct{}{}
	}
	for row, err := range ofCut.Attributes(ctx, of, shard) {
		if err != nil {
			return err
		}
		if _, ok := known[row.NodeID]; ok {
			continue
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}
