package commitlog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"giantstream/internal/ambient"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/rows"
)

// CompactorOptions configure a Compactor.
type CompactorOptions struct {
	Shard int
	Store sink.Store
	// Known, if not nil, returns a manifest that need not be read, as in Tail.
	Known func(seq int64) *Manifest
	// Grace is how long objects stay after they have been merged, for those who are reading them.
	Grace time.Duration
	Clock func() time.Time // time.Now if nil
	Log   *slog.Logger     // discarded if nil
	Rand  io.Reader        // crypto/rand if nil

	maxRows int64 // tests: of a block that is merged
}

// maxCompactedRows bounds the rows of a block that is merged, and thereby the memory for their ids.
// The objects of larger blocks are large enough.
const maxCompactedRows = 500_000

// Compactor merges the rows of many small windows of one shard into few objects, and removes what
// was merged. See the package comment, "Compaction".
//
// It may run at any time, in any process, beside workers of the shard and other Compactors. One
// Compactor is not safe for concurrent use.
type Compactor struct {
	opts CompactorOptions
	// next is, per level, the first manifest of the first block without a document; 0 before it was
	// looked up.
	next [compactionLevels + 1]int64
	// blocks are the documents that this call of Remove has read, known those of the call before.
	blocks, known map[block]blockState
	// noted is what Remove has noted before it removes.
	noted removedNote
}

// block names a block by its level and first manifest.
type block struct {
	level int
	from  int64
}

// end is the last manifest of the block.
func (b block) end() int64 { return b.from + blockSize(b.level) - 1 }

// blockState is what Remove needs to know of a block's document.
type blockState struct {
	merged  bool // the document exists and is not skipped
	created time.Time
	objects map[string]bool // that the document names
}

// NewCompactor returns a Compactor for one shard.
func NewCompactor(o CompactorOptions) *Compactor {
	o.Clock, o.Log, o.Rand = ambient.Clock(o.Clock), ambient.Log(o.Log), ambient.Rand(o.Rand)
	if o.maxRows <= 0 {
		o.maxRows = maxCompactedRows
	}
	o.Log = o.Log.With("shard", o.Shard)
	return &Compactor{opts: o, blocks: map[block]blockState{}}
}

// Merge merges every block that is complete and not merged yet, and returns how many it has merged.
// Blocks merged before an error stay merged.
func (c *Compactor) Merge(ctx context.Context) (merged int, err error) {
	var head int64
	if err = c.begin(ctx); err == nil {
		head, err = headAfter(ctx, c.opts.Store, c.opts.Shard, c.next[1]-1)
	}
	for level := 1; level <= compactionLevels && err == nil; level++ {
		end := head // of what this level is made from
		if level > 1 {
			end = c.next[level-1] - 1
		}
		for ; err == nil && c.next[level]+blockSize(level)-1 <= end; c.next[level] += blockSize(level) {
			if err = c.mergeBlock(ctx, level, c.next[level]); err == nil {
				merged++
			}
		}
	}
	if err != nil {
		return merged, fmt.Errorf("merge rows of shard %d: %w", c.opts.Shard, err)
	}
	return merged, nil
}

// begin finds where each level ends: at the first block without a document. Documents are created in order, and
// each after those of the level below, so the search need not list them all. Documents after the first gap are
// those of blocks merged before a repair removed a damaged one.
func (c *Compactor) begin(ctx context.Context) error {
	if c.next[1] > 0 {
		return nil
	}
	var next [compactionLevels + 1]int64
	from := int64(1)
	for level := compactionLevels; level >= 1; level-- {
		next[level] = from
		for start, err := range compactions(ctx, c.opts.Store, c.opts.Shard, level, from) {
			if err != nil {
				return err
			}
			if start != next[level] {
				break
			}
			next[level] = start + blockSize(level)
		}
		from = next[level]
	}
	c.next = next
	return nil
}

// mergeBlock creates the document of a block, unless another process was faster.
func (c *Compactor) mergeBlock(ctx context.Context, level int, from int64) error {
	if there, err := sink.Exists(ctx, c.opts.Store, compactionKey(c.opts.Shard, level, from)); there || err != nil {
		return err
	}
	doc := &compaction{Format: compactionFormat, Shard: c.opts.Shard, Level: level, From: from,
		To:      from + blockSize(level) - 1,
		Created: c.opts.Clock().UTC()}
	parts, err := c.parts(ctx, doc)
	if errors.Is(err, ErrRemoved) {
		return nil // no block without a document lies behind the boundary: another process was faster
	}
	if err != nil {
		return err
	}
	if !doc.Skipped {
		if err := c.write(ctx, doc, parts); err != nil {
			return err
		}
	}
	if err := doc.check(); err != nil {
		return err
	}
	key := compactionKey(doc.Shard, level, from)
	data, err := seal.JSON(doc, sink.PlaceOf(c.opts.Store, key))
	if err != nil {
		return fmt.Errorf("encode a compaction: %w", err)
	}
	err = c.opts.Store.Create(ctx, key, data)
	if errors.Is(err, sink.ErrExists) {
		return nil // another process made an equal one; this attempt's objects are garbage
	}
	if err == nil && doc.Rows > 0 {
		c.opts.Log.Debug("rows merged", "level", level, "from", from, "to", doc.To, "rows", doc.Rows, "objects",
			len(doc.Objects))
	}
	return err
}

// parts returns the segments that make up a block, oldest first. It marks the block as skipped if
// they have too many rows.
func (c *Compactor) parts(ctx context.Context, doc *compaction) (parts []*Segment, err error) {
	total := int64(0)
	take := func(s *Segment) {
		for _, w := range s.windows {
			total += w.Rows
		}
		parts = append(parts, s)
		doc.OrderHorizon = max(doc.OrderHorizon, s.horizon)
	}
	if doc.Level == 1 {
		r := segmentReader{ctx: ctx, store: c.opts.Store, shard: doc.Shard, strict: true, known: c.opts.Known,
			yield: func(s *Segment, _ error) bool { take(s); return true }}
		err = r.manifests(doc.From, doc.To)
	} else {
		for from := doc.From; from < doc.To && err == nil; from += blockSize(doc.Level - 1) {
			var child *compaction
			if child, err = readCompaction(ctx, c.opts.Store, doc.Shard, doc.Level-1, from); err == nil {
				doc.Skipped = doc.Skipped || child.Skipped
				take(child.segment())
			}
		}
	}
	doc.Skipped = doc.Skipped || total > c.opts.maxRows
	return parts, err
}

// write writes the newest rows in the parts, table by table, and enters the objects in doc.
func (c *Compactor) write(ctx context.Context, doc *compaction, parts []*Segment) (err error) {
	var random [6]byte
	if _, err := io.ReadFull(c.opts.Rand, random[:]); err != nil {
		return fmt.Errorf("draw an id: %w", err)
	}
	attempt, n := hex.EncodeToString(random[:]), int64(0)
	key := func() string {
		n++
		return compactedKey(doc.Shard, doc.Level, doc.From, attempt, n-1)
	}
	if err := mergeTable(ctx, c.opts.Store, rows.Nodes, key, doc, parts, keepAll); err != nil {
		return err
	}
	if err := mergeTable(ctx, c.opts.Store, rows.NodeAttributes, key, doc, parts, keepAll); err != nil {
		return err
	}
	if err := mergeTable(ctx, c.opts.Store, rows.Orders, key, doc, parts, doc.keepsOrder); err != nil {
		return err
	}
	return mergeTable(ctx, c.opts.Store, rows.NodeVectors, key, doc, parts, keepAll)
}

func keepAll[R any](*R) bool { return true }

// keepsOrder takes from the newest row of an order in the block what does not count any more. It reports whether a row
// is left. As long as an older row may count, in an older block, the newest one is: it says that the order has changed.
func (c *compaction) keepsOrder(r *rows.Order) bool {
	r.Expire(c.OrderHorizon)
	return !c.OrderHorizon.Forgets(r.EventTime)
}

// mergeTable writes what is kept of a table's newest row of each key in the parts, newest window first, and enters
// objects and windows in doc.
func mergeTable[R any](ctx context.Context, store sink.Store, t *rows.Table[R], key func() string, doc *compaction,
	parts []*Segment, keep func(*R) bool) error {
	counted := func(yield func(R, error) bool) {
		for row, err := range newestRows(ctx, store, t, parts, rows.ReadOptions{}) {
			if err == nil && !keep(&row.row) {
				continue
			}
			if err == nil {
				doc.count(t.Name, row.seq)
			}
			if !yield(row.row, err) {
				return
			}
		}
	}
	objects, n, err := WriteObjects(ctx, store, t, key, 0, rows.WriteOptions{}, counted)
	doc.Objects, doc.Rows = append(doc.Objects, objects...), doc.Rows+n
	return err
}

// count adds one row of a window to the windows of the block.
func (c *compaction) count(table string, seq int64) {
	if last := len(c.Windows) - 1; last >= 0 && c.Windows[last].Table == table && c.Windows[last].Seq == seq {
		c.Windows[last].Rows++
	} else {
		c.Windows = append(c.Windows, compactedWindow{Table: table, Seq: seq, Rows: 1})
	}
}
