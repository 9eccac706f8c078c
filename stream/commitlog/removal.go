package commitlog

import (
	"context"
	"errors"
	"time"

	"giantstream/sink"
)

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
