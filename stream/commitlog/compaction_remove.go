package commitlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// Remove removes row objects that have been merged for longer than the grace, and the objects of
// attempts to merge that came too late.
//
// keep is the oldest cut of this shard that must stay readable; blocks that end beyond it keep
// their parts. A reader at that cut or a newer one finds every block that ends at or before keep,
// and does not miss the parts. A reader that looked before the block was merged has had the grace
// to read.
func (c *Compactor) Remove(ctx context.Context, keep int64) (removed Removed, err error) {
	c.known, c.blocks = c.blocks, map[block]blockState{}
	if c.noted, err = readRemoved(ctx, c.opts.Store, c.opts.Shard); err != nil && !errors.Is(err, ErrDamaged) {
		return removed, err
	}
	err = c.removeParts(ctx, rowsPrefix(c.opts.Shard), keep, &removed, func(key string) (part, bool) {
		seq, _, ok := parseRowKey(c.opts.Shard, key)
		return part{parent: block{1, blockStart(1, seq)}}, ok
	})
	if err == nil {
		err = c.removeParts(ctx, compactedPrefix(c.opts.Shard), keep, &removed, func(key string) (part, bool) {
			level, from, ok := parseCompactedKey(c.opts.Shard, key)
			return part{own: block{level, from}, parent: block{level + 1, blockStart(level+1, from)}}, ok
		})
	}
	// no document yet: ask again next time
	maps.DeleteFunc(c.blocks, func(_ block, s blockState) bool { return s.created.IsZero() })
	if err != nil {
		return removed, fmt.Errorf("remove merged rows of shard %d: %w", c.opts.Shard, err)
	}
	return removed, nil
}

// part is an object and the block that it is merged into.
type part struct {
	parent block
	own    block // the block whose document should name it; level 0 for rows of a window
}

func (c *Compactor) removeParts(ctx context.Context, prefix string, keep int64, removed *Removed,
	parse func(key string) (part, bool)) error {
	for info, err := range c.opts.Store.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		p, ok := parse(info.Key)
		if !ok {
			continue
		}
		unnamed, merged, err := c.superfluous(ctx, p, info.Key, keep)
		if err == nil && merged {
			err = c.noted.extend(ctx, c.opts.Store, p.own.level, p.parent.end())
		}
		if err == nil && (unnamed || merged) {
			err = removed.object(ctx, c.opts.Store, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// superfluous says why an object may go: no document will ever name it, as its attempt lost the race, or its rows were
// merged long enough ago.
func (c *Compactor) superfluous(ctx context.Context, p part, key string, keep int64) (unnamed, merged bool, err error) {
	if p.own.level > 0 {
		own, err := c.block(ctx, p.own)
		if err != nil {
			return false, false, err
		}
		if !own.created.IsZero() && !own.objects[key] {
			return true, false, nil
		}
	}
	if p.parent.level > compactionLevels || p.parent.end() > keep {
		return false, false, nil
	}
	parent, err := c.block(ctx, p.parent)
	return false, err == nil && parent.merged && c.opts.Clock().Sub(parent.created) > c.opts.Grace, err
}

// block reads a block's document, once. Documents of blocks that have no objects left are
// forgotten.
func (c *Compactor) block(ctx context.Context, b block) (blockState, error) {
	if state, ok := c.blocks[b]; ok {
		return state, nil
	}
	if state, ok := c.known[b]; ok {
		c.blocks[b] = state
		return state, nil
	}
	var state blockState
	doc, err := readCompaction(ctx, c.opts.Store, c.opts.Shard, b.level, b.from)
	switch {
	case errors.Is(err, sink.ErrNotFound):
	case err != nil:
		return state, err
	default:
		state = blockState{merged: !doc.Skipped, created: doc.Created, objects: map[string]bool{}}
		for _, o := range doc.Objects {
			state.objects[o.Key] = true
		}
	}
	c.blocks[b] = state
	return state, nil
}

// removedFormat is the version of the note's JSON. Format page: docs/format/manifest.md.
const removedFormat = 1

// removedNote is shards/<p>/removed.json: which rows a Compactor may have removed because larger blocks have them. It
// is written before the first of them goes, so an object that is missing and not covered was removed by somebody else.
type removedNote struct {
	Format int `json:"format"`
	Shard  int `json:"shard"`
	// Through says, for rows of windows (0) and of merged blocks by their level, up to which manifest.
	Through [compactionLevels]int64 `json:"through"`

	stored  []byte // nil if there is none
	unknown bool   // it is damaged
}

func removedKey(shard int) string { return shardPrefix(shard) + "removed.json" }

// readRemoved reads the note of a shard, the zero value if nothing was removed; ErrDamaged if it is not what was
// stored.
func readRemoved(ctx context.Context, store sink.Store, shard int) (removedNote, error) {
	n := removedNote{Shard: shard}
	key := removedKey(shard)
	data, err := sink.ReadAll(ctx, store, key)
	if errors.Is(err, sink.ErrNotFound) {
		return n, nil
	}
	if err != nil {
		return n, fmt.Errorf("read what was removed of shard %d: %w", shard, err)
	}
	var stored removedNote
	sealed, err := seal.Decode(data, sink.PlaceOf(store, key), &stored)
	if err == nil && (!sealed || stored.Format != removedFormat || stored.Shard != shard) {
		err = fmt.Errorf("format %d of shard %d, with a checksum: %t", stored.Format, stored.Shard, sealed)
	}
	if err != nil {
		n.stored, n.unknown = data, true
		return n, fmt.Errorf("%s: %w: %w", key, ErrDamaged, err)
	}
	stored.stored = data
	return stored, nil
}

// extend notes that parts of a level up to a manifest may be removed. A note that is damaged is begun anew, for all
// levels.
func (n *removedNote) extend(ctx context.Context, store sink.Store, level int, to int64) error {
	for n.Through[level] < to {
		next := *n
		next.Format, next.Through[level] = removedFormat, to
		for l := range next.Through {
			if n.unknown {
				next.Through[l] = to
			}
		}
		key := removedKey(n.Shard)
		data, err := seal.JSON(next, sink.PlaceOf(store, key))
		if err != nil {
			return err
		}
		if err = sink.Swap(ctx, store, key, n.stored, data); err == nil {
			next.stored, next.unknown = data, false
			*n = next
			return nil
		}
		if !errors.Is(err, sink.ErrChanged) {
			return fmt.Errorf("note what is removed of shard %d: %w", n.Shard, err)
		}
		if *n, err = readRemoved(ctx, store, n.Shard); err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
	}
	return nil
}

// lookBlocks is how many blocks are looked at for one that is merged.
const lookBlocks = 64

// NextRemoval says from when on files of a shard may be removed that are there now. A zero time: none of them yet.
type NextRemoval struct {
	// Rows is when the oldest rows that were merged have been superseded for long enough, Manifests when the oldest
	// block of manifests has been kept for long enough.
	Rows, Manifests time.Time
	// Waits is the manifest that the cut of every generation has to be beyond, for the earlier of the two.
	Waits int64
}

// ReadNextRemoval reads when the next files of a shard go, with compaction's grace and history. Neither says that the
// cut of every generation is beyond them.
func ReadNextRemoval(ctx context.Context, store sink.Store, shard int, grace, history time.Duration) (n NextRemoval,
	err error) {
	noted, err := readRemoved(ctx, store, shard)
	if err != nil {
		return n, err
	}
	from := blockStart(1, noted.Through[0]+1)
	for range lookBlocks {
		doc, err := readCompaction(ctx, store, shard, 1, from)
		if errors.Is(err, sink.ErrNotFound) {
			break
		}
		if err != nil {
			return n, err
		}
		if !doc.Skipped { // of a block that is too large to be merged the parts stay
			n.Rows, n.Waits = doc.Created.Add(grace), doc.To
			break
		}
		from = doc.To + 1
	}
	if history == 0 {
		return n, nil
	}
	b, err := ReadBoundary(ctx, store, shard)
	if err != nil {
		return n, err
	}
	end := blockStart(1, b.Seq+1) + compactionFanIn - 1
	m, err := ReadManifest(ctx, store, shard, end)
	if errors.Is(err, sink.ErrNotFound) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	if n.Manifests = m.Created.Add(history); n.Rows.IsZero() || n.Manifests.Before(n.Rows) {
		n.Waits = end
	}
	return n, nil
}
