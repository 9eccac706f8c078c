package ingesting

import (
	"context"
	"fmt"
	"time"
)

// stuck is how long a shard may be silent before it counts as stuck. A commit gives up on a store
// that is away much sooner.
const stuck = 10 * time.Minute

// Unhealthy returns the reason why the process should be restarted, or "" if there is none.
func (in *Ingest) Unhealthy() string {
	for _, w := range in.Watches.All() {
		if w.Ready && w.silent > stuck {
			return fmt.Sprintf("shard %d has not moved for %v", w.Shard, w.silent.Round(time.Second))
		}
	}
	return ""
}

// Unready returns what the process is waiting for before it can read, or "" if it is ready: the state of a shard or the
// schema registry.
func (in *Ingest) Unready() string {
	for shard, err := range in.Watches.failures() {
		return fmt.Sprintf("shard %d has stopped and is started again: %v", shard, err)
	}
	if in.Schemas != nil {
		if err := in.Schemas.Err(); err != nil {
			return err.Error()
		}
	}
	for _, w := range in.Watches.All() {
		if !w.Ready {
			return fmt.Sprintf("the state of shard %d is being restored", w.Shard)
		}
	}
	return ""
}

// Behind returns what is wrong with the store or the brokers, or which records were lost, "" for nothing.
func (in *Ingest) Behind(ctx context.Context) string {
	if _, err := in.backlog(ctx); err != nil {
		return err.Error()
	}
	lost, err := in.Lost(ctx)
	switch {
	case err != nil:
		return err.Error()
	case len(lost) > 0:
		return fmt.Sprintf("records were lost: %s, and %d more ranges; see OPERATIONS.md, 'Lost records'", lost[0],
			len(lost)-1)
	}
	return ""
}
