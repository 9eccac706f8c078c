package stream

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// Cut is a consistent view of the commit log: for each shard the newest
// manifest that counts. What a cut shows never changes.
type Cut map[int]int64

// CurrentCut is the cut at the heads of all shards now; a shard without
// manifests has 0.
func CurrentCut(ctx context.Context, store sink.Store, shards int) (Cut, error) {
	cut := make(Cut, shards)
	for p := range shards {
		seq, err := headSeq(ctx, store, p, 0)
		if err != nil {
			return nil, err
		}
		cut[p] = seq
	}
	return cut, nil
}

// CutRow is a committed row and the manifest that committed it.
type CutRow struct {
	rows.Row
	Seq int64
}

// Newest yields the newest committed row of every node of a shard at the cut,
// in ascending order of node id. Deleted nodes are included; the caller leaves
// them out if it wants.
//
// It reads the shard twice: once the ids, newest manifest first, to learn
// which manifest holds the newest row of each node, and once the rows
// themselves. It holds the shard's ids in memory (not the rows) and may use
// temporary files.
func (c Cut) Newest(ctx context.Context, store sink.Store, shard int) iter.Seq2[CutRow, error] {
	return func(yield func(CutRow, error) bool) {
		if err := c.newest(ctx, store, shard, yield); err != nil {
			yield(CutRow{}, fmt.Errorf("newest rows of shard %d: %w", shard, err))
		}
	}
}

// Facts yields what the newest committed row of every node of a shard says of
// the graph (its features and targets are left out), deleted nodes included, in no particular
// order, the same at every call.
//
// It reads the shard once, one object at a time, newest window first, and holds
// its ids in memory: the way to read all of a large shard.
func (c Cut) Facts(ctx context.Context, store sink.Store, shard int) iter.Seq2[CutRow, error] {
	return func(yield func(CutRow, error) bool) {
		if err := c.facts(ctx, store, shard, yield); err != nil {
			yield(CutRow{}, fmt.Errorf("graph of shard %d: %w", shard, err))
		}
	}
}

func (c Cut) facts(ctx context.Context, store sink.Store, shard int, yield func(CutRow, error) bool) error {
	window, err := c.windows(ctx, store, shard)
	if err != nil {
		return err
	}
	opts := rows.ReadOptions{Columns: []string{rows.ColNodeID, rows.ColText, rows.ColClass, rows.ColLabels, rows.ColEventTime, rows.ColDeleted}}
	seen := map[string]struct{}{}
	for _, w := range slices.Backward(window) {
		for _, o := range w.Objects {
			n := int64(0)
			for row, err := range rows.Read(ctx, store, o.Key, opts) {
				if err != nil {
					return err
				}
				n++
				if _, newer := seen[row.NodeID]; newer {
					continue
				}
				seen[strings.Clone(row.NodeID)] = struct{}{}
				if !yield(CutRow{Row: row, Seq: w.Seq}, nil) {
					return nil
				}
			}
			if n != o.Rows {
				return rowsMissing(o, n)
			}
		}
	}
	return nil
}

// rowsMissing says that an object is not the one that its manifest names.
func rowsMissing(o ManifestObject, n int64) error {
	return fmt.Errorf("%w: %s has %d rows, its manifest says %d", ErrLogGap, o.Key, n, o.Rows)
}

func (c Cut) newest(ctx context.Context, store sink.Store, shard int, yield func(CutRow, error) bool) error {
	window, err := c.windows(ctx, store, shard)
	if err != nil {
		return err
	}
	// Pass 1: which window has the newest row of each node.
	owner := map[string]int32{}
	runs := make([]run, 0, len(window))
	for i := len(window) - 1; i >= 0; i-- {
		chosen, err := claimRows(ctx, store, window[i], owner, int32(i))
		if err != nil {
			return err
		}
		if chosen > 0 {
			runs = append(runs, run{chosen, chosenRows(ctx, store, window[i], owner, int32(i))})
		}
	}
	// Pass 2: the rows, merged.
	for row, err := range mergeRuns(ctx, runs) {
		if err != nil {
			return err
		}
		if !yield(CutRow{Row: row, Seq: window[owner[row.NodeID]].Seq}, nil) {
			return nil
		}
	}
	return nil
}

// windows returns the shard's manifests up to the cut that have rows, oldest
// first, with nothing but what is needed to read them.
func (c Cut) windows(ctx context.Context, store sink.Store, shard int) ([]Manifest, error) {
	var window []Manifest
	last := int64(0)
	if c[shard] == 0 {
		return nil, nil
	}
	for m, err := range Manifests(ctx, store, shard, 0) {
		if err != nil {
			return nil, err
		}
		if last = m.Seq; m.Rows > 0 {
			window = append(window, Manifest{Seq: m.Seq, Objects: m.Objects})
		}
		if last == c[shard] {
			return window, nil
		}
	}
	return nil, fmt.Errorf("%w: the cut is at manifest %d, the log ends at %d", ErrLogGap, c[shard], last)
}

// claimRows notes window i as the owner of its nodes that no newer window has.
func claimRows(ctx context.Context, store sink.Store, window Manifest, owner map[string]int32, i int32) (claimed int64, err error) {
	opts := rows.ReadOptions{Columns: []string{rows.ColNodeID}}
	for _, o := range window.Objects {
		n := int64(0)
		for row, err := range rows.Read(ctx, store, o.Key, opts) {
			if err != nil {
				return 0, err
			}
			n++
			if _, taken := owner[row.NodeID]; !taken {
				owner[strings.Clone(row.NodeID)] = i
				claimed++
			}
		}
		if n != o.Rows {
			return 0, rowsMissing(o, n)
		}
	}
	return claimed, nil
}

// chosenRows yields the rows of window i that it owns.
func chosenRows(ctx context.Context, store sink.Store, window Manifest, owner map[string]int32, i int32) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for _, o := range window.Objects {
			for row, err := range rows.Read(ctx, store, o.Key, rows.ReadOptions{}) {
				if err == nil && owner[row.NodeID] != i {
					continue
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}
