package commitlog

import (
	"context"
	"errors"
	"fmt"

	"giantstream/internal/seal"
	"giantstream/sink"
)

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
