package commitlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/rows"
)

// compactionFormat is the version of the compaction documents that are written. Readers know every version from
// 1 to this one. Version 2 added the checksum, version 3 names objects by their SHA-256, version 4 says which table
// an object has rows of, version 5 which orders count no more. Format page: docs/format/manifest.md.
const compactionFormat = 5

// removalCompactionFormat is the first version whose programs note which merged objects they remove.
const removalCompactionFormat = 3

// Blocks of manifests are merged in levels. A block of level l has compactionFanIn^l manifests and
// begins where the one before it ends.
const (
	compactionFanIn  = 64
	compactionLevels = 3
)

// compaction is the document of a merged block: the rows that no later manifest of the block
// supersedes, in few objects. It is created once, never changes, and says nothing that the
// manifests do not say.
type compaction struct {
	Format int   `json:"format"`
	Shard  int   `json:"shard"`
	Level  int   `json:"level"` // 1, 2 or 3
	From   int64 `json:"from"`  // the first manifest of the block
	To     int64 `json:"to"`    // the last
	// Skipped: the block has too many rows for a merge to gain anything. It has no objects then, and
	// readers use the level below.
	Skipped bool `json:"skipped,omitempty"`
	// Objects hold the rows table by table, in a table window by window, newest window first, within a
	// window ascending by key.
	Objects []Object          `json:"objects"`
	Windows []compactedWindow `json:"windows"` // in the same order
	Rows    int64             `json:"rows"`    // of all tables
	// OrderHorizon is that of manifest To. The block has nothing of orders that does not count after it.
	OrderHorizon rows.Horizon `json:"order_horizon,omitempty"`
	Created      time.Time    `json:"created"`
}

// compactedWindow is how many rows of a table are left of one manifest.
type compactedWindow struct {
	Table string `json:"table,omitempty"` // "" for nodes
	Seq   int64  `json:"seq"`
	Rows  int64  `json:"rows"`
}

// segment is the stretch of the log that the block is.
func (c *compaction) segment() *Segment {
	return &Segment{From: c.From, To: c.To, Merged: true, horizon: c.OrderHorizon, windows: c.Windows,
		objects: c.Objects}
}

// blockSize is how many manifests a block of a level has.
func blockSize(level int) int64 {
	n := int64(1)
	for range level {
		n *= compactionFanIn
	}
	return n
}

// blockStart is the first manifest of the block of a level that has manifest seq.
func blockStart(level int, seq int64) int64 { return (seq-1)/blockSize(level)*blockSize(level) + 1 }

func compactionPrefix(shard, level int) string {
	return fmt.Sprintf("%scompacted/%d-", shardPrefix(shard), level)
}

func compactionKey(shard, level int, from int64) string {
	return fmt.Sprintf("%s%020d.json", compactionPrefix(shard, level), from)
}

// parseCompactionKey is the inverse of compactionKey.
func parseCompactionKey(shard, level int, key string) (from int64, ok bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, compactionPrefix(shard, level)), ".json")
	from, err := strconv.ParseInt(name, 10, 64)
	return from, err == nil && from > 0 && from == blockStart(level, from) && compactionKey(shard, level, from) == key
}

func compactedPrefix(shard int) string { return shardPrefix(shard) + "compacted/rows/" }

// compactedKey names the n-th object of a block. Each attempt to merge the block has its own id.
func compactedKey(shard, level int, from int64, attempt string, n int64) string {
	return fmt.Sprintf("%s%d-%020d-%s-%d.parquet", compactedPrefix(shard), level, from, attempt, n)
}

// parseCompactedKey is the inverse of compactedKey.
func parseCompactedKey(shard int, key string) (level int, from int64, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(key, compactedPrefix(shard)), ".parquet"), "-")
	if len(parts) != 4 {
		return 0, 0, false
	}
	level, lerr := strconv.Atoi(parts[0])
	from, ferr := strconv.ParseInt(parts[1], 10, 64)
	n, nerr := strconv.ParseInt(parts[3], 10, 64)
	ok = errors.Join(lerr, ferr, nerr) == nil && level >= 1 && level <= compactionLevels && from > 0 &&
		compactedKey(shard, level, from, parts[2], n) == key
	return level, from, ok
}

// compactions yields the first manifests of those blocks of a level that have a document, in
// ascending order, from the block that begins at `from`.
func compactions(ctx context.Context, store sink.Store, shard, level int, from int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for info, err := range store.List(ctx, compactionPrefix(shard, level), compactionKey(shard, level, from-1)) {
			if err != nil {
				yield(0, fmt.Errorf("list the compactions of shard %d: %w", shard, err))
				return
			}
			if at, ok := parseCompactionKey(shard, level, info.Key); ok && !yield(at, nil) {
				return
			}
		}
	}
}

func readCompaction(ctx context.Context, store sink.Store, shard, level int, from int64) (*compaction, error) {
	key := compactionKey(shard, level, from)
	data, err := sink.ReadAll(ctx, store, key)
	if err != nil {
		return nil, err
	}
	c, err := decodeCompaction(data, sink.PlaceOf(store, key))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if c.Shard != shard || c.Level != level || c.From != from {
		return nil, fmt.Errorf("%w: %s holds level %d of shard %d from manifest %d", ErrDamaged, key, c.Level, c.Shard,
			c.From)
	}
	return c, nil
}

// decodeCompaction refuses what this version does not know.
func decodeCompaction(data []byte, at seal.Place) (*compaction, error) {
	var c compaction
	sealed, err := seal.Decode(data, at, &c)
	if err != nil {
		return nil, fmt.Errorf("%w: compaction does not parse: %w", ErrDamaged, err)
	}
	if c.Format < 1 || c.Format > compactionFormat {
		return nil, fmt.Errorf("compaction has format %d, this version reads 1 to %d: "+
			"it was written by another release", c.Format, compactionFormat)
	}
	if c.Format > 1 && !sealed {
		return nil, fmt.Errorf("%w: compaction from manifest %d of shard %d has no checksum", ErrDamaged, c.From,
			c.Shard)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: compaction of shard %d: %w", ErrDamaged, c.Shard, err)
	}
	return &c, nil
}

// check verifies what all readers rely on.
func (c *compaction) check() error {
	if c.Shard < 0 || c.Level < 1 || c.Level > compactionLevels || c.From < 1 ||
		c.From != blockStart(c.Level, c.From) || c.To != c.From+blockSize(c.Level)-1 {
		return fmt.Errorf("level %d has no block from manifest %d to %d", c.Level, c.From, c.To)
	}
	if c.Skipped && len(c.Objects)+len(c.Windows) > 0 {
		return errors.New("it is skipped and has rows")
	}
	left := map[string]int64{} // rows of the table's objects that no window has yet
	total := int64(0)
	for _, o := range c.Objects {
		if !strings.HasPrefix(o.Key, compactedPrefix(c.Shard)) || o.Rows < 1 || o.Bytes < 0 {
			return fmt.Errorf("it names object %q with %d rows", o.Key, o.Rows)
		}
		left[o.Table] += o.Rows
		total += o.Rows
	}
	for i, w := range c.Windows {
		before := c.To + 1
		if i > 0 && c.Windows[i-1].Table == w.Table {
			before = c.Windows[i-1].Seq
		}
		if w.Seq >= before || w.Seq < c.From || w.Rows < 1 {
			return fmt.Errorf("window %d with %d rows, after window %d", w.Seq, w.Rows, before)
		}
		left[w.Table] -= w.Rows
	}
	for table, rows := range left {
		if !c.Skipped && rows != 0 {
			return fmt.Errorf("of table %q its objects have %d rows more than its windows", table, rows)
		}
	}
	if !c.Skipped && total != c.Rows {
		return fmt.Errorf("it counts %d rows, its objects %d", c.Rows, total)
	}
	return checkTables(c.Objects)
}
