package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// rowObjects lists the row objects of a shard.
func rowObjects(t testing.TB, store sink.Store, shard int) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for info, err := range store.List(t.Context(), fmt.Sprintf("shards/%d/rows/", shard), "") {
		if err != nil {
			t.Fatal(err)
		}
		found[info.Key] = true
	}
	return found
}

// namedObjects lists what the shard's manifests name.
func namedObjects(t testing.TB, store sink.Store, shard int) map[string]bool {
	t.Helper()
	named := map[string]bool{}
	for m, err := range commitlog.Manifests(t.Context(), store, shard, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range m.Objects {
			named[o.Key] = true
		}
	}
	return named
}

// Commits fail and workers die at any moment while orphans are removed at any moment: at the end
// there is every object that a manifest names, and no other.
func TestOrphansAreRemovedAndNothingElse(t *testing.T) {
	total := 0
	for seed := range uint64(roundsOf(12)) {
		rng := rand.New(rand.NewPCG(seed, 5))
		b := newBroker(1 + rng.IntN(2))
		fill(b, rng, 150, 20)
		p := newPipeline(t, b, seed)
		p.window.Changes = 1 + rng.IntN(10)
		collectors := make([]*commitlog.Orphans, b.shards)
		for i := range collectors {
			collectors[i] = commitlog.NewOrphans(p.store, i)
		}
		collecting, budget := false, 60
		p.store.Fail = func(op, key string) error {
			if collecting {
				return nil
			}
			if rng.IntN(8) == 0 { // between any two calls of the workers
				collecting = true
				defer func() { collecting = false }()
				for _, o := range collectors {
					removed, err := o.Remove(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					total += removed.Objects
				}
			}
			if op == "create" && strings.Contains(key, "/manifests/") && budget > 0 && rng.IntN(2) == 0 {
				budget--
				return errInjected
			}
			return nil
		}
		p.drain(40)
		p.store.Fail = nil
		for shard := range b.shards {
			// What happened may have left none: this one is of a worker that lost the race for window 1.
			err := sink.PutBytes(t.Context(), p.store, commitlog.RowKey(shard, 1, "lost", 1), []byte("rows"))
			removed, removeErr := commitlog.NewOrphans(p.store, shard).Remove(t.Context())
			if err = errors.Join(err, removeErr); err != nil {
				t.Fatal(err)
			}
			if removed.Objects == 0 {
				t.Errorf("no orphan of shard %d was there", shard)
			}
			total += removed.Objects
			sameKeys(t, rowObjects(t, p.store, shard), namedObjects(t, p.store, shard))
		}
		p.checkLog()
		sameRows(t, p.newest(), model(b.everything(), true))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d orphans removed", total)
}

func sameKeys(t testing.TB, got, want map[string]bool) {
	t.Helper()
	for key := range want {
		if !got[key] {
			t.Errorf("%s is named by a manifest, and gone", key)
		}
	}
	for key := range got {
		if !want[key] {
			t.Errorf("%s is named by no manifest, and still there", key)
		}
	}
}

// A worker that is about to commit a window that another has committed loses its rows at once, and
// the race a moment later. Rows of windows that nobody has committed yet are left alone.
func TestOrphansBesideAZombie(t *testing.T) {
	b := newBroker(1)
	for i := range 5 {
		b.send(nodesTopic, 1, record{{Op: mutation.PutNode, ID: fmt.Sprint(i), Text: "text"}})
	}
	p := newPipeline(t, b, 1)
	collect := func() int {
		removed, err := commitlog.NewOrphans(p.store, 0).Remove(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return removed.Objects
	}
	zombie := openAndRead(t, p)
	p.disks[0] = vfs.NewCrashableMem() // on another machine
	successor := openAndRead(t, p)

	rowsWritten := false
	p.store.Fail = func(op, key string) error {
		if op != "create" || rowsWritten {
			return nil
		}
		rowsWritten = true
		if n := collect(); n != 0 {
			t.Errorf("%d objects of a window in flight were removed", n)
		}
		if _, err := successor.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := collect(); n != 2 {
			t.Errorf("%d objects removed, want the zombie's 2", n)
		}
		return nil
	}
	if _, err := zombie.Commit(t.Context()); !errors.Is(err, ErrFenced) {
		t.Errorf("commit of the zombie: %v, want ErrFenced", err)
	}
	sameKeys(t, rowObjects(t, p.store, 0), namedObjects(t, p.store, 0))
	p.checkLog()
}

// openAndRead opens the only shard and applies everything sent.
func openAndRead(t *testing.T, p *pipeline) *Shard {
	t.Helper()
	s, err := p.open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for feed := p.feed(s); !feed.caughtUp(); {
		batch, err := feed.Next(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
