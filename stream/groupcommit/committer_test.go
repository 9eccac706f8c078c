package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// worker is a process with a few shards, which ends all windows at once.
type worker struct {
	t       *testing.T
	c       *Committer
	store   *memstore.Store
	members map[int]*Member
	heads   map[int]*commitlog.Manifest
}

var clock atomic.Int64

func newWorker(t *testing.T, store *memstore.Store, name string, shards ...int) *worker {
	t.Helper()
	w := &worker{t: t, store: store, members: map[int]*Member{}, heads: map[int]*commitlog.Manifest{}}
	w.c = New(t.Context(), Options{Store: store, Writer: name, Window: time.Second, Linger: time.Hour,
		Backoff: time.Microsecond, Clock: func() time.Time { return time.Unix(clock.Load(), 0) }})
	for _, p := range shards {
		w.join(p)
	}
	return w
}

// join opens a shard at its head.
func (w *worker) join(shard int) {
	w.t.Helper()
	w.members[shard] = w.c.Join(shard)
	head, err := commitlog.Head(w.t.Context(), w.store, shard)
	if err != nil {
		w.t.Fatal(err)
	}
	w.heads[shard] = head
}

// commit commits a window with one row in each of the shards, and returns their errors.
func (w *worker) commit(shards ...int) map[int]error {
	since := time.Unix(clock.Load(), 0)
	for _, p := range shards {
		w.members[p].Opened(since)
	}
	clock.Add(1)
	errs, heads := make([]error, len(shards)), make([]*commitlog.Manifest, len(shards))
	var g errgroup.Group
	for i, p := range shards {
		heads[i] = w.heads[p]
		g.Go(func() error {
			errs[i] = ErrSealed
			for errors.Is(errs[i], ErrSealed) {
				heads[i], errs[i] = w.window(p, heads[i])
			}
			if errs[i] != nil {
				w.members[p].Leave() // a shard that has failed is closed
			}
			return nil
		})
	}
	_ = g.Wait()
	out := map[int]error{}
	for i, p := range shards {
		out[p], w.heads[p] = errs[i], heads[i]
	}
	return out
}

// window commits a window of a shard whose newest manifest is head, and returns the newest one then.
func (w *worker) window(shard int, head *commitlog.Manifest) (*commitlog.Manifest, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	ticket, err := w.members[shard].Begin(ctx, head)
	if err != nil {
		return head, err
	}
	next := int64(1)
	if last := ticket.Head(); last.Next["nodes"] > 0 {
		next = last.Next["nodes"] + 1
	}
	m := &commitlog.Manifest{Shard: shard, Next: map[string]int64{"nodes": next}}
	row := rows.Row{NodeID: fmt.Sprintf("%d/%d", shard, next), Text: w.c.opts.Writer}
	if err := ticket.Commit(ctx, m, []rows.Row{row}); err != nil {
		return head, err
	}
	return m, nil
}

func (w *worker) mustCommit(shards ...int) {
	w.t.Helper()
	for p, err := range w.commit(shards...) {
		if err != nil {
			w.t.Fatalf("shard %d: %v", p, err)
		}
	}
}

// log checks that the numbers of a shard have no gap and that its rows are those of the windows, and returns the head.
func checkLog(t *testing.T, store *memstore.Store, shard, windows int) *commitlog.Manifest {
	t.Helper()
	var last *commitlog.Manifest
	for m, err := range commitlog.Manifests(t.Context(), store, shard, 0) {
		if err != nil {
			t.Fatalf("shard %d: %v", shard, err)
		}
		last = m
	}
	head, err := commitlog.Head(t.Context(), store, shard)
	if err != nil || head == nil || head.Digest() != last.Digest() || head.Next["nodes"] != int64(windows) {
		t.Fatalf("shard %d: the head is %+v, %v; the log ends with %+v; want %d windows", shard, head, err,
			last, windows)
	}
	n := 0
	for row, err := range (commitlog.Cut{shard: head.Seq}).Newest(t.Context(), store, shard) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; !strings.HasPrefix(row.NodeID, fmt.Sprint(shard, "/")) {
			t.Errorf("shard %d has the row of %s", shard, row.NodeID)
		}
	}
	if n != windows {
		t.Errorf("shard %d has %d rows, want %d", shard, n, windows)
	}
	return head
}

func objects(t *testing.T, store *memstore.Store, prefix string) (n int) {
	t.Helper()
	for _, err := range store.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// The windows of three shards that end together take one row object and one manifest.
func TestOneManifestForAllShards(t *testing.T) {
	store := &memstore.Store{}
	w := newWorker(t, store, "w", 0, 1, 2)
	for range 5 {
		w.mustCommit(0, 1, 2)
	}
	if n := objects(t, store, "sessions/"); n != 10 {
		t.Errorf("%d objects for 5 windows of 3 shards, want 10", n)
	}
	for p := range 3 {
		if head := checkLog(t, store, p, 5); head.Seq != 6 { // a delegation, and the windows
			t.Errorf("shard %d is at manifest %d", p, head.Seq)
		}
	}
	// A shard that has nothing to commit repeats its manifest.
	w.mustCommit(0)
	w.mustCommit(0, 2)
	if head := checkLog(t, store, 1, 5); head.Seq != 8 || head.RepeatsOf() != 6 {
		t.Errorf("shard 1 is at manifest %d, which repeats %d", head.Seq, head.RepeatsOf())
	}
	w.mustCommit(1)
	checkLog(t, store, 0, 7)
	checkLog(t, store, 1, 6)
	checkLog(t, store, 2, 6)
}

// A worker that takes a shard over seals its session. The former owner loses that shard alone.
func TestTakeover(t *testing.T) {
	store := &memstore.Store{}
	a, b := newWorker(t, store, "a", 0, 1), newWorker(t, store, "b")
	a.mustCommit(0, 1)
	a.mustCommit(0, 1)
	b.join(1)
	a.mustCommit(0) // it repeats manifest 3 of shard 1, and b may go on from there
	b.mustCommit(1)
	errs := a.commit(0, 1)
	if errs[0] != nil || !errors.Is(errs[1], commitlog.ErrTaken) {
		t.Fatalf("the former owner: %v", errs)
	}
	a.mustCommit(0)
	b.mustCommit(1)
	checkLog(t, store, 0, 5)
	checkLog(t, store, 1, 4)
	// Whoever knows less than what was committed has lost.
	old := a.heads[1]
	b.mustCommit(1)
	session := b.c.session.id
	a.members[1], a.heads[1] = a.c.Join(1), old
	if errs := a.commit(1); !errors.Is(errs[1], commitlog.ErrTaken) {
		t.Fatalf("a worker that has missed a window: %v", errs)
	}
	b.join(1)
	a.members[1], a.heads[1] = a.c.Join(1), b.heads[1]
	b.mustCommit(1)
	if errs := a.commit(1); !errors.Is(errs[1], commitlog.ErrTaken) || b.c.session.id != session {
		t.Fatalf("a worker that has missed a window of a session that goes on: %v; session %s, was %s", errs,
			b.c.session.id, session)
	}
	checkLog(t, store, 1, 6)
	a.join(1)
	a.mustCommit(0, 1)
	checkLog(t, store, 0, 6)
	checkLog(t, store, 1, 7)
}

// A shard that is released leaves the session, which goes on: its new owner seals nothing, and the shards that stay are
// not delegated again.
func TestRelease(t *testing.T) {
	store := &memstore.Store{}
	a, b := newWorker(t, store, "a", 0, 1, 2), newWorker(t, store, "b")
	a.mustCommit(0, 1, 2)
	session := a.c.session
	release := func(shards ...int) {
		for _, p := range shards {
			a.members[p].Leave()
		}
		a.c.Release(shards...)
		a.c.mu.Lock()
		batch := a.c.batch
		a.c.mu.Unlock()
		if batch != nil {
			<-batch.finished
		}
	}
	release(1)
	b.join(1)
	b.mustCommit(1)
	a.mustCommit(0, 2)
	b.mustCommit(1)
	if a.c.session != session || session.number != 3 {
		t.Errorf("the session is at group manifest %d, or another one: a shard that left has ended it", session.number)
	}
	checkLog(t, store, 0, 2)
	checkLog(t, store, 1, 3)
	checkLog(t, store, 2, 2)
	// It comes back, by a delegation of its own, and the session still goes on.
	b.members[1].Leave()
	b.c.Release(1) // b has no other: its session ends
	a.join(1)
	a.mustCommit(0, 1, 2)
	if a.c.session != session {
		t.Error("taking a shard over has cost the taker its session")
	}
	// A shard that is open is not released.
	a.c.Release(0, 1, 2)
	a.mustCommit(0, 1, 2)
	checkLog(t, store, 0, 4)
	checkLog(t, store, 1, 5)
	// Nothing is lost if the new owner does not wait for the release.
	b.join(2)
	b.mustCommit(2)
	release(2)
	a.mustCommit(0, 1)
	b.mustCommit(2)
	checkLog(t, store, 0, 5)
	checkLog(t, store, 1, 6)
	checkLog(t, store, 2, 6)
	if n := seals(t, store, session.id); n != 1 {
		t.Errorf("the session was sealed %d times", n)
	}
}

// seals counts the seals of a session.
func seals(t *testing.T, store *memstore.Store, session string) (n int) {
	t.Helper()
	for info, err := range store.List(t.Context(), "sessions/"+session+"/", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := sink.ReadAll(t.Context(), store, info.Key)
		if err != nil || !strings.HasSuffix(info.Key, ".json") {
			continue
		}
		if g, err := commitlog.DecodeGroup(data); err != nil {
			t.Fatal(err)
		} else if g.Sealed {
			n++
		}
	}
	return n
}

// An opening of a shard fences the one before it in the same process.
func TestOpeningsOfOneProcess(t *testing.T) {
	store := &memstore.Store{}
	w := newWorker(t, store, "w", 0)
	w.mustCommit(0)
	first, head := w.members[0], w.heads[0]
	w.join(0)
	if _, err := first.Begin(t.Context(), head); !errors.Is(err, ErrSuperseded) {
		t.Errorf("the first opening: %v", err)
	}
	w.mustCommit(0)
	second := w.c.Join(0)
	if _, err := second.Begin(t.Context(), head); !errors.Is(err, ErrSuperseded) {
		t.Errorf("an opening that has missed a window: %v", err)
	}
	checkLog(t, store, 0, 2)
}

// Any call to the store may fail, before or after its effect: nothing is committed twice, and nothing that was reported
// as committed is lost.
func TestErrorAtEveryCall(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := int64(1); ; n++ {
			store := &memstore.Store{}
			var calls atomic.Int64
			fail := func(string, string) error {
				if calls.Add(1) == n {
					return errors.New("injected failure")
				}
				return nil
			}
			if store.Fail = fail; after {
				store.Fail, store.FailAfter = nil, fail
			}
			done := 0
			for done < 3 {
				w := newWorker(t, store, "w")
				for failed := false; done < 3 && !failed; {
					if w.members[0] == nil {
						head, err := commitlog.Head(t.Context(), store, 0)
						if err != nil {
							continue
						}
						w.members[0], w.heads[0] = w.c.Join(0), head
						if head != nil {
							done = int(head.Next["nodes"])
						}
						continue
					}
					failed = w.commit(0)[0] != nil
					if !failed {
						done++
					}
				}
			}
			made := calls.Load()
			store.Fail, store.FailAfter = nil, nil
			checkLog(t, store, 0, 3)
			if made < n {
				break
			}
		}
	}
}

// A row object goes once every shard that has rows in it has merged them, and readers see the same rows. Group manifests
// stay in front of the boundaries.
func TestSharedRowsAreRemoved(t *testing.T) {
	const windows = 130
	store := &memstore.Store{}
	w := newWorker(t, store, "w", 0, 1)
	for range windows {
		w.mustCommit(0, 1)
	}
	later := func() time.Time { return time.Now().Add(time.Hour) }
	remove := func() int {
		t.Helper()
		removed, err := commitlog.RemoveSessions(t.Context(), commitlog.SessionsOptions{Store: store, Clock: later,
			Keep: func(context.Context, int) (int64, error) { return windows, nil }})
		if err != nil {
			t.Fatal(err)
		}
		return removed.Objects
	}
	for shard, want := range []int{0, 127} { // blocks of 64 begin with the delegation
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: store})
		if merged, err := c.Merge(t.Context()); merged != 2 || err != nil {
			t.Fatal(merged, err)
		}
		if n := remove(); n != want {
			t.Errorf("%d objects were removed after shard %d was merged, want %d", n, shard, want)
		}
	}
	if n := remove(); n != 0 {
		t.Errorf("another %d objects were removed", n)
	}
	if n := objects(t, store, "sessions/"); n != 2*windows-127 {
		t.Errorf("%d objects are left, want %d", n, 2*windows-127)
	}
	checkLog(t, store, 0, windows)
	checkLog(t, store, 1, windows)
}
