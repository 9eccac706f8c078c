package service

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/logview"
	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
	"giantstream/stream/commitlog"
	"giantstream/stream/verify"
	"giantstream/train/generation"
)

// everyFlip flips random bits, one at a time, in objects of all kinds.
func everyFlip(t *testing.T, p *pipeline) {
	race.SkipComputing(t)
	store, _ := copyOf(t, p.store)
	rng := rand.New(rand.NewPCG(1, 1))
	kinds := map[string][]string{} // so that the few objects of a kind get their share
	all := kindsOfObjects()
	for at, keys := range named(t, all, store) {
		kinds[all[at].name] = keys
	}
	names := make([]string, 0, len(kinds))
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	const flips = 200 // of the objects of each kind of commit
	for n := range flips {
		of := kinds[names[n%len(names)]]
		key := of[rng.IntN(len(of))]
		good := read(t, store, key)
		if len(good) == 0 {
			continue
		}
		bad := bytes.Clone(good)
		bit := rng.IntN(8 * len(bad))
		bad[bit/8] ^= 1 << (bit % 8)
		write(t, store, key, bad)
		if found := look(t, store); found.Damage() == 0 {
			t.Errorf("bit %d of byte %d of %s: unnoticed", bit%8, bit/8, key)
		} else if len(findingsAbout(found, key)) == 0 {
			t.Errorf("bit %d of byte %d of %s: found elsewhere: %+v", bit%8, bit/8, key, found.Findings[0])
		}
		write(t, store, key, good)
	}
	t.Logf("%d flips in objects of %d kinds: %v", flips, len(names), names)
}

// readOnly verifies a store that refuses all writes, whole and damaged: the verdict is the same.
func readOnly(t *testing.T, p *pipeline) {
	store, keys := copyOf(t, p.store)
	damage(t, store, keys[len(keys)-2])
	want, _ := check(t, store, verify.Options{})
	store.Fail = func(op, _ string) error {
		if op != "open" && op != "read" && op != "list" {
			return errors.New("access denied")
		}
		return nil
	}
	got, _ := check(t, store, verify.Options{})
	if want.Damage() == 0 || !slices.Equal(got.Findings, want.Findings) {
		t.Errorf("findings %+v, want %+v", got.Findings, want.Findings)
	}
}

// everyRepair damages objects that are derived. After the repair the store is whole, or says that a new
// generation is due.
func everyRepair(t *testing.T, p *pipeline) {
	_, keys := copyOf(t, p.store)
	pick := func(contains, suffix string) string {
		for _, key := range slices.Backward(keys) {
			if strings.Contains(key, contains) && strings.HasSuffix(key, suffix) {
				return key
			}
		}
		t.Fatalf("the store has no %s…%s", contains, suffix)
		return ""
	}
	for _, key := range []string{pick("/compacted/1-", ".json"), pick("/compacted/rows/1-", ".parquet"),
		pick("/state/checkpoints/", ".json"), pick("/state/files/", ""), pick("/published.json", ""),
		pick("lease/", "")} {
		store, _ := copyOf(t, p.store)
		bad := read(t, store, key)
		bad[len(bad)/2] ^= 1
		write(t, store, key, bad)
		if strings.Contains(key, "/compacted/1-") { // readers take the parts
			if _, graphs := check(t, store, verify.Options{Deep: true}); graphs[len(graphs)-1].Damage != "" {
				t.Errorf("%s damaged: %v", key, graphs)
			}
		}
		found, _ := check(t, store, verify.Options{Repair: true})
		if len(findingsAbout(found, key)) == 0 || found.Damage() > 0 {
			t.Errorf("%s: %d not repaired: %+v", key, found.Damage(), found.Findings)
		}
		if again, _ := check(t, store, verify.Options{Deep: true}); again.Damage() > 0 {
			t.Errorf("%s: after the repair: %+v", key, again.Findings)
		}
	}
	store, _ := copyOf(t, p.store)
	key := pick("generations/000002/tree", "")
	write(t, store, key, []byte("garbage"))
	found, _ := check(t, store, verify.Options{Repair: true})
	if len(findingsAbout(found, key)) == 0 || found.Damage() > 0 {
		t.Errorf("%s: %+v", key, found.Findings)
	}
	if doc, err := generation.Current(t.Context(), store); err != nil || doc.Generation != 1 {
		t.Errorf("current generation %v (%v), want 1", doc, err)
	}
}

// noDocument removes documents of generations. The one that is served, and the one of the canary topic, cannot have
// been removed because of a newer one. A repair takes the number, so that no other vectors get it.
func noDocument(t *testing.T, p *pipeline) {
	remove := func(store sink.Store, prefix string) {
		t.Helper()
		for info, err := range store.List(t.Context(), prefix, "") {
			if err == nil {
				err = store.Delete(t.Context(), info.Key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const served, canary, document = "generations/000001/", "generations/000002/", "generation.json"
	for _, gone := range [][]string{{served}, {served + document}, {canary}, {canary + document}, {served, canary}} {
		store, _ := copyOf(t, p.store)
		for _, removed := range gone {
			remove(store, removed)
		}
		for _, o := range []verify.Options{{}, {Repair: true}} {
			found, _ := check(t, store, o)
			for _, removed := range gone {
				f := findingsAbout(found, strings.TrimSuffix(removed, document)+document)
				if len(f) != 1 || f[0].Kind != audit.Derived || (f[0].Repaired != "") != o.Repair {
					t.Errorf("%s is missing: %+v", removed, found.Findings)
				}
			}
		}
		if _, next, err := generation.Next(t.Context(), store); next != 3 || err != nil {
			t.Errorf("%s is missing: the next generation is %d (%v), want 3", gone, next, err)
		}
	}
	for pinned, want := range map[int64]int{1: 1, 2: 0} { // with 2, Prune may have removed 1
		store, _ := copyOf(t, p.store)
		if _, err := (generation.Chooser{Store: store, Now: time.Now}).Pin(t.Context(), pinned); err != nil {
			t.Fatal(err)
		}
		remove(store, served)
		if found, _ := check(t, store, verify.Options{}); len(findingsAbout(found, served+document)) != want {
			t.Errorf("generation 1 is missing, %d is pinned: %+v", pinned, found.Findings)
		}
	}
}

func gap(t *testing.T, p *pipeline) {
	store, _ := copyOf(t, p.store)
	newest, err := commitlog.Head(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []int64{1, 31, 63, 77} { // 31 and 63 are where the search for the head looks
		key := commitlog.ManifestKey(0, seq)
		good := read(t, store, key)
		if err := store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		found, _ := check(t, store, verify.Options{})
		if f := findingsAbout(found, key); len(f) == 0 || f[0].Kind != audit.Lost {
			t.Errorf("manifest %d deleted: %+v", seq, found.Findings)
		}
		// Whoever took an older head for the newest one would write a second history.
		m, err := commitlog.Head(t.Context(), store, 0)
		if !errors.Is(err, commitlog.ErrDamaged) && (err != nil || m.Seq != newest.Seq) {
			t.Errorf("manifest %d deleted: the head is %+v (%v)", seq, m, err)
		}
		write(t, store, key, good)
	}
}

// lostEnd removes the newest manifests. The objects that know of them are the evidence, which a repair
// leaves alone, and no worker goes on before them.
func lostEnd(t *testing.T, p *pipeline) {
	newest, err := commitlog.Head(t.Context(), p.store, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1, 2, newest.Seq} {
		store, _ := copyOf(t, p.store)
		for seq := newest.Seq; seq > newest.Seq-n; seq-- {
			if err := store.Delete(t.Context(), commitlog.ManifestKey(0, seq)); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := copyOf(t, store)
		found, _ := check(t, store, verify.Options{Repair: true})
		f := findingsAbout(found, commitlog.ManifestKey(0, newest.Seq-n+1))
		if len(f) != 1 || f[0].Kind != audit.Lost || f[0].Repaired != "" {
			t.Errorf("the newest %d manifests deleted: %+v", n, found.Findings)
		}
		for info, err := range before.List(t.Context(), "shards/0/", "") {
			if err != nil {
				t.Fatal(err)
			}
			orphan := len(findingsAbout(found, info.Key)) > 0 && findingsAbout(found, info.Key)[0].Kind == audit.Orphan
			if _, err := sink.ReadAll(t.Context(), store, info.Key); err != nil && !orphan {
				t.Errorf("the newest %d manifests deleted: the repair removed %s", n, info.Key)
			}
		}
		if m, err := commitlog.Head(t.Context(), store, 0); !errors.Is(err, commitlog.ErrDamaged) {
			t.Errorf("the newest %d manifests deleted: the head is %+v (%v)", n, m, err)
		}
	}
}

// swapped puts a manifest that is whole into a chain that it is not of.
func swapped(t *testing.T, p *pipeline) {
	store, _ := copyOf(t, p.store)
	m, err := commitlog.ReadManifest(t.Context(), store, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	m.Writer += "-other"
	data, err := m.Encode(store.Pipeline())
	if err != nil {
		t.Fatal(err)
	}
	write(t, store, commitlog.ManifestKey(0, 10), data)
	brokenAt(t, store, commitlog.ManifestKey(0, 11))
}

// brokenAt checks that verify finds the chain broken at an object.
func brokenAt(t *testing.T, store sink.Store, key string) {
	t.Helper()
	found, _ := check(t, store, verify.Options{})
	if f := findingsAbout(found, key); len(f) == 0 || !strings.Contains(f[0].What, "digest") {
		t.Errorf("%+v", found.Findings)
	}
}

// rewritten replaces rows by others that are a good file.
func rewritten(t *testing.T, p *pipeline) {
	store, keys := copyOf(t, p.store)
	for _, key := range keys {
		if !strings.HasPrefix(key, "generations/") && strings.HasSuffix(key, ".parquet") {
			rowstest.Put(t, store, key, []rows.Row{{NodeID: "n000", Text: "poison", Labels: []string{"n001"}}})
		}
	}
	source, err := logview.OpenCut(t.Context(), store, p.cfg.Shards, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = nil
	for row, rowErr := range source.Rows(t.Context()) {
		if err = rowErr; err == nil && row.Text == "poison" {
			t.Fatal("a rewritten row was read")
		}
	}
	if !errors.Is(err, sink.ErrDamaged) {
		t.Errorf("rows of rewritten objects: %v, want ErrDamaged", err)
	}
}
