package commitlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog/rowsort"
)

// Cut is a consistent view of the commit log: for each shard, the newest manifest that counts. What
// a cut shows never changes.
type Cut map[int]int64

// CurrentCut is the cut at the present heads of all shards. A shard without manifests has 0.
func CurrentCut(ctx context.Context, store sink.Store, shards int) (Cut, error) {
	cut := make(Cut, shards)
	for p := range shards {
		seq, err := headSeq(ctx, store, p)
		if err != nil {
			return nil, err
		}
		cut[p] = seq
	}
	return cut, nil
}

// Newest yields the newest committed row of every node of a shard at the cut, in ascending order of
// node id, deleted nodes included. Attributes that were committed after the node's own row are in it.
//
// It reads the shard twice: first the ids, newest manifest first, to learn which manifest holds the
// newest row of each node, then the rows. It holds the shard's ids in memory, and the attributes that
// were committed alone, but not the rows, and may use temporary files.
func (c Cut) Newest(ctx context.Context, store sink.Store, shard int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := c.newest(ctx, store, shard, everything, yield); err != nil {
			yield(Row{}, fmt.Errorf("newest rows of shard %d: %w", shard, err))
		}
	}
}

// Facts yields the newest committed row of every node of a shard without features and targets,
// deleted nodes included. Attributes that were committed after the node's own row are in it. The order
// is not sorted, but the same at every call.
//
// It reads the shard once, one object at a time, newest window first, and holds its ids in memory, and
// the attributes that were committed alone. This is the way to read all of a large shard.
func (c Cut) Facts(ctx context.Context, store sink.Store, shard int) iter.Seq2[Row, error] {
	return c.unsorted(ctx, store, shard, factColumns)
}

// Graph is Facts without attributes: what training reads. The manifest of a row is that of the node's own row. The
// event time is that of Facts: which rows a window has written decides nothing.
func (c Cut) Graph(ctx context.Context, store sink.Store, shard int) iter.Seq2[Row, error] {
	return c.unsorted(ctx, store, shard, graphColumns)
}

// Deletions yields the ids of the nodes of a shard that are deleted, with the event times of that. It reads the shard
// as Graph does, without texts and links.
func (c Cut) Deletions(ctx context.Context, store sink.Store, shard int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for row, err := range c.unsorted(ctx, store, shard, deletionColumns) {
			if (err != nil || row.Deleted) && !yield(row, err) {
				return
			}
		}
	}
}

// Attributes yields the ids of all nodes of a shard, deleted ones included, with their attributes at the cut. It reads
// the shard as Facts does, without texts and links.
func (c Cut) Attributes(ctx context.Context, store sink.Store, shard int) iter.Seq2[Row, error] {
	return c.unsorted(ctx, store, shard, attributeColumns)
}

// The columns of rows without features and targets, and without attributes. Of links with a kind or a
// weight, graphColumns have the kinds alone.
var (
	graphColumns = []string{rows.ColNodeID, rows.ColText, rows.ColClass, rows.ColLabels, rows.ColEventTime,
		rows.ColDeleted, rows.ColLinkKinds}
	deletionColumns  = []string{rows.ColNodeID, rows.ColEventTime, rows.ColDeleted}
	attributeColumns = append(slices.Clip(deletionColumns), rows.ColAttributes)

	// linkColumns have all of such links, and factColumns the attributes beside.
	linkColumns = append(slices.Clip(graphColumns), rows.ColLinkEnds, rows.ColLinkWeights, rows.ColLinkTimes)
	factColumns = append(slices.Clip(linkColumns), rows.ColAttributes)
	timeColumns = []string{rows.ColNodeID, rows.ColEventTime}
)

func (c Cut) unsorted(ctx context.Context, store sink.Store, shard int, columns []string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := c.yieldUnsorted(ctx, store, shard, columns, yield); err != nil {
			yield(Row{}, fmt.Errorf("graph of shard %d: %w", shard, err))
		}
	}
}

// LoggedRow is a committed row of a node, without features, targets and attributes.
type LoggedRow struct {
	Row
	// TimeOnly: attributes changed alone. The row has the node's id, and its event time as of then.
	TimeOnly bool
}

// Logged yields the rows that manifests of a shard after `after` up to `to` have committed, also those that a row of a
// higher Seq supersedes. It holds nothing of them in memory.
func (c Cut) Logged(ctx context.Context, store sink.Store, shard int, after, to int64) iter.Seq2[LoggedRow, error] {
	return func(yield func(LoggedRow, error) bool) {
		if after >= c[shard] {
			return
		}
		fail := func(err error) { yield(LoggedRow{}, fmt.Errorf("rows of shard %d: %w", shard, err)) }
		// A merged block can have taken the place of manifest `to` and of some after it; it is read, in part.
		for s, err := range Segments(ctx, store, shard, after, c[shard]) {
			if err != nil {
				fail(err)
				return
			}
			if s.From > to {
				return
			}
			for row, err := range rowsOf(ctx, store, rows.Nodes, s, rows.ReadOptions{Columns: linkColumns}) {
				if err != nil {
					fail(err)
					return
				}
				if row.seq <= to && !yield(LoggedRow{Row: Row{Row: row.row, Seq: row.seq}}, nil) {
					return
				}
			}
			for row, err := range rowsOf(ctx, store, rows.NodeAttributes, s, rows.ReadOptions{Columns: timeColumns}) {
				if err != nil {
					fail(err)
					return
				}
				at := rows.Row{NodeID: row.row.NodeID, EventTime: row.row.EventTime}
				if row.seq <= to && !yield(LoggedRow{Row: Row{Row: at, Seq: row.seq}, TimeOnly: true}, nil) {
					return
				}
			}
		}
	}
}

// Layout is where the rows of a shard lie up to a cut.
type Layout struct {
	segments []*Segment // oldest first, without those that have no rows
	head     int64
}

// Layout reads the shard's log up to the cut.
func (c Cut) Layout(ctx context.Context, store sink.Store, shard int) (Layout, error) {
	segments, err := c.segments(ctx, store, shard)
	return Layout{segments, c[shard]}, err
}

// Size returns how many rows of nodes the objects have, and how many bytes of them.
func (l Layout) Size() (rows, bytes int64) {
	for _, s := range l.segments {
		objects, _ := s.table(nodes)
		for _, o := range objects {
			rows, bytes = rows+o.Rows, bytes+o.Bytes
		}
	}
	return rows, bytes
}

// Has reports whether there are rows of a table, also those that a later one supersedes.
func (l Layout) Has(table string) bool {
	return slices.ContainsFunc(l.segments, func(s *Segment) bool {
		objects, _ := s.table(table)
		return len(objects) > 0
	})
}

// Divide returns manifests, ascending, with about the given number of rows of nodes between each and the next. The
// last one is the cut's. Reads that begin or end at these manifests read no merged block twice, until further blocks
// are merged.
func (l Layout) Divide(rows int64) []int64 {
	var ends []int64
	sum := int64(0)
	for _, s := range l.segments {
		objects, _ := s.table(nodes)
		for _, o := range objects {
			sum += o.Rows
		}
		if sum >= rows {
			ends, sum = append(ends, s.To), 0
		}
	}
	if sum > 0 {
		ends = append(ends, l.head)
	}
	return ends
}

func (c Cut) yieldUnsorted(ctx context.Context, store sink.Store, shard int, columns []string,
	yield func(Row, error) bool) error {
	segments, err := c.segments(ctx, store, shard)
	if err != nil {
		return err
	}
	whole := slices.Contains(columns, rows.ColAttributes)
	opts := rows.ReadOptions{}
	if !whole {
		opts.Columns = timeColumns
	}
	later, err := readAttributes(ctx, store, segments, Forever, opts)
	if err != nil {
		return err
	}
	for row, err := range newestRows(ctx, store, rows.Nodes, segments, rows.ReadOptions{Columns: columns}) {
		if err != nil {
			return err
		}
		joined := later.join(row)
		if !whole {
			joined.Seq, joined.Attributes = row.seq, ""
		}
		if !yield(joined, nil) {
			return nil
		}
	}
	return nil
}

// attributes are the newest rows of attributes that were committed alone, by node.
type attributes map[string]committed[rows.Attributes]

func readAttributes(ctx context.Context, store sink.Store, segments []*Segment, until int64,
	opts rows.ReadOptions) (attributes, error) {
	newest := attributes{}
	for _, s := range slices.Backward(segments) {
		for row, err := range rowsOf(ctx, store, rows.NodeAttributes, s, opts) {
			if err != nil {
				return nil, err
			}
			if _, newer := newest[row.row.NodeID]; !newer && row.row.EventTime <= until {
				row.row.NodeID, row.row.Attributes = strings.Clone(row.row.NodeID), strings.Clone(row.row.Attributes)
				newest[row.row.NodeID] = row
			}
		}
	}
	return newest, nil
}

// join returns a node's row with its attributes, if these were committed later. The row's manifest is the later one.
func (a attributes) join(node committed[rows.Row]) Row {
	row := Row{Row: node.row, Seq: node.seq}
	if later, ok := a[row.NodeID]; ok && later.seq > row.Seq && !row.Deleted {
		row.Seq, row.Attributes = later.seq, later.row.Attributes
		row.EventTime = max(row.EventTime, later.row.EventTime)
	}
	return row
}

// newestRows yields a table's newest row of each key in segments of ascending order, newest window first.
func newestRows[R any](ctx context.Context, store sink.Store, t *rows.Table[R], segments []*Segment,
	opts rows.ReadOptions) iter.Seq2[committed[R], error] {
	return func(yield func(committed[R], error) bool) {
		seen := map[string]struct{}{}
		for _, s := range slices.Backward(segments) {
			for row, err := range rowsOf(ctx, store, t, s, opts) {
				if err == nil {
					key := t.Key(&row.row)
					if _, newer := seen[key]; newer {
						continue
					}
					seen[strings.Clone(key)] = struct{}{}
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// Forever is later than every event time.
const Forever = math.MaxInt64

// selection says which rows count, and what of them is read.
type selection struct {
	until   int64    // the latest event time
	columns []string // nil for all
}

var everything = selection{until: Forever}

func (c Cut) newest(ctx context.Context, store sink.Store, shard int, which selection,
	yield func(Row, error) bool) error {
	segments, err := c.segments(ctx, store, shard)
	if err != nil {
		return err
	}
	later, err := readAttributes(ctx, store, segments, which.until, rows.ReadOptions{})
	if err != nil {
		return err
	}
	for row, err := range newestSorted(ctx, store, rows.Nodes, segments, which) {
		if err != nil {
			return err
		}
		if !yield(later.join(row), nil) {
			return nil
		}
	}
	return nil
}

// newestSorted yields a table's newest row of each key in segments of ascending order, in ascending order of keys.
func newestSorted[R any](ctx context.Context, store sink.Store, t *rows.Table[R], segments []*Segment,
	which selection) iter.Seq2[committed[R], error] {
	return func(yield func(committed[R], error) bool) {
		// Pass 1: which manifest has the newest row of each key.
		newest := map[string]int64{}
		var runs []rowsort.Run[R]
		var files rowsort.Files
		defer files.Close()
		for _, s := range slices.Backward(segments) {
			chosen, err := claimRows(ctx, store, t, s, which.until, newest)
			all := chosenRows(ctx, store, t, s, which.columns, newest)
			switch {
			case err != nil || chosen == 0:
			case s.Merged:
				var sorted []rowsort.Run[R]
				sorted, err = rowsort.Sort(ctx, t, all, &files)
				runs = append(runs, sorted...)
			default:
				runs = append(runs, rowsort.Run[R]{Rows: chosen, Seq: all})
			}
			if err != nil {
				yield(committed[R]{}, err)
				return
			}
		}
		// Pass 2: the rows, merged.
		for row, err := range rowsort.Merge(ctx, t, runs) {
			if errors.Is(err, rowsort.ErrUnordered) {
				err = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			if !yield(committed[R]{row, newest[t.Key(&row)]}, err) || err != nil {
				return
			}
		}
	}
}

// segments returns the shard's log up to the cut where it has rows, oldest first.
func (c Cut) segments(ctx context.Context, store sink.Store, shard int) ([]*Segment, error) {
	var segments []*Segment
	if c[shard] == 0 {
		return nil, nil
	}
	for s, err := range Segments(ctx, store, shard, 0, c[shard]) {
		if err != nil {
			return nil, err
		}
		if len(s.objects) > 0 {
			segments = append(segments, s)
		}
	}
	return segments, nil
}

// claimRows notes in newest the manifests of those rows of a segment, up to an event time, that no newer segment
// supersedes, and counts them.
func claimRows[R any](ctx context.Context, store sink.Store, t *rows.Table[R], s *Segment, until int64,
	newest map[string]int64) (claimed int64, err error) {
	for row, err := range rowsOf(ctx, store, t, s, rows.ReadOptions{Columns: t.KeyColumns}) {
		if err != nil {
			return 0, err
		}
		if t.EventTime(&row.row) > until {
			continue
		}
		key := t.Key(&row.row)
		if _, taken := newest[key]; !taken {
			newest[strings.Clone(key)] = row.seq
			claimed++
		}
	}
	return claimed, nil
}

// chosenRows yields the rows of a segment that are the newest of their keys.
func chosenRows[R any](ctx context.Context, store sink.Store, t *rows.Table[R], s *Segment, columns []string,
	newest map[string]int64) (chosen iter.Seq2[R, error]) {
	return func(yield func(R, error) bool) {
		for row, err := range rowsOf(ctx, store, t, s, rows.ReadOptions{Columns: columns}) {
			if seq, ok := newest[t.Key(&row.row)]; err == nil && (!ok || seq != row.seq) {
				continue
			}
			if !yield(row.row, err) || err != nil {
				return
			}
		}
	}
}
