package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"giantstream/ingest/feed"
	"giantstream/stream"
)

// watches are the shards of this process as metrics and probes see them.
type watches struct {
	mu     sync.Mutex
	shards map[int]*watch
}

// open begins to watch a shard that is about to be opened; goal is what its
// commit log covers. Call the result when it is closed.
func (w *watches) open(shard int, goal map[string]int64) (*watch, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shards == nil {
		w.shards = map[int]*watch{}
	}
	one := &watch{shard: shard, covered: goal, goal: goal, opened: time.Now(), turned: time.Now()}
	w.shards[shard] = one
	return one, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.shards[shard] == one {
			delete(w.shards, shard)
		}
	}
}

// all returns what is watched, by shard.
func (w *watches) all() []watchState {
	w.mu.Lock()
	one := slices.Collect(maps.Values(w.shards))
	w.mu.Unlock()
	states := make([]watchState, len(one))
	for i := range one {
		states[i] = one[i].state()
	}
	slices.SortFunc(states, func(a, b watchState) int { return a.shard - b.shard })
	return states
}

// watch stands between a shard and its feed.
type watch struct {
	shard  int
	opened time.Time
	// restored, if not nil, is called once with how long that took.
	restored func(time.Duration)

	mu   sync.Mutex
	feed *feed.Feed // nil until it is open
	// goal is what the commit log covered when the shard was opened, covered
	// what it covers now, and read what the shard has been given.
	goal, covered, read map[string]int64
	// since is when the first change came that is not committed.
	since time.Time
	// turned is when the shard's loop asked for more.
	turned time.Time
	ready  bool
}

// watchState is a watch at one moment.
type watchState struct {
	shard int
	// lag is, per topic, how many records the commit log does not cover.
	lag map[string]int64
	// ready: the state has all that the commit log covers.
	ready bool
	// windowAge is how long the oldest uncommitted change has waited.
	windowAge time.Duration
	// silent is how long the shard's loop has been busy with one batch or commit.
	silent time.Duration
}

// attach gives the watch its feed.
func (w *watch) attach(f *feed.Feed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed = f
	w.turned = time.Now()
}

// Next implements stream.Feed.
func (w *watch) Next(ctx context.Context, wait time.Duration) (stream.Batch, error) {
	w.mu.Lock()
	w.turned = time.Now()
	w.mu.Unlock()
	b, err := w.feed.Next(ctx, wait)
	if err != nil {
		return b, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = b.Next
	if w.ready && w.since.IsZero() && len(b.Mutations) > 0 {
		w.since = time.Now()
	}
	if !w.ready && w.reached() {
		w.ready = true
		if w.restored != nil {
			w.restored(time.Since(w.opened))
		}
	}
	return b, nil
}

// reached reports whether the shard has been given all that the goal covers.
func (w *watch) reached() bool {
	for topic, at := range w.goal {
		if w.read[topic] < at {
			return false
		}
	}
	return true
}

// committed notes a manifest.
func (w *watch) committed(m *stream.Manifest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.covered, w.since = m.Next, time.Time{}
}

func (w *watch) state() watchState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := watchState{shard: w.shard, ready: w.ready, silent: time.Since(w.turned), lag: map[string]int64{}}
	if !w.since.IsZero() {
		s.windowAge = time.Since(w.since)
	}
	if w.feed != nil {
		for topic, end := range w.feed.Ends() {
			s.lag[topic] = max(0, end-w.covered[topic])
		}
	}
	return s
}

// stuck is how long one step of a shard takes only if it never ends: a commit
// gives up on a store that is away much sooner.
const stuck = 10 * time.Minute

// unhealthy says what a restart of the process would mend, "" if nothing.
func (s *Service) unhealthy() string {
	select {
	case <-s.failed:
		return fmt.Sprintf("stopped: %v", s.failure())
	default:
	}
	for _, w := range s.watches.all() {
		if w.ready && w.silent > stuck {
			return fmt.Sprintf("shard %d has not moved for %v", w.shard, w.silent.Round(time.Second))
		}
	}
	return ""
}

// unready says what this process waits for before it does its part, "" if
// nothing: its shards' states, the store, the brokers, the schema registry.
func (s *Service) unready(ctx context.Context) string {
	if why := s.unhealthy(); why != "" {
		return why
	}
	if s.registry != nil {
		if err := s.registry.Err(); err != nil {
			return err.Error()
		}
	}
	for _, w := range s.watches.all() {
		if !w.ready {
			return fmt.Sprintf("the state of shard %d is being restored", w.shard)
		}
	}
	if _, _, err := s.backlog(ctx); err != nil {
		return err.Error()
	}
	return ""
}
