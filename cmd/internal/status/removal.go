package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/cmd/internal/service/ingesting/upkeep"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// Removal is when the next files of the commit log are removed, which grow until then.
type Removal struct {
	// From is when the first of them may go, in whichever shard; zero if that is not known. Workers look every hour.
	From time.Time `json:"from,omitzero"`
	// Waits says what else has to come before, "" for nothing.
	Waits string `json:"waits,omitempty"`
}

// readRemoval sets Removal.
func (st *Status) readRemoval(ctx context.Context, store sink.Store, c config.Compaction) error {
	st.Removal = &Removal{}
	if !c.Enabled {
		st.Removal.Waits = "compaction.enabled is false"
		return nil
	}
	for _, s := range st.Shards {
		if s.Damage != "" || s.Seq == 0 {
			continue
		}
		next, err := commitlog.ReadNextRemoval(ctx, store, s.Shard, c.Grace, c.History)
		if errors.Is(err, commitlog.ErrDamaged) {
			continue // 'giantstream verify' names it, and status goes on
		}
		if err != nil {
			return err
		}
		cut, err := upkeep.OldestCut(ctx, store, s.Shard)
		if err != nil {
			return err
		}
		st.Removal.add(next, s.Shard, cut)
	}
	if st.Removal.From.IsZero() && st.Removal.Waits == "" {
		st.Removal.Waits = "64 windows of a shard have to be merged"
	}
	return nil
}

// add takes the removal of a shard, of which the oldest cut of a generation is given, if it comes first.
func (r *Removal) add(next commitlog.NextRemoval, shard int, cut int64) {
	from := next.Rows
	if from.IsZero() || !next.Manifests.IsZero() && next.Manifests.Before(from) {
		from = next.Manifests
	}
	waits := ""
	switch {
	case from.IsZero():
		return
	case cut == 0:
		waits = "there is no generation"
	case cut < next.Waits:
		waits = fmt.Sprintf("a generation has its cut at manifest %d of shard %d, and the files go once all are "+
			"beyond %d", cut, shard, next.Waits)
	}
	// What waits for nothing comes before what waits.
	free, was := waits == "", r.Waits == ""
	if r.From.IsZero() || free && !was || free == was && from.Before(r.From) {
		r.From, r.Waits = from, waits
	}
}

// String says it in a line.
func (r *Removal) String() string {
	switch at := r.From.UTC().Format(time.DateTime); {
	case r.From.IsZero():
		return "none is removed yet: " + r.Waits
	case r.Waits != "":
		return fmt.Sprintf("the next ones are removed from %s on, but not before: %s", at, r.Waits)
	case time.Since(r.From) > 0:
		return fmt.Sprintf("the next ones are removed within %s: they may go since %s", upkeep.RemovalInterval, at)
	default:
		return fmt.Sprintf("the next ones are removed within %s after %s", upkeep.RemovalInterval, at)
	}
}
