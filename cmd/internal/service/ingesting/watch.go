package ingesting

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"giantstream/cmd/internal/telemetry"
	"giantstream/ingest/feed"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// Watches holds a watch per shard of this process, for metrics and health checks.
type Watches struct {
	mu     sync.Mutex
	shards map[int]*watch
	// failed has the errors of the shards that are to be started again, until they are ready.
	failed map[int]error
}

// Stopped notes that a shard has failed and will be started again, or with nil that it is ready or no
// longer here.
func (w *Watches) Stopped(shard int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = map[int]error{}
	}
	if w.failed[shard] = err; err == nil {
		delete(w.failed, shard)
	}
}

// failures returns the shards that are to be started again, and why.
func (w *Watches) failures() map[int]error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.failed)
}

// Open adds a watch for a shard that is about to be opened, with the head of its commit log, nil for
// none. The returned function removes the watch; call it when the shard is closed.
func (w *Watches) Open(shard int, head *commitlog.Manifest) (*watch, func()) { //nolint:revive // tests only end it
	if head == nil {
		head = &commitlog.Manifest{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shards == nil {
		w.shards = map[int]*watch{}
	}
	one := &watch{shard: shard, covered: head.Next, goal: head.Next, lost: head.Lost, counted: head.Counted,
		opened: time.Now(), turned: time.Now(), even: time.Now()}
	w.shards[shard] = one
	return one, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.shards[shard] == one {
			delete(w.shards, shard)
		}
	}
}

// States returns the state of every watch, ascending by shard.
func (w *Watches) States() []ShardState {
	w.mu.Lock()
	one := slices.Collect(maps.Values(w.shards))
	w.mu.Unlock()
	states := make([]ShardState, len(one))
	for i := range one {
		states[i] = one[i].state()
	}
	slices.SortFunc(states, func(a, b ShardState) int { return a.Shard - b.Shard })
	return states
}

// ready returns the shards, and whether they have what is committed.
func (w *Watches) ready() map[int]bool {
	ready := map[int]bool{}
	for _, one := range w.States() {
		ready[one.Shard] = one.Ready
	}
	return ready
}

// watch passes the batches of a feed on to a shard and notes how far the shard is.
type watch struct {
	shard  int
	opened time.Time
	// restored, if not nil, is called once, when the shard has reached goal, with the time that it
	// took.
	restored func(time.Duration)
	// traces follow some of the records, nil for none.
	traces *telemetry.Shard

	mu   sync.Mutex
	feed *feed.Feed // nil until it is open
	// Offsets by topic: goal is what the commit log covered when the shard was opened, covered what
	// it covers now, and read what the shard has been given.
	goal, covered, read map[string]int64
	// lost is what the newest manifest says to be lost, counted what it has counted.
	lost    []commitlog.Lost
	counted map[string]commitlog.Counted
	// since is when the oldest uncommitted change came.
	since time.Time
	// turned is when the shard last asked for a batch.
	turned time.Time
	// behind is how many records the shard could read then that no manifest covered. even is when it was last 0, or
	// when the shard has last committed.
	behind int64
	even   time.Time
	ready  bool
}

// ShardState is a watch at one moment.
type ShardState struct {
	Shard int
	// lag is, per topic, how many records the commit log does not cover.
	lag map[string]int64
	// held is, per topic, how many records of its end an open transaction holds back.
	held map[string]int64
	// lost is, per topic, how many offsets are lost, and nobody has accepted it.
	lost map[string]int64
	// counted is, per topic, what became of its records.
	counted map[string]commitlog.Counted
	// Ready: the state has all that the commit log covers.
	Ready bool
	// windowAge is how long the oldest uncommitted change has waited.
	windowAge time.Duration
	// silent is how long the shard's loop has been busy with one batch or commit.
	silent time.Duration
	// waited is how long the shard has had records to commit and has committed none.
	waited time.Duration
}

// attach sets the feed, which is opened after the shard.
func (w *watch) attach(f *feed.Feed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed = f
	w.turned = time.Now()
}

// Next implements shard.Feed.
func (w *watch) Next(ctx context.Context, wait time.Duration) (mutation.Batch, error) {
	w.mu.Lock()
	w.turned = time.Now()
	if w.behind = w.lag(); w.behind == 0 {
		w.even = w.turned
	}
	w.mu.Unlock()
	b, err := w.feed.Next(ctx, wait)
	w.traces.Batch(w.feed.Traced())
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

// committed notes that the shard has committed a manifest.
func (w *watch) committed(m *commitlog.Manifest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.covered, w.lost, w.counted, w.since, w.even = m.Next, m.Lost, m.Counted, time.Time{}, time.Now()
}

// lag is how many records the shard can read that no manifest covers.
func (w *watch) lag() (records int64) {
	held := w.feed.Held()
	for topic, end := range w.feed.Ends() {
		records += max(0, end-held[topic]-w.covered[topic])
	}
	return records
}

func (w *watch) state() ShardState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := ShardState{Shard: w.shard, Ready: w.ready, silent: time.Since(w.turned), lag: map[string]int64{},
		lost: map[string]int64{}, held: map[string]int64{}, counted: w.counted}
	if w.behind > 0 {
		s.waited = time.Since(w.even)
	}
	for _, l := range w.lost {
		s.lost[l.Topic] += l.Offsets
	}
	if !w.since.IsZero() {
		s.windowAge = time.Since(w.since)
	}
	if w.feed != nil {
		for topic, end := range w.feed.Ends() {
			s.lag[topic] = max(0, end-w.covered[topic])
		}
		s.held = w.feed.Held()
	}
	return s
}
