package commitlog

import (
	"context"
	"errors"
	"fmt"

	"giantstream/sink"
	"giantstream/stream/commitlog/checkpoint"
)

// Orphans removes from the store what a shard no longer needs: row objects that no manifest names,
// and old state checkpoints with the files that only they name (see
// checkpoint.Superfluous). Such row objects were left by workers that died or were fenced between writing
// rows and committing them.
//
// It may run at any time, in any process, beside workers of the shard, even ones that another
// worker has fenced. The name of a row object has the number of its window, and only the manifest
// of that number can name the object. Manifests are created once and never change. So once manifest
// n exists, an object of window n that it does not name will never be named: its writer has lost
// the race for n, whether or not it knows. Objects of windows without a manifest are left alone,
// because a worker may be about to commit them. Time plays no part in this. A fenced worker that is
// still writing window n may miss its own object when it reads it back; it then fails a little
// earlier than it would have at the manifest.
//
// Orphans is not safe for concurrent use.
type Orphans struct {
	store sink.Store
	shard int
	// verified is the newest window with objects compared with their manifest; -1 before the first
	// call.
	verified int64
}

// orphanLookBack is how many windows before the head the first call compares with their manifests.
const orphanLookBack = 100

// NewOrphans returns a collector for one shard.
func NewOrphans(store sink.Store, shard int) *Orphans {
	return &Orphans{store: store, shard: shard, verified: -1}
}

// Remove removes the orphans among the objects of windows up to the head. It lists all row objects
// of the shard, one request per thousand. It reads the manifests of windows that are new since the
// last call, and of older windows with objects of several sessions. So the first call misses
// objects of an old window whose manifest names none. They are there only if the worker that
// committed that window died, too, before it removed them.
func (o *Orphans) Remove(ctx context.Context) (Removed, error) {
	removed, err := o.remove(ctx)
	if err != nil {
		return removed, fmt.Errorf("remove orphaned rows of shard %d: %w", o.shard, err)
	}
	for info, err := range checkpoint.Superfluous(ctx, o.store, o.shard) {
		if err == nil {
			err = removed.object(ctx, o.store, info)
		}
		if err != nil {
			return removed, fmt.Errorf("remove old state checkpoints of shard %d: %w", o.shard, err)
		}
	}
	return removed, nil
}

func (o *Orphans) remove(ctx context.Context) (removed Removed, err error) {
	head, err := headAfter(ctx, o.store, o.shard, max(0, o.verified))
	if err != nil {
		return removed, err
	}
	if o.verified < 0 {
		o.verified = max(0, head-orphanLookBack)
	}
	var window rowWindow
	for info, err := range o.store.List(ctx, rowsPrefix(o.shard), "") {
		if err != nil {
			return removed, err
		}
		seq, session, ok := parseRowKey(o.shard, info.Key)
		if !ok {
			continue // not a row object's key
		}
		if seq > head {
			break // keys ascend by window
		}
		if seq != window.seq {
			if err := o.removeUnnamed(ctx, &window, &removed); err != nil {
				return removed, err
			}
			window = rowWindow{seq: seq, session: session}
		}
		window.several = window.several || session != window.session
		window.objects = append(window.objects, info)
	}
	if err := o.removeUnnamed(ctx, &window, &removed); err != nil {
		return removed, err
	}
	o.verified = head
	return removed, nil
}

// rowWindow is what is stored for one window.
type rowWindow struct {
	seq     int64
	session string // session that wrote the first object
	several bool   // other sessions wrote some, too
	objects []sink.Info
}

// removeUnnamed removes the window's objects that its manifest does not name.
func (o *Orphans) removeUnnamed(ctx context.Context, w *rowWindow, removed *Removed) error {
	if len(w.objects) == 0 || w.seq <= o.verified && !w.several {
		return nil
	}
	objects, merged, err := o.objectsOf(ctx, w.seq)
	if merged || err != nil {
		return err
	}
	named := make(map[string]bool, len(objects))
	for _, object := range objects {
		named[object.Key] = true
	}
	for _, info := range w.objects {
		if named[info.Key] {
			continue
		}
		if err := removed.object(ctx, o.store, info); err != nil {
			return err
		}
	}
	return nil
}

// objectsOf returns the objects of a window. Behind the boundary, a folded block has their names. Where there is none,
// the rows are merged: a Compactor removes the window's objects, named or not.
func (o *Orphans) objectsOf(ctx context.Context, seq int64) (objects []Object, merged bool, err error) {
	m, err := ReadCommitted(ctx, o.store, o.shard, seq)
	if err == nil {
		return m.Objects, false, nil
	}
	if !errors.Is(err, ErrRemoved) {
		return nil, false, err
	}
	f, err := readFolded(ctx, o.store, o.shard, blockStart(1, seq))
	if errors.Is(err, sink.ErrNotFound) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, w := range f.Windows {
		if w.Seq == seq {
			return w.Objects, false, nil
		}
	}
	return nil, false, nil
}
