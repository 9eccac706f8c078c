package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"giantstream/internal/race"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/mutation"
	"giantstream/stream/shard/engine"
)

const healDir = "disk/state"

// healing is one shard of a pipeline whose local state is damaged.
type healing struct {
	*pipeline
	did   []string // damage
	full  *fullDisk
	rng   *rand.Rand
	aside int // states that were set aside
}

func newHealing(t testing.TB, seed uint64) *healing {
	h := &healing{rng: rand.New(rand.NewPCG(seed, 11))}
	h.pipeline = newPipeline(t, newBroker(1), seed)
	h.window = withChanges(1 + h.rng.IntN(60))
	h.batch, h.object = 40, 1000
	return h
}

func (h *healing) options(shard int) Options {
	o := h.pipeline.options(shard)
	o.Dir, o.grace = healDir, 50*time.Millisecond
	o.Listener = healingListener{h: h}
	if h.full != nil {
		o.fs = h.full.wrap(o.fs)
	}
	return o
}

// healingListener counts the states that are set aside.
type healingListener struct {
	NopListener
	h *healing
}

func (l healingListener) SetAside(_ string, reason error) {
	l.h.aside++
	l.h.did = append(l.h.did, "set aside: "+reason.Error())
}

// send adds records, some with texts that lie in files of their own.
func (h *healing) send(n int) {
	fill(h.b, h.rng, n, 60)
	for range n / 4 {
		text := fmt.Sprintf("%d %s", h.rng.IntN(1000), strings.Repeat("long text ", 15+h.rng.IntN(100)))
		h.b.send(nodesTopic, int64(h.rng.IntN(12)),
			record{{Op: mutation.PutNode, ID: fmt.Sprintf("n%d", h.rng.IntN(60)), Text: text}})
	}
}

// run consumes and commits everything. Whenever the shard fails it is opened again, with the disk
// as it is. between is called between two batches.
func (h *healing) run(between func()) {
	h.t.Helper()
	for failures := 0; ; failures++ {
		err := h.runOnce(between)
		if err == nil {
			return
		}
		if failures == 20 {
			h.t.Fatalf("the shard does not heal: %v", err)
		}
	}
}

func (h *healing) runOnce(between func()) (err error) {
	s, err := Open(h.t.Context(), h.options(0))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	feed := h.feed(s)
	for {
		batch, err := feed.Next(h.t.Context(), 0)
		if err != nil {
			h.t.Fatalf("%v, after %q", err, h.did)
		}
		if err := s.Apply(h.t.Context(), batch); err != nil {
			return err
		}
		if batch.CaughtUp || s.window.full(s.opts.Window) {
			if _, err := s.Commit(h.t.Context()); err != nil {
				return err
			}
		}
		if feed.caughtUp() && !s.advanced() && s.window.dirty == 0 {
			if h.checkpoints {
				return h.checkpoint(s)
			}
			return nil
		}
		between()
	}
}

// checkpoint copies the state to the store. From then on the topics hold no more than it needs, so a
// checkpoint of a damaged state would be the end of the shard.
func (h *healing) checkpoint(s *Shard) error {
	if err := s.Checkpoint(h.t.Context()); err != nil {
		return err
	}
	newest, err := checkpoint.Newest(h.t.Context(), h.store, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	if newest != nil {
		maps.Copy(h.b.floor[0], newest.Applied)
	}
	return nil
}

func (h *healing) check() {
	h.t.Helper()
	sameRows(h.t, h.newest(), model(h.b.everything(), true))
	h.checkLog()
}

// damage changes one file of the state: it flips a bit, overwrites or removes a part, or removes,
// empties, swaps or adds a file. It returns what it did.
func (h *healing) damage() string {
	disk, rng := h.disks[0], h.rng
	names, err := disk.List(healDir)
	if err != nil || len(names) == 0 {
		return "nothing"
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(n string) bool { return n == engine.LockName })
	name := names[rng.IntN(len(names))]
	path := filepath.Join(healDir, name)
	data, ok := h.read(path)
	if !ok {
		return "nothing: the engine was faster to remove " + name
	}
	if len(data) == 0 {
		_ = disk.Remove(path)
		return "remove " + name
	}
	at := rng.IntN(max(1, len(data)))
	switch rng.IntN(7) {
	case 0, 1, 2:
		data[at] ^= 1 << rng.IntN(8)
		h.write(path, data)
		return fmt.Sprintf("flip %s at %d of %d", name, at, len(data))
	case 3:
		for i := at; i < min(len(data), at+4096); i++ {
			data[i] = 0
		}
		h.write(path, data)
		return fmt.Sprintf("zero %s from %d of %d", name, at, len(data))
	case 4:
		h.write(path, data[:at])
		return fmt.Sprintf("cut %s to %d of %d", name, at, len(data))
	case 5:
		_ = disk.Remove(path)
		return "remove " + name
	}
	other := filepath.Join(healDir, names[rng.IntN(len(names))])
	h.write(other, data)
	return fmt.Sprintf("copy %s over %s", name, other)
}

// read returns what a file holds. An engine that is open may have removed it.
func (h *healing) read(path string) (data []byte, ok bool) {
	h.t.Helper()
	f, err := h.disks[0].Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		h.t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		h.t.Fatal(err)
	}
	data = make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil && len(data) > 0 {
		h.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		h.t.Fatal(err)
	}
	return data, true
}

// write changes a file in place, so that an engine that has it open sees it.
func (h *healing) write(path string, data []byte) {
	h.t.Helper()
	old, ok := h.read(path)
	if !ok {
		return
	}
	if len(data) < len(old) { // there is no truncate
		f, err := h.disks[0].Create(path, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(data)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			h.t.Fatal(err)
		}
		return
	}
	f, err := h.disks[0].OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		_, err = f.WriteAt(data, 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// roundsOf is how many of a test's seeds it takes: an eighth in a short run, and few under the race detector, where
// each takes ten times as long and runs the same goroutines as the others.
func roundsOf(seeds int) int {
	switch {
	case race.Enabled:
		return max(3, seeds/25)
	case testing.Short():
		return seeds / 8
	default:
		return seeds
	}
}

// Whatever happens to the files of a state that is not open, the graph is that of an undisturbed
// run, and no opening needs help.
func TestDamageAtRestHeals(t *testing.T) {
	rounds, aside := roundsOf(120), 0
	for seed := range uint64(rounds) {
		h := newHealing(t, seed)
		h.checkpoints = seed%2 == 1
		for range 3 {
			h.send(60)
			h.run(func() {})
		}
		for range 1 + h.rng.IntN(3) {
			h.did = append(h.did, h.damage())
		}
		h.send(60)
		h.run(func() {})
		if h.check(); t.Failed() {
			t.Fatalf("seed %d: %q", seed, h.did)
		}
		if h.aside > 0 {
			aside++
		}
	}
	t.Logf("%d of %d states were set aside", aside, rounds)
	if aside < rounds/3 {
		t.Errorf("only %d of %d damaged states were set aside", aside, rounds)
	}
}

// The list of tables that the engine keeps, its manifest, has no damage that the engine takes for its end.
func TestDamagedListOfTables(t *testing.T) {
	rounds := roundsOf(30)
	for seed := range uint64(rounds) {
		h := newHealing(t, 9000+seed)
		for range 3 {
			h.send(60)
			h.run(func() {})
		}
		name, err := atomicfs.ReadMarker(h.disks[0], healDir, "manifest")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(healDir, name)
		data, _ := h.read(path)
		at := h.rng.IntN(len(data))
		if seed%2 == 0 {
			data[at] ^= 1 << h.rng.IntN(8)
		} else {
			at = h.rng.IntN(len(data) - 16)
			clear(data[at:])
		}
		h.write(path, data)
		h.send(60)
		h.run(func() {})
		if h.check(); t.Failed() || h.aside != 1 {
			t.Fatalf("seed %d: %d states were set aside after damage at %d of %d", seed, h.aside, at, len(data))
		}
	}
}

// The same for a state that is open.
func TestDamageUnderARunningShardHeals(t *testing.T) {
	rounds, aside := roundsOf(80), 0
	for seed := range uint64(rounds) {
		h := newHealing(t, 1000+seed)
		h.checkpoints = seed%2 == 1
		h.send(60)
		h.run(func() {})
		for range 3 {
			h.send(80)
			h.run(func() {
				if len(h.did) < 4 && h.rng.IntN(3) == 0 {
					h.did = append(h.did, h.damage())
				}
			})
		}
		if h.check(); t.Failed() {
			t.Fatalf("seed %d: %q", seed, h.did)
		}
		if h.aside > 0 {
			aside++
		}
	}
	t.Logf("%d of %d states were set aside", aside, rounds)
	if aside < rounds/4 {
		t.Errorf("only %d of %d damaged states were set aside", aside, rounds)
	}
}
