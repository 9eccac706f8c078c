package wiring

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// snapshotOf returns which files of a backfill are full exports, and what the store has committed to compare them
// with. No files are no export.
func snapshotOf(ctx context.Context, cfg *config.Config, files backfill.Sources) (backfill.Snapshot, error) {
	in := &cfg.Ingest
	s := backfill.Snapshot{Nodes: in.Nodes.Snapshot && len(files.Nodes) > 0,
		Edges: in.Edges.Snapshot && len(files.Edges) > 0, Guard: in.SnapshotGuard, Undirected: in.Undirected}
	if !s.Nodes && !s.Edges {
		return s, nil
	}
	store, err := OpenStore(ctx, cfg)
	if err != nil {
		return s, err
	}
	have, err := commitlog.LoadIdentity(ctx, store)
	if err == nil {
		err = have.Check(ctx, store, IdentityOf(cfg))
	}
	if err != nil && !errors.Is(err, sink.ErrNotFound) {
		return s, fmt.Errorf("snapshot: %w", err)
	}
	s.Committed = func(ctx context.Context) iter.Seq2[backfill.Committed, error] {
		return committed(ctx, store, cfg.Shards)
	}
	return s, nil
}

// committed yields the live nodes at the heads of a store.
func committed(ctx context.Context, store sink.Store, shards int) iter.Seq2[backfill.Committed, error] {
	return func(yield func(backfill.Committed, error) bool) {
		cut, err := commitlog.CurrentCut(ctx, store, shards)
		if err != nil {
			yield(backfill.Committed{}, err)
			return
		}
		for p := range shards {
			for row, err := range cut.Facts(ctx, store, p) {
				if err == nil && row.Deleted {
					continue
				}
				if !yield(backfill.Committed{ID: row.NodeID, Links: row.Labels}, err) || err != nil {
					return
				}
			}
		}
	}
}
