package commitlog

import (
	"context"
	"fmt"

	"giantstream/internal/retry"
	"giantstream/sink"
)

// ErrGroupCommit: a past release wrote the store with stream.commit: group. The shards of a worker
// then shared manifests and row objects in the log of a session, sessions/<session>/, and the
// shards' own logs only lead there. This release has one commit for each shard and window
// (docs/decisions/0013-one-commit.md).
const ErrGroupCommit = retry.FinalError("written with stream.commit: group, which this release cannot read: stop the " +
	"pipeline, and let 'giantstream reshard' of the release that wrote it write a new store, " +
	"with the same number of shards or another, which this release reads")

// What those releases wrote has these formats.
const (
	groupManifestFormat = 4 // of manifests in sessions, and of those in the shards' own logs from the first of them on
	groupBoundaryFormat = 2 // of boundaries behind such manifests
	sessionsPrefix      = "sessions/"
)

// refuseGroupCommit returns ErrGroupCommit if the store has the log of a session. The newest entry
// of such a log was never removed, so a store that was ever written that way has one.
func refuseGroupCommit(ctx context.Context, store sink.Store) error {
	for info, err := range store.List(ctx, sessionsPrefix, "") {
		if err != nil {
			return fmt.Errorf("look for group commits in the store: %w", err)
		}
		return fmt.Errorf("store %s has %s: it was %w", store.URL(), info.Key, ErrGroupCommit)
	}
	return nil
}
