package ingesting

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// stuck is how long a shard may be silent before it counts as stuck. A commit gives up on a store
// that is away much sooner.
const stuck = 10 * time.Minute

// stalled is how long a shard may have records to commit and commit none, beside its windows.
const stalled = 2 * time.Minute

// place is a process's place in the consumer group.
type place struct {
	mu sync.Mutex
	// has: the group has formed, and its shards have owners. Before, since is when it was to form, zero for never yet.
	has   bool
	since time.Time
	last  error // of the attempts to join since then
}

func (p *place) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has, p.last = true, nil
}

func (p *place) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err
}

func (p *place) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has, p.since = false, time.Now()
}

// missing says what is wrong if the process has had no place for longer than a group usually takes to form again.
func (p *place) missing(usually time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	because := ""
	if p.last != nil {
		because = ": " + p.last.Error()
	}
	switch waited := time.Since(p.since); {
	case p.has:
		return ""
	case p.since.IsZero():
		return "the process is joining the consumer group" + because
	case waited > usually:
		return fmt.Sprintf("the consumer group has given this process no shards for %v, and has yet to form again%s",
			waited.Round(time.Second), because)
	}
	return ""
}

// waits says what keeps the process from committing, "" if nothing does. It asks nobody.
func (in *Ingest) waits() string {
	if !in.Streams {
		return ""
	}
	if why := in.place.missing(in.Groups.Session()); why != "" {
		return why
	}
	if in.Load { // commits once it has read everything
		return ""
	}
	limit := stalled + 10*in.Settings.Get().Window.Time
	for _, w := range in.Watches.States() {
		if w.Ready && w.waited > limit {
			return fmt.Sprintf("shard %d has records to read and has committed nothing for %v",
				w.Shard, w.waited.Round(time.Second))
		}
	}
	return ""
}

// Unhealthy returns the reason why the process should be restarted, or "" if there is none.
func (in *Ingest) Unhealthy() string {
	for _, w := range in.Watches.States() {
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
	for _, w := range in.Watches.States() {
		if !w.Ready {
			return fmt.Sprintf("the state of shard %d is being restored", w.Shard)
		}
	}
	if why := in.waits(); why != "" {
		return why
	}
	return in.texts.waits()
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
