package stream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"time"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// CompactorOptions say what a Compactor works on.
type CompactorOptions struct {
	Shard int
	Store sink.Store
	// Grace is how long objects stay after they have been merged, for who is
	// reading them.
	Grace time.Duration
	Clock func() time.Time // time.Now if nil
	Log   *slog.Logger     // discarded if nil
	Rand  io.Reader        // crypto/rand if nil

	maxRows int64 // tests: of a block that is merged
}

// maxCompactedRows bounds the rows of a block that is merged, and with it the
// memory for their ids. Blocks of more rows have objects large enough.
const maxCompactedRows = 500_000

// Compactor merges the rows of many small windows of one shard into few
// objects, and removes what was merged. See doc.go, "Compaction".
//
// It may run at any time, in any process, beside workers of the shard and other
// Compactors. Not safe for concurrent use.
type Compactor struct {
	opts CompactorOptions
	// next is, per level, where the first block begins that has no document
	// yet; 0 before it was looked up.
	next [compactionLevels + 1]int64
	// blocks are the documents that Remove has asked for, known those of the
	// time before.
	blocks, known map[block]blockState
}

// block names a block by its level and first manifest.
type block struct {
	level int
	from  int64
}

// NewCompactor returns a Compactor for one shard.
func NewCompactor(o CompactorOptions) *Compactor {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.maxRows <= 0 {
		o.maxRows = maxCompactedRows
	}
	o.Log = o.Log.With("shard", o.Shard)
	return &Compactor{opts: o, blocks: map[block]blockState{}}
}

// Merge merges every block that is complete and not merged yet, and returns
// how many there were. What it has done before an error stays.
func (c *Compactor) Merge(ctx context.Context) (merged int, err error) {
	head, err := headSeq(ctx, c.opts.Store, c.opts.Shard, max(0, c.next[1]-1))
	if err == nil {
		err = c.begin(ctx)
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

// begin finds where each level ends. Documents are created in order, and each
// after those of the level below; so the search need not go through all.
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
				return fmt.Errorf("%w: level %d has a block from manifest %d, but none from %d", ErrLogGap, level, start, next[level])
			}
			next[level] = start + blockSize(level)
		}
		from = next[level]
	}
	c.next = next
	return nil
}

// mergeBlock makes the document of a block, unless somebody else does.
func (c *Compactor) mergeBlock(ctx context.Context, level int, from int64) error {
	doc := &Compaction{Format: CompactionFormat, Shard: c.opts.Shard, Level: level, From: from, To: from + blockSize(level) - 1,
		Created: c.opts.Clock().UTC()}
	parts, err := c.parts(ctx, doc)
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
	data, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encode a compaction: %w", err)
	}
	err = c.opts.Store.Create(ctx, compactionKey(doc.Shard, level, from), append(data, '\n'))
	if errors.Is(err, sink.ErrExists) {
		return nil // another's, and as good; our objects are garbage
	}
	if err == nil && doc.Rows > 0 {
		c.opts.Log.Debug("rows merged", "level", level, "from", from, "to", doc.To, "rows", doc.Rows, "objects", len(doc.Objects))
	}
	return err
}

// parts returns what a block is made of, oldest first, and marks the block as
// skipped if that is too much.
func (c *Compactor) parts(ctx context.Context, doc *Compaction) (parts []*Segment, err error) {
	total := int64(0)
	take := func(s *Segment) {
		for _, w := range s.windows {
			total += w.Rows
		}
		parts = append(parts, s)
	}
	if doc.Level == 1 {
		r := segmentReader{ctx: ctx, store: c.opts.Store, shard: doc.Shard, yield: func(s *Segment, _ error) bool { take(s); return true }}
		err = r.manifests(doc.From, doc.To)
	} else {
		for from := doc.From; from < doc.To && err == nil; from += blockSize(doc.Level - 1) {
			var child *Compaction
			if child, err = readCompaction(ctx, c.opts.Store, doc.Shard, doc.Level-1, from); err == nil {
				doc.Skipped = doc.Skipped || child.Skipped
				take(&Segment{From: child.From, To: child.To, Merged: true, windows: child.Windows, objects: child.Objects})
			}
		}
	}
	doc.Skipped = doc.Skipped || total > c.opts.maxRows
	return parts, err
}

// write writes the newest row of each node that the parts have.
func (c *Compactor) write(ctx context.Context, doc *Compaction, parts []*Segment) (err error) {
	var random [6]byte
	if _, err := io.ReadFull(c.opts.Rand, random[:]); err != nil {
		return fmt.Errorf("draw an id: %w", err)
	}
	attempt, n := hex.EncodeToString(random[:]), int64(0)
	key := func() string {
		n++
		return compactedKey(doc.Shard, doc.Level, doc.From, attempt, n-1)
	}
	doc.Objects, doc.Rows, err = writeObjects(ctx, c.opts.Store, key, defaultObjectRows, rows.WriteOptions{}, c.newest(ctx, doc, parts))
	return err
}

// newest yields the newest row of each node that the parts have, newest
// window first, and counts the windows' rows in doc.
func (c *Compactor) newest(ctx context.Context, doc *Compaction, parts []*Segment) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		seen := map[string]struct{}{}
		for i := len(parts) - 1; i >= 0; i-- {
			for row, err := range parts[i].Rows(ctx, c.opts.Store, rows.ReadOptions{}) {
				if err == nil {
					if _, newer := seen[row.NodeID]; newer {
						continue
					}
					seen[strings.Clone(row.NodeID)] = struct{}{}
					if last := len(doc.Windows) - 1; last >= 0 && doc.Windows[last].Seq == row.Seq {
						doc.Windows[last].Rows++
					} else {
						doc.Windows = append(doc.Windows, CompactedWindow{Seq: row.Seq, Rows: 1})
					}
				}
				if !yield(row.Row, err) || err != nil {
					return
				}
			}
		}
	}
}
