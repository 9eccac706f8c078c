package service

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/wiring"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/sources"
	"giantstream/stream/verify"
	"giantstream/train/generation"
)

// kind is a kind of objects: any two of them may be taken for each other.
type kind struct {
	name string
	keys *regexp.Regexp
	// expendable is why nothing is amiss without an object of the kind, "" if verify must find it missing.
	expendable string
}

// kindsOfObjects are those that a store may have, but for the short-lived ones of builds and probes.
func kindsOfObjects() (all []kind) {
	for _, k := range [][3]string{
		{"identity", `pipeline\.json`, ""},
		{"drawn id", `pipeline-id`, "the identity has it as well"},
		{"manifest", `shards/\d+/manifests/\d+\.json`, ""},
		{"rows", `shards/\d+/rows/.+\.parquet`, ""},
		{"merged block", `shards/\d+/compacted/\d-\d+\.json`, "the parts are there, and are merged again"},
		{"merged rows", `shards/\d+/compacted/rows/.+\.parquet`, ""},
		{"removed", `shards/\d+/removed\.json`, "what it covers is found missing, as far as documents name it"},
		{"boundary", `shards/\d+/boundary\.json`, ""},
		{"checkpoint", `shards/\d+/state/checkpoints/\d+\.json`, "the one before it is restored"},
		{"file of a checkpoint", `shards/\d+/state/files/.+`, ""},
		{"standby", `shards/\d+/standby\.json`, "a hint"},
		{"cursor", `shards/\d+/(published|canary)\.json`, "everything is published again"},
		{"generation", `generations/\d+/generation\.json`, "its objects are listed as orphans"},
		{"vectorizer", `generations/\d+/vectorizer`, ""},
		{"projection", `generations/\d+/projection`, ""},
		{"tree", `generations/\d+/tree`, ""},
		{"labels", `generations/\d+/labels\.parquet`, ""},
		{"mapping", `generations/\d+/mapping\.parquet`, ""},
		{"complements", `generations/\d+/goes-with\.parquet`, ""},
		{"training set", `generations/\d+/dataset/part-\d+\.parquet`, ""},
		{"embeddings", `generations/\d+/embeddings/part-[\d-]+\.parquet`, ""},
		{"encoder", `generations/\d+/encoder/config\.json`, ""},
		{"model", `generations/\d+/encoder/model\.safetensors`, ""},
		{"choice", `generations/choice\.json`, "nobody has chosen"},
		{"drift", `drift\.json`, "it is measured again"},
		{"stamp", `verified\.json`, "the store was never verified"},
		{"lease", `lease/.+\.json`, "nobody holds it"},
		{"source", `sources/[^/]+\.json`, "the topic is seen for the first time"},
		{"position", `sources/.+/copied/.+\.json`, "the consumer group is trusted"},
		{"loss", `sources/.+/lost/.+\.json`, "it was accepted"},
		{"reshard", `reshard/(into|from)\.json`, "the store was not left"},
	} {
		all = append(all, kind{k[0], regexp.MustCompile("^" + k[1] + "$"), k[2]})
	}
	return all
}

// byKind returns the keys of a store by the index of their kind, and fails for an object of no kind.
func byKind(t *testing.T, kinds []kind, keys []string) map[int][]string {
	t.Helper()
	out := map[int][]string{}
	for _, key := range keys {
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.keys.MatchString(key) })
		if at < 0 {
			t.Errorf("%s is of no kind that this test knows: add it to kindsOfObjects", key)
			continue
		}
		out[at] = append(out[at], key)
	}
	return out
}

// complete gives a pipeline's store what it has only now and then.
func (p *pipeline) complete(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	_, err := (generation.Chooser{Store: p.store, Now: time.Now}).Pin(ctx, 2)
	for shard := range p.cfg.Shards {
		if err == nil {
			err = sources.NoteLost(ctx, p.store, commitlog.ShardLost{Shard: shard, Lost: commitlog.Lost{Topic: "nodes",
				From: int64(p.seed), To: 10, Offsets: 3, Noticed: time.Unix(1_700_000_000, 0).UTC()}})
		}
		if err == nil {
			err = sources.Copied{Into: "test.nodes.keyed", Next: int64(p.seed)}.Put(ctx, p.store, "nodes", shard)
		}
		var standby checkpoint.StandbyClaim
		if err == nil {
			standby, err = checkpoint.ReadStandby(ctx, p.store, shard)
		}
		if err == nil {
			err = standby.Write(ctx, checkpoint.Standby{Worker: "w", Number: 1, Seq: 1})
		}
	}
	if err == nil {
		err = (&commitlog.Reshard{From: "memory://a", FromID: fmt.Sprint(p.seed), Into: "memory://b", Shards: 3}).CloseFor(
			ctx, p.store)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// folded returns a copy of a pipeline's store of which merged rows and the beginning of the logs were removed.
func (p *pipeline) folded(t *testing.T) *memstore.Store {
	t.Helper()
	store, _ := copyOf(t, p.store)
	for shard := range p.cfg.Shards {
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: store,
			Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		numbers, err := checkpoint.Numbers(t.Context(), store, shard)
		for _, n := range numbers { // a log is not folded up to a checkpoint that is kept
			doc, readErr := checkpoint.Read(t.Context(), store, shard, n)
			if err = errors.Join(err, readErr); err == nil && doc.Seq <= 64 {
				err = store.Delete(t.Context(), checkpoint.Key(shard, n))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		removed, err := c.Remove(t.Context(), 1<<40)
		if err == nil && removed.Objects == 0 {
			t.Errorf("no merged rows of shard %d were removed", shard)
		}
		if err == nil {
			removed, err = c.Fold(t.Context(), commitlog.FoldOptions{Keep: 1 << 40})
		}
		if err != nil || removed.Objects == 0 {
			t.Errorf("the log of shard %d was not folded: %+v, %v", shard, removed, err)
		}
	}
	return store
}

// look is one look of verify, which finds what two find where nothing else writes.
func look(t *testing.T, store sink.Store) *audit.Audit {
	t.Helper()
	found, _, err := verify.CheckOnce(t.Context(), verify.Options{Store: store,
		Generations: wiring.Generations{Store: store}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// named returns the objects of a store that documents name, by kind.
func named(t *testing.T, kinds []kind, store sink.Store) map[int][]string {
	t.Helper()
	_, keys := copyOf(t, store)
	found := look(t, store)
	return byKind(t, kinds, slices.DeleteFunc(keys, func(key string) bool { return len(findingsAbout(found, key)) > 0 }))
}

// TestVerifyIdentifiesContents puts each object of a store in the place of others of its kind, of any generation, shard
// or store, and removes each: verify finds all of it, without --deep.
func TestVerifyIdentifiesContents(t *testing.T) {
	if testing.Short() {
		t.Skip("compares ten thousand pairs of objects")
	}
	p, other := newPipeline(t, 0), newPipeline(t, 1)
	p.complete(t)
	other.complete(t)
	for _, c := range []struct {
		name  string
		store sink.Store
		other sink.Store
	}{{"whole", p.store, other.store}, {"folded", p.folded(t), other.folded(t)}} {
		t.Run(c.name, func(t *testing.T) {
			x := &exchange{store: c.store, kinds: kindsOfObjects()}
			if found := look(t, c.store); found.Damage() > 0 {
				t.Fatalf("before: %+v", found.Findings)
			}
			mine, theirs := named(t, x.kinds, c.store), named(t, x.kinds, c.other)
			for _, at := range slices.Sorted(maps.Keys(mine)) {
				if c.name == "folded" && !strings.HasPrefix(mine[at][0], "shards/") {
					continue // as in the whole one
				}
				x.exchangePairs(t, x.kinds[at], mine[at], c.other, thin(theirs[at]))
				if x.kinds[at].expendable == "" {
					x.everyLoss(t, x.kinds[at], mine[at])
				}
			}
			t.Logf("%d kinds, %d pairs and %d losses in %d looks", len(mine), x.pairs, x.losses, x.looks)
		})
	}
}

// thin returns all of a few keys, and of many about 32.
func thin(keys []string) (some []string) {
	for i := 0; i < len(keys); i += 1 + len(keys)/32 {
		some = append(some, keys[i])
	}
	return some
}

// exchange changes objects of a store and asks verify. To be quick it changes many at once, and then alone what verify
// did not name, since one damage may hide another.
type exchange struct {
	store                sink.Store
	kinds                []kind
	pairs, losses, looks int
}

// exchangePairs puts each of a kind's objects in the place of about 32 others, or of all.
func (x *exchange) exchangePairs(t *testing.T, k kind, mine []string, other sink.Store, theirs []string) {
	var contents [][]byte
	for _, key := range mine {
		contents = append(contents, read(t, x.store, key))
	}
	for _, key := range theirs {
		contents = append(contents, read(t, other, key))
	}
	step := len(contents)/32 | 1 // odd, or shards and generations that alternate would never meet
	for shift := 1; shift < len(contents); shift += step {
		change := map[string][]byte{}
		for i, key := range mine {
			if with := contents[(i+shift)%len(contents)]; !bytes.Equal(with, contents[i]) {
				change[key] = with
			}
		}
		x.pairs += len(change)
		x.try(t, change, func(key string) {
			t.Fatalf("%s: object %d places further lies in the place of %s, and nothing is found", k.name, shift, key)
		})
	}
}

// everyLoss removes each of a kind's objects: every other one at once, so that a gap of the log is one manifest wide.
func (x *exchange) everyLoss(t *testing.T, k kind, mine []string) {
	x.losses += len(mine)
	for half := range 2 {
		change := map[string][]byte{}
		for i, key := range mine {
			if i%2 == half {
				change[key] = nil
			}
		}
		x.try(t, change, func(key string) { t.Fatalf("%s: %s is gone, and nothing is found", k.name, key) })
	}
}

// try changes objects, to nothing for those that go, and calls unnoticed for each that verify does not find.
func (x *exchange) try(t *testing.T, change map[string][]byte, unnoticed func(key string)) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(change))
	found := x.with(t, change, keys)
	for _, key := range keys {
		if hasDamage(found, key) {
			continue
		}
		if len(keys) == 1 || x.with(t, change, []string{key}).Damage() == 0 {
			if len(keys) > 1 || found.Damage() == 0 {
				unnoticed(key)
			}
		}
	}
}

// with asks verify about the store with some of the changes made.
func (x *exchange) with(t *testing.T, change map[string][]byte, keys []string) *audit.Audit {
	t.Helper()
	x.looks++
	good := map[string][]byte{}
	for _, key := range keys {
		good[key] = read(t, x.store, key)
		if data := change[key]; data != nil {
			write(t, x.store, key, data)
		} else if err := x.store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	x.store.SetPipeline("") // verify is a process of its own
	found := look(t, x.store)
	for key, data := range good {
		write(t, x.store, key, data)
	}
	return found
}

func hasDamage(found *audit.Audit, key string) bool {
	return slices.ContainsFunc(findingsAbout(found, key), func(f audit.Finding) bool { return f.Kind != audit.Orphan })
}
