package refreshing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/internal/retry"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// upToDatePoll is the interval at which UpToDate looks for rows that no generation covers.
const upToDatePoll = 200 * time.Millisecond

// covers says whether a generation, if there is one, was built from these manifests and maybe from later ones.
func covers(doc *generation.Doc, heads []*commitlog.Manifest) bool {
	for shard, head := range heads {
		if head != nil && (doc == nil || doc.Cut[shard] < head.Seq) {
			return false
		}
	}
	return true
}

// UpToDate returns once a generation covers everything committed before the call. It finishes an unfinished
// generation and builds a new one if rows have changed since its cut, or waits for the process that
// does. Without role refresh it always waits. With that role it also builds one where the configuration asks
// for other embeddings than the newest generation has, once: two processes with different configurations
// do not take turns. It returns the current generation, and whether this process has built one.
func (r *Refresh) UpToDate(ctx context.Context) (doc *generation.Doc, built bool, err error) {
	renewed := false // by a generation of this process, with its settings
	heads, err := r.Heads.NewestOfAll(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("bring the embeddings up to date: %w", err)
	}
	outdated := func(ctx context.Context) (bool, string, error) {
		due, why, err := r.Outdated(ctx)
		if due && covers(r.newest(), heads) {
			why, err = r.unbuilt(ctx)
			due = why != ""
		}
		if err == nil && !due && !renewed && r.Builds {
			why = r.becauseSettings()
			due = why != ""
		}
		return due, why, err
	}
	err = retry.Poll(ctx, upToDatePoll, func() (bool, error) {
		for {
			if err := r.Load(ctx); err != nil {
				return false, err
			}
			if due, _, err := outdated(ctx); err != nil || !due {
				return err == nil, err
			}
			if !r.Builds {
				return false, nil
			}
			here, err := r.BuildIf(ctx, outdated)
			if err != nil {
				switch {
				case r.Elsewhere(err):
					err = nil // look again later
				case errors.Is(err, generation.ErrTooFew) && r.Served.Current() != nil:
					r.Log.Warn("too few texts are left for a new generation; the current one stays", "error", err)
					return true, nil
				}
				return false, err
			}
			built = built || here
			renewed = renewed || here && r.becauseSettings() == ""
		}
	})
	if err != nil {
		return nil, false, fmt.Errorf("bring the embeddings up to date: %w", err)
	}
	if g := r.Served.Current(); g != nil {
		return g.Doc, built, nil
	}
	return nil, false, fmt.Errorf("%w: no node has arrived; check the topics, the field mapping and the dead letters",
		generation.ErrTooFew)
}
