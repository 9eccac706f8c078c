package stream

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"giantstream/sink"
)

// Orphans removes what is of no use any more in one shard: row objects that no
// manifest names, left by workers that died or were fenced between writing rows
// and committing them, and old state checkpoints with the files that only they
// name (see doc.go, "Checkpoints").
//
// It may run at any time, in any process, beside workers of the shard, zombies
// included. A row object's name bears the number of the window that it was written
// for, and only the manifest of that number names it, if any does. Manifests are created
// once and never change. So once manifest n exists, an object of window n
// that it does not name never will be named: whoever wrote it has lost the race
// for n, known or not. Objects of windows that have no manifest yet are left
// alone, since somebody may be about to commit them. Time plays no part in this. A
// zombie that is still writing window n may miss its own object when it reads
// it back; it then fails a little earlier than it would have at the manifest.
//
// Not safe for concurrent use.
type Orphans struct {
	store sink.Store
	shard int
	// verified: the objects of windows up to here were compared with their
	// manifests, -1 before the first call.
	verified int64
}

// Removed counts what was removed.
type Removed struct {
	Objects int
	Bytes   int64
}

// orphanLookBack is how many windows before the head the first call compares
// with their manifests.
const orphanLookBack = 100

// NewOrphans returns a collector for one shard.
func NewOrphans(store sink.Store, shard int) *Orphans {
	return &Orphans{store: store, shard: shard, verified: -1}
}

// Remove removes the orphans among the objects of windows up to the head. It
// lists all row objects of the shard, a request per thousand, and reads the
// manifests of windows that are new since the last call or that several workers have
// written objects for. What it misses of older windows, on its first call, is
// rows of a window that was committed without any, and only because the worker
// that committed it died, too, before it came to look.
func (o *Orphans) Remove(ctx context.Context) (Removed, error) {
	removed, err := o.remove(ctx)
	if err != nil {
		return removed, fmt.Errorf("remove orphaned rows of shard %d: %w", o.shard, err)
	}
	if err := o.removeStates(ctx, &removed); err != nil {
		return removed, fmt.Errorf("remove old state checkpoints of shard %d: %w", o.shard, err)
	}
	return removed, nil
}

func (o *Orphans) remove(ctx context.Context) (removed Removed, err error) {
	head, err := headSeq(ctx, o.store, o.shard, max(0, o.verified))
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
			continue // not ours to judge
		}
		if seq > head {
			break // keys ascend by window
		}
		if seq != window.seq {
			if err := o.judge(ctx, &window, &removed); err != nil {
				return removed, err
			}
			window = rowWindow{seq: seq, session: session}
		}
		window.several = window.several || session != window.session
		window.objects = append(window.objects, info)
	}
	if err := o.judge(ctx, &window, &removed); err != nil {
		return removed, err
	}
	o.verified = head
	return removed, nil
}

// rowWindow is what is stored for one window.
type rowWindow struct {
	seq     int64
	session string // that wrote the first object
	several bool   // other sessions wrote some, too
	objects []sink.Info
}

// judge removes the window's objects that its manifest does not name.
func (o *Orphans) judge(ctx context.Context, w *rowWindow, removed *Removed) error {
	if len(w.objects) == 0 || w.seq <= o.verified && !w.several {
		return nil
	}
	m, err := readManifest(ctx, o.store, o.shard, w.seq)
	if err != nil {
		return err
	}
	named := make(map[string]bool, len(m.Objects))
	for _, object := range m.Objects {
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

// object removes one and counts it.
func (r *Removed) object(ctx context.Context, store sink.Store, info sink.Info) error {
	if err := store.Delete(ctx, info.Key); err != nil {
		return err
	}
	r.Objects++
	r.Bytes += info.Size
	return nil
}

func rowsPrefix(shard int) string { return ShardPrefix(shard) + "rows/" }

// rowKey names a window's n-th object, of the session that writes it.
func rowKey(shard int, seq int64, session string, n int64) string {
	return fmt.Sprintf("%s%020d-%s-%d.parquet", rowsPrefix(shard), seq, session, n)
}

// parseRowKey is the inverse of rowKey.
func parseRowKey(shard int, key string) (seq int64, session string, ok bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, rowsPrefix(shard)), ".parquet")
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return 0, "", false
	}
	seq, err := strconv.ParseInt(parts[0], 10, 64)
	n, nerr := strconv.ParseInt(parts[2], 10, 64)
	ok = err == nil && nerr == nil && seq > 0 && rowKey(shard, seq, parts[1], n) == key
	return seq, parts[1], ok
}
