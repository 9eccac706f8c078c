package groupcommit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// history is a store after two workers have shared three shards: sessions end by seals, and shards leave them and come
// back.
func history(t *testing.T) *memstore.Store {
	t.Helper()
	store := &memstore.Store{}
	a, b := newWorker(t, store, "a", 0, 1, 2), newWorker(t, store, "b")
	for range 4 {
		a.mustCommit(0, 1, 2)
	}
	b.join(1) // without a release: it seals the session of a
	b.mustCommit(1)
	a.members[1].Leave()
	a.mustCommit(0, 2)
	a.members[2].Leave()
	a.c.Release(2) // in good order
	a.mustCommit(0)
	b.join(2)
	for range 3 {
		b.mustCommit(1, 2)
		a.mustCommit(0)
	}
	b.members[2].Leave()
	b.c.Release(2)
	b.mustCommit(1)
	b.join(2) // back to the session that it has left
	b.mustCommit(1, 2)
	b.mustCommit(2)
	a.mustCommit(0)
	return store
}

func keysOf(t *testing.T, store sink.Store) (keys []string) {
	t.Helper()
	for info, err := range store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// with returns a copy of a store in which an object holds something else, nil for a copy without it.
func with(t *testing.T, store *memstore.Store, key string, data []byte) *memstore.Store {
	t.Helper()
	out := &memstore.Store{}
	for _, k := range keysOf(t, store) {
		content, err := sink.ReadAll(t.Context(), store, k)
		if err != nil {
			t.Fatal(err)
		}
		if k == key {
			content = data
		}
		if content != nil {
			if err := sink.PutBytes(t.Context(), out, k, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

func verified(t *testing.T, store sink.Store, repair bool) *audit.Audit {
	t.Helper()
	a, err := audit.New(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	a.May = func(audit.Finding) bool { return repair }
	if err := commitlog.AuditShards(t.Context(), a, 3); err != nil {
		t.Fatal(err)
	}
	a.Orphans()
	return a
}

// logs returns the digests of the shards' manifests and the ids of their rows, as far as readers get, and whether they
// get there without an error.
func logs(t *testing.T, store sink.Store) (read [3]string, whole [3]bool) {
	t.Helper()
	for shard := range 3 {
		var b strings.Builder
		whole[shard] = true
		seq := int64(0)
		for m, err := range commitlog.Manifests(t.Context(), store, shard, 0) {
			if err != nil {
				whole[shard] = false
				break
			}
			fmt.Fprintln(&b, m.Seq, m.Digest())
			seq = m.Seq
		}
		if head, err := commitlog.Head(t.Context(), store, shard); err != nil || head == nil || head.Seq != seq {
			whole[shard] = whole[shard] && err == nil && head == nil && seq == 0
		}
		for row, err := range (commitlog.Cut{shard: seq}).Newest(t.Context(), store, shard) {
			if err != nil {
				whole[shard] = false
				break
			}
			fmt.Fprintln(&b, row.NodeID, row.Seq)
		}
		read[shard] = b.String()
	}
	return read, whole
}

// newest are the objects that end a log. Only later objects, which these stores do not have, are evidence of them.
func newest(t *testing.T, store sink.Store) map[string]bool {
	t.Helper()
	ends := map[string]bool{}
	last := map[string]string{}
	for _, key := range keysOf(t, store) {
		if strings.HasSuffix(key, ".json") {
			last[key[:strings.LastIndex(key, "/")]] = key
		}
	}
	for _, key := range last {
		ends[key] = true
	}
	return ends
}

// If any object is missing, damaged or another one of its kind, verify names it, and no reader takes what is left for
// the whole log.
func TestEveryDamageIsFound(t *testing.T) {
	store := history(t)
	if a := verified(t, store, false); len(a.Findings) > 0 {
		t.Fatalf("a whole store: %+v", a.Findings)
	}
	want, _ := logs(t, store)
	ends := newest(t, store)
	keys := slices.DeleteFunc(keysOf(t, store), func(key string) bool {
		return strings.Contains(key, "/rows/") && !named(t, store)[key] // of an attempt that failed
	})
	kinds := map[string]int{}
	for i, key := range keys {
		data, err := sink.ReadAll(t.Context(), store, key)
		if err != nil {
			t.Fatal(err)
		}
		flipped := bytes.Clone(data)
		flipped[(i*7919)%len(data)] ^= 1 << (i % 8)
		var other []byte // an object of the same kind that is whole
		for _, k := range append(slices.Clone(keys[i+1:]), keys[:i]...) {
			if strings.Contains(k, "/rows/") == strings.Contains(key, "/rows/") && k[:8] == key[:8] {
				other, _ = sink.ReadAll(t.Context(), store, k)
				break
			}
		}
		for name, content := range map[string][]byte{"missing": nil, "flipped": flipped, "another one": other} {
			damaged := with(t, store, key, content)
			a := verified(t, damaged, false)
			found := slices.ContainsFunc(a.Findings, func(f audit.Finding) bool {
				return f.Object == key && f.Kind != audit.Orphan
			})
			// The end of a log may be missing without a trace, but a delegation that is used and a seal leave one.
			if !found && (name != "missing" || !ends[key]) {
				t.Errorf("%s %s: %+v", key, name, a.Findings)
			}
			if found {
				kinds[name]++
			}
			for shard, got := range first(logs(t, damaged)) {
				if got.whole && got.read != want[shard] && !ends[key] {
					t.Errorf("%s %s: shard %d is read without an error, but not as it was", key, name, shard)
				}
			}
		}
	}
	t.Logf("%d objects, found: %v", len(keys), kinds)
}

// named are the row objects that manifests name.
func named(t *testing.T, store sink.Store) map[string]bool {
	t.Helper()
	named := map[string]bool{}
	for shard := range 3 {
		for m, err := range commitlog.Manifests(t.Context(), store, shard, 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range m.Objects {
				named[o.Key] = true
			}
		}
	}
	return named
}

type reading struct {
	read  string
	whole bool
}

func first(read [3]string, whole [3]bool) (out [3]reading) {
	for i := range read {
		out[i] = reading{read[i], whole[i]}
	}
	return out
}

// lostSeal is a store after another worker has taken shard 1 from worker a. The seal of a's session is missing.
func lostSeal(t *testing.T) (store *memstore.Store, a *worker, key string) {
	t.Helper()
	store = &memstore.Store{}
	a, b := newWorker(t, store, "a", 0, 1), newWorker(t, store, "b")
	a.mustCommit(0, 1)
	key = fmt.Sprintf("sessions/%s/%020d.json", a.c.session.id, 2)
	b.join(1)
	b.mustCommit(1)
	if err := store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return store, a, key
}

// A seal that is missing can be made again, and then keeps the session's worker from going on.
func TestRepairOfASeal(t *testing.T) {
	store, a, key := lostSeal(t)
	found := verified(t, store, true)
	if len(found.Findings) != 1 || found.Findings[0].Object != key || found.Damage() != 0 {
		t.Fatalf("%+v", found.Findings)
	}
	if again := verified(t, store, false); len(again.Findings) > 0 {
		t.Errorf("after the repair: %+v", again.Findings)
	}
	if errs := a.commit(0, 1); errs[0] != nil || !errors.Is(errs[1], commitlog.ErrTaken) {
		t.Errorf("the former owner: %v", errs)
	}
	checkLog(t, store, 0, 2)
	checkLog(t, store, 1, 2)
}

// A worker that goes on in a session whose seal is gone writes numbers that the shards' own logs have, too. Verify says
// so.
func TestForkBehindALostSeal(t *testing.T) {
	store, a, key := lostSeal(t)
	a.mustCommit(0)
	found := verified(t, store, true)
	if found.Damage() == 0 || !slices.ContainsFunc(found.Findings, func(f audit.Finding) bool { return f.Object == key }) {
		t.Errorf("%+v", found.Findings)
	}
}

// Rows that one shard has merged and another has not are not expendable if their object is damaged.
func TestDamagedRowsOfSeveralShards(t *testing.T) {
	store := &memstore.Store{}
	w := newWorker(t, store, "w", 0, 1, 2)
	for range 70 {
		w.mustCommit(0, 1, 2)
	}
	merge := func(shards ...int) {
		for _, shard := range shards {
			c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: store})
			if merged, err := c.Merge(t.Context()); err != nil || merged != 1 {
				t.Fatal(merged, err)
			}
		}
	}
	merge(0)
	third, err := commitlog.ReadManifest(t.Context(), store, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	key := third.Objects[0].Key
	data, err := sink.ReadAll(t.Context(), store, key)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	about := func(a *audit.Audit) (about []audit.Finding) {
		for _, f := range a.Findings {
			if f.Object == key {
				about = append(about, f)
			}
		}
		return about
	}
	damaged := with(t, store, key, data)
	found := about(verified(t, damaged, true))
	if len(found) != 2 || found[0].Kind != audit.Lost || found[1].Kind != audit.Lost {
		t.Errorf("shards 1 and 2 need the rows: %+v", found)
	}
	if _, err := sink.ReadAll(t.Context(), damaged, key); err != nil {
		t.Errorf("the repair has removed rows that are needed: %v", err)
	}
	merge(1, 2)
	damaged = with(t, store, key, data)
	if found := about(verified(t, damaged, true)); len(found) != 1 || found[0].Repaired == "" {
		t.Errorf("all shards have merged the rows: %+v", found)
	}
	if a := verified(t, damaged, false); a.Damage() > 0 {
		t.Errorf("after the repair: %+v", a.Findings)
	}
	if read, whole := logs(t, damaged); whole != [3]bool{true, true, true} || read[0] == "" {
		t.Errorf("after the repair: %v", whole)
	}
}

// checkpoint stores a checkpoint at a manifest.
func checkpoint(t *testing.T, store sink.Store, shard int, at *commitlog.Manifest) {
	t.Helper()
	file := commitlog.CheckpointFile{Name: "MANIFEST-1", Key: commitlog.StateFileKey(shard, 1, "w", 1), Bytes: 1,
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("x")))}
	err := sink.PutBytes(t.Context(), store, file.Key, []byte("x"))
	if err == nil {
		err = commitlog.CreateCheckpoint(t.Context(), store, &commitlog.Checkpoint{Shard: shard, Number: 1, Seq: at.Seq,
			Writer: at.Writer, State: 1, Files: []commitlog.CheckpointFile{file}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A log whose manifests were removed has its numbers from the boundary on. Nothing of that is damage, and the boundary
// can be made again.
func TestAuditBehindTheBoundary(t *testing.T) {
	store := &memstore.Store{}
	w := newWorker(t, store, "w", 0, 1, 2)
	for range 140 {
		w.mustCommit(0, 1, 2)
	}
	later := func() time.Time { return time.Now().Add(time.Hour) }
	keep := func(context.Context, int) (int64, error) { return 140, nil }
	for shard := range 3 {
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: store, Clock: later})
		if _, err := c.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkpoint(t, store, shard, w.heads[shard])
		if removed, err := c.Fold(t.Context(), commitlog.FoldOptions{Keep: 140}); err != nil || removed.Objects > 1 {
			t.Fatal(removed, err) // a delegation at most: the rest lies in the session
		}
	}
	if removed, err := commitlog.RemoveSessions(t.Context(), commitlog.SessionsOptions{Store: store, Keep: keep,
		Clock: later}); err != nil || removed.Objects < 2*127 {
		t.Fatal(removed, err)
	}
	if a := verified(t, store, false); len(a.Findings) > 0 {
		t.Fatalf("%+v", a.Findings)
	}
	const boundary = "shards/1/boundary.json"
	data, err := sink.ReadAll(t.Context(), store, boundary)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	damaged := with(t, store, boundary, data)
	a := verified(t, damaged, true)
	if len(a.Findings) != 1 || a.Findings[0].Object != boundary || a.Damage() > 0 {
		t.Errorf("%+v", a.Findings)
	}
	if a := verified(t, damaged, false); len(a.Findings) > 0 {
		t.Errorf("after the repair: %+v", a.Findings)
	}
	if got, want := first(logs(t, damaged))[1], first(logs(t, store))[1]; got != want {
		t.Errorf("after the repair shard 1 reads %+v", got)
	}
}
