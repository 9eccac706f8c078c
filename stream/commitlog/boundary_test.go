package commitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog/checkpoint"
)

// putDocument stores a JSON document with its checksum.
func putDocument(t testing.TB, store sink.Store, key string, doc any) {
	t.Helper()
	data, err := seal.JSON(doc, seal.Place{})
	if err == nil {
		err = sink.PutBytes(t.Context(), store, key, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// putCheckpoint stores a checkpoint's document that stands at a manifest.
func putCheckpoint(t testing.TB, store sink.Store, number, seq int64) {
	t.Helper()
	putDocument(t, store, checkpoint.Key(0, number),
		checkpoint.Document{Format: 2, Number: number, Seq: seq, Writer: "w", State: 1,
			Files: []checkpoint.File{{Name: "MANIFEST-1", Key: checkpoint.FileKey(0, number, "w", 1), Bytes: 1,
				SHA256: strings.Repeat("00", 32)}}})
}

func manifestNumbers(t testing.TB, store sink.Store) (numbers []int64) {
	t.Helper()
	for info, err := range store.List(t.Context(), manifestPrefix(0), "") {
		if err != nil {
			t.Fatal(err)
		}
		seq, err := manifestSeq(0, info.Key)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, seq)
	}
	return numbers
}

// findings audits shard 0. Orphans are left out, as nobody claims what belongs to no shard here.
func findings(t testing.TB, store sink.Store, repair bool) (found []audit.Finding) {
	t.Helper()
	a, err := audit.New(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	a.May = func(audit.Finding) bool { return repair }
	if err := AuditShard(t.Context(), a, 0); err != nil {
		t.Fatal(err)
	}
	a.Orphans()
	for _, f := range a.Findings {
		if !strings.Contains(f.Object, "/state/") { // the checkpoints of these tests have no files
			found = append(found, f)
		}
	}
	return found
}

// A log whose manifests were removed shows the same rows at every cut that is kept. It does so whether its blocks are
// merged or too large for that, and however far it was folded.
func TestFoldedLogShowsTheSame(t *testing.T) {
	race.SkipComputing(t)
	whole := &memstore.Store{}
	writeLog(t, whole, rand.New(rand.NewPCG(1, 7)), 300, 40)
	putCheckpoint(t, whole, 1, 280)
	want, changed := viewsAt(t, whole, []int64{300, 250, 64}), map[int64]map[string]string{}
	for _, after := range []int64{0, 1, 63, 64, 100, 250} {
		changed[after] = changes(t, whole, after, 300)
	}
	for _, maxRows := range []int64{0, 90} { // all blocks are merged, or not all
		for _, keep := range []int64{300, 250, 64} {
			t.Run(fmt.Sprintf("%d rows, cut %d", maxRows, keep), func(t *testing.T) {
				store, now := &memstore.Store{}, time.Unix(1_000_000, 0)
				copyStore(t, store, whole)
				cuts := []int64{keep, 300}
				c := testCompactor(store, now)
				c.opts.maxRows = maxRows
				if maxRows == 0 {
					c.opts.maxRows = maxCompactedRows
				}
				if _, err := c.Merge(t.Context()); err != nil {
					t.Fatal(err)
				}
				sameView(t, "merged", viewsAt(t, store, cuts), want)
				c.opts.Grace = -1
				if _, err := c.Remove(t.Context(), keep); err != nil {
					t.Fatal(err)
				}
				boundary := min(keep, 279) / 64 * 64
				removed, err := c.Fold(t.Context(), FoldOptions{Keep: keep})
				if err != nil || int64(removed.Objects) != boundary {
					t.Fatalf("%d manifests removed: %v", removed.Objects, err)
				}
				if b, err := ReadBoundary(t.Context(), store, 0); err != nil || b.Seq != boundary {
					t.Fatalf("boundary at %d, %v, want %d", b.Seq, err, boundary)
				}
				if left := manifestNumbers(t, store); len(left) != 300-int(boundary) || left[0] != boundary+1 {
					t.Errorf("%d manifests left, from %d on", len(left), left[0])
				}
				if removed, err := NewOrphans(store, 0).Remove(t.Context()); err != nil || removed.Objects > 0 {
					t.Errorf("%d orphans removed: %v", removed.Objects, err)
				}
				sameView(t, "folded", viewsAt(t, store, cuts), want)
				for _, after := range []int64{0, 1, 63, 64, 100, 250} {
					if got := changes(t, store, after, 300); !maps.Equal(got, changed[after]) {
						t.Errorf("changes after %d: %v, want %v", after, got, changed[after])
					}
				}
				if found := findings(t, store, false); len(found) > 0 {
					t.Errorf("an audit finds %+v", found)
				}
				if m, err := Head(t.Context(), store, 0); err != nil || m.Seq != 300 {
					t.Errorf("head %+v, %v", m, err)
				}
				if _, err := Next(t.Context(), store, 0, boundary-1); !errors.Is(err, ErrRemoved) {
					t.Errorf("the manifest at the boundary: %v", err)
				}
				if m, err := Next(t.Context(), store, 0, boundary); err != nil || m.Seq != boundary+1 {
					t.Errorf("the manifest behind the boundary: %+v, %v", m, err)
				}
				n := int64(0)
				for _, err := range Manifests(t.Context(), store, 0, 0) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				if n != 300-boundary {
					t.Errorf("%d manifests are yielded", n)
				}
				if again, err := c.Fold(t.Context(), FoldOptions{Keep: keep}); err != nil || again.Objects > 0 {
					t.Errorf("folded again: %+v, %v", again, err)
				}
				if merged, err := testCompactor(store, now).Merge(t.Context()); err != nil || merged > 0 {
					t.Errorf("a new compactor merges %d blocks: %v", merged, err)
				}
			})
		}
	}
}

// A cut that nobody keeps cannot be read once the log is folded, and the error says why.
func TestCutBehindTheBoundary(t *testing.T) {
	store := &memstore.Store{}
	writeLog(t, store, rand.New(rand.NewPCG(1, 7)), 140, 40)
	putCheckpoint(t, store, 1, 140)
	c := testCompactor(store, time.Unix(1_000_000, 0))
	if _, err := c.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fold(t.Context(), FoldOptions{Keep: 130}); err != nil {
		t.Fatal(err)
	}
	for cut, want := range map[int64]error{30: ErrRemoved, 64: nil, 100: ErrRemoved, 128: nil, 129: nil} {
		_, err := Cut{0: cut}.segments(t.Context(), store, 0)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("cut at %d: %v, want %v", cut, err, want)
		}
	}
	// The document of a merged block is all there is.
	if err := store.Delete(t.Context(), compactionKey(0, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := (Cut{0: 140}).segments(t.Context(), store, 0); !errors.Is(err, ErrDamaged) {
		t.Errorf("without the document of a block: %v", err)
	}
}

// What stops the boundary.
func TestFoldStopsBeforeWhatIsNeeded(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(t *testing.T, store *memstore.Store, c *Compactor, o *FoldOptions)
		boundary int64
	}{
		{"nothing", func(*testing.T, *memstore.Store, *Compactor, *FoldOptions) {}, 256},
		{"no generation", func(_ *testing.T, _ *memstore.Store, _ *Compactor, o *FoldOptions) { o.Keep = 0 }, 0},
		{"an old generation", func(_ *testing.T, _ *memstore.Store, _ *Compactor, o *FoldOptions) { o.Keep = 127 }, 64},
		{"history", func(_ *testing.T, _ *memstore.Store, c *Compactor, o *FoldOptions) {
			c.opts.Clock = func() time.Time { return time.Unix(1000, 0) }
			o.History = 850 * time.Second // manifest n is of second n
		}, 128},
		{"a few blocks at a time", func(_ *testing.T, _ *memstore.Store, _ *Compactor, o *FoldOptions) { o.Blocks = 1 }, 64},
		{"the older checkpoint", func(t *testing.T, store *memstore.Store, _ *Compactor, _ *FoldOptions) {
			putCheckpoint(t, store, 6, 128)
		}, 64},
		{"no checkpoint", func(t *testing.T, store *memstore.Store, _ *Compactor, _ *FoldOptions) {
			if err := store.Delete(t.Context(), checkpoint.Key(0, 7)); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"a checkpoint that cannot be read", func(t *testing.T, store *memstore.Store, _ *Compactor, _ *FoldOptions) {
			putDocument(t, store, checkpoint.Key(0, 8), checkpoint.Document{Format: 9})
		}, 0},
		{"a block without a document", func(t *testing.T, store *memstore.Store, _ *Compactor, _ *FoldOptions) {
			if err := store.Delete(t.Context(), compactionKey(0, 1, 65)); err != nil {
				t.Fatal(err)
			}
		}, 64},
		{"a head of an older format", func(t *testing.T, store *memstore.Store, _ *Compactor, _ *FoldOptions) {
			m, err := ReadManifest(t.Context(), store, 0, 300)
			if err != nil {
				t.Fatal(err)
			}
			m.Format = 2
			putDocument(t, store, ManifestKey(0, 300), m)
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &memstore.Store{}
			for seq := int64(1); seq <= 300; seq++ {
				commitWindow(t, store, seq)
			}
			putCheckpoint(t, store, 7, 300)
			c := testCompactor(store, time.Unix(1_000_000, 0))
			if _, err := c.Merge(t.Context()); err != nil {
				t.Fatal(err)
			}
			o := FoldOptions{Keep: 300}
			test.change(t, store, c, &o)
			_, err := c.Fold(t.Context(), o)
			b, berr := ReadBoundary(t.Context(), store, 0)
			if err != nil || berr != nil || b.Seq != test.boundary {
				t.Errorf("boundary at %d: %v, %v, want %d", b.Seq, err, berr, test.boundary)
			}
		})
	}
}

// noSwap is a store without compare-and-swap.
type noSwap struct{ sink.Store }

// A folder that is late does not move the boundary back, and a store on which it could is not folded.
func TestBoundaryOnlyAscends(t *testing.T) {
	store := &memstore.Store{}
	late, err := ReadBoundary(t.Context(), store, 0)
	if err == nil {
		err = late.move(t.Context(), store, Boundary{Seq: 128, Digest: "d"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := late.move(t.Context(), store, Boundary{Seq: 64, Digest: "d"}); !errors.Is(err, sink.ErrChanged) {
		t.Errorf("the first move of a late folder: %v", err)
	}
	now, err := ReadBoundary(t.Context(), store, 0)
	if err != nil || now.Seq != 128 {
		t.Fatalf("%+v, %v", now, err)
	}
	if err := now.move(t.Context(), store, Boundary{Seq: 64, Digest: "d"}); err == nil {
		t.Error("the boundary moves back")
	}
	if err := now.move(t.Context(), store, Boundary{Seq: 192, Digest: "d"}); err != nil {
		t.Error(err)
	}
	if err := now.move(t.Context(), store, Boundary{Seq: 256, Digest: "d"}); !errors.Is(err, sink.ErrChanged) {
		t.Errorf("a late folder: %v", err)
	}
	if err := (Boundary{}).move(t.Context(), noSwap{store}, Boundary{Seq: 64, Digest: "d"}); !errors.Is(err,
		sink.ErrUnsupported) {
		t.Errorf("without compare-and-swap: %v", err)
	}
}

// What a late worker creates under a removed number is no manifest, whoever reads it, and nothing that a folded block
// names goes with it.
func TestLateManifestBehindTheBoundary(t *testing.T) {
	race.SkipComputing(t)
	for _, maxRows := range []int64{maxCompactedRows, 40} { // merged, folded
		store := &memstore.Store{}
		writeLog(t, store, rand.New(rand.NewPCG(1, 7)), 140, 40)
		putCheckpoint(t, store, 1, 140)
		cuts := []int64{128, 140}
		want := viewsAt(t, store, cuts)
		c := testCompactor(store, time.Unix(1_000_000, 0))
		c.opts.maxRows = maxRows
		_, err := c.Merge(t.Context())
		if err == nil {
			_, err = c.Fold(t.Context(), FoldOptions{Keep: 128})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, seq := range []int64{1, 64, 127, 128} {
			m := &Manifest{Format: ManifestFormat, Seq: seq, Writer: "late", Next: map[string]int64{"nodes": 1},
				Created: time.Unix(1, 0)}
			if seq > 1 {
				m.Previous = strings.Repeat("ab", 32)
			}
			data, err := m.Encode("")
			if err == nil {
				err = store.Create(t.Context(), ManifestKey(0, seq), data)
			}
			if err == nil {
				err = store.Create(t.Context(), RowKey(0, seq, "late", 0), []byte("rows"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckCreated(t.Context(), store, 0, seq); !errors.Is(err, ErrRemoved) {
				t.Errorf("manifest %d is believed by its writer: %v", seq, err)
			}
			if _, err := ReadCommitted(t.Context(), store, 0, seq); !errors.Is(err, ErrRemoved) {
				t.Errorf("manifest %d is believed: %v", seq, err)
			}
			if _, err := Next(t.Context(), store, 0, seq-1); !errors.Is(err, ErrRemoved) {
				t.Errorf("manifest %d is next: %v", seq, err)
			}
		}
		before := maps.Clone(rowObjects(t, store))
		orphans := NewOrphans(store, 0)
		orphans.verified = 0
		if _, err := orphans.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		for key := range before {
			if !rowObjects(t, store)[key] && !strings.Contains(key, "late") {
				t.Errorf("%s was removed", key)
			}
		}
		if maxRows == 40 && rowObjects(t, store)[RowKey(0, 64, "late", 0)] {
			t.Error("rows of a late worker stay in a folded block")
		}
		sameView(t, "with late manifests", viewsAt(t, store, cuts), want)
		if m, err := Head(t.Context(), store, 0); err != nil || m.Seq != 140 {
			t.Errorf("head %+v, %v", m, err)
		}
		if _, err := c.Fold(t.Context(), FoldOptions{Keep: 128}); err != nil {
			t.Fatal(err)
		}
		if left := manifestNumbers(t, store); left[0] != 129 {
			t.Errorf("manifest %d stays", left[0])
		}
	}
}

// turningStore reads another store from its n-th call of Open on.
type turningStore struct {
	sink.Store
	other sink.Store

	mu sync.Mutex
	at int // calls until then
}

// now returns the store that is read after so many more calls.
func (s *turningStore) now(calls int) sink.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at -= calls; s.at > 0 {
		return s.Store
	}
	return s.other
}

func (s *turningStore) Open(ctx context.Context, key string) (sink.Object, error) {
	return s.now(1).Open(ctx, key)
}

func (s *turningStore) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	return s.now(0).List(ctx, prefix, after)
}

// A log that is folded between any two calls of a reader shows the reader the same rows, or reports that its cut is
// gone. A late worker puts its own manifests in the place of those that were removed.
func TestFoldBetweenAnyTwoCalls(t *testing.T) {
	for _, maxRows := range []int64{maxCompactedRows, 10} {
		before, after := &memstore.Store{}, &memstore.Store{}
		writeSparseLog(t, before, rand.New(rand.NewPCG(1, 7)), 70, 20, 3)
		putCheckpoint(t, before, 1, 70)
		copyStore(t, after, before)
		c := testCompactor(after, time.Unix(1_000_000, 0))
		c.opts.maxRows = maxRows
		_, err := c.Merge(t.Context())
		if err == nil {
			_, err = c.Fold(t.Context(), FoldOptions{Keep: 64})
		}
		if err != nil {
			t.Fatal(err)
		}
		for seq := int64(1); seq <= 64; seq++ { // by a worker that knew the manifest before it
			m, err := ReadManifest(t.Context(), before, 0, seq)
			if err != nil {
				t.Fatal(err)
			}
			m.Writer, m.Objects, m.Rows = "late", nil, 0
			putDocument(t, after, ManifestKey(0, seq), m)
		}
		reads := func(s sink.Store) (string, error) {
			var b strings.Builder
			for row, err := range (Cut{0: 70}).Facts(context.Background(), s, 0) {
				if err != nil {
					return "", err
				}
				fmt.Fprintln(&b, row.Seq, row.NodeID, row.Text)
			}
			head, err := Head(context.Background(), s, 0)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(&b, head.Seq)
			last := int64(0)
			for s, err := range Segments(context.Background(), s, 0, 30, 0) {
				if err != nil {
					return "", err
				}
				last = s.To
			}
			fmt.Fprintln(&b, last)
			return b.String(), nil
		}
		want, err := reads(before)
		if err != nil {
			t.Fatal(err)
		}
		at, step := 1, 1
		if testing.Short() {
			step = 7
		}
		for ; at < 2000; at += step {
			s := &turningStore{Store: before, at: at, other: after}
			got, err := reads(s)
			if err != nil || got != want {
				t.Fatalf("folded before call %d: %v\n%s\nwant\n%s", at, err, got, want)
			}
			if s.at > 0 {
				break
			}
		}
		if at < 100 || at >= 2000 {
			t.Errorf("folded before %d calls", at)
		}
	}
}

func copyStore(t testing.TB, to, from sink.Store) {
	t.Helper()
	for info, err := range from.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := sink.ReadAll(t.Context(), from, info.Key)
		if err == nil {
			err = to.Put(t.Context(), info.Key, bytes.NewReader(data), int64(len(data)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Without its boundary nobody reads the log or commits, and it can be written again.
func TestDamagedBoundary(t *testing.T) {
	store := &memstore.Store{}
	for seq := int64(1); seq <= 200; seq++ {
		commitWindow(t, store, seq, []rows.Row{{NodeID: "n", Text: fmt.Sprint(seq)}})
	}
	putCheckpoint(t, store, 1, 200)
	want := viewsAt(t, store, []int64{200})
	c := testCompactor(store, time.Unix(1_000_000, 0))
	_, err := c.Merge(t.Context())
	if err == nil {
		_, err = c.Fold(t.Context(), FoldOptions{Keep: 200})
	}
	if err != nil {
		t.Fatal(err)
	}
	whole, err := sink.ReadAll(t.Context(), store, boundaryKey(0))
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		for bit := range 8 {
			data := bytes.Clone(whole)
			data[at] ^= 1 << bit
			if _, err := decodeBoundary(data, seal.Place{}); err == nil {
				t.Fatalf("bit %d of byte %d flipped, and the boundary is read", bit, at)
			}
		}
	}
	if err := sink.PutBytes(t.Context(), store, boundaryKey(0), whole[1:]); err != nil {
		t.Fatal(err)
	}
	if _, err := Head(t.Context(), store, 0); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "verify") {
		t.Errorf("head: %v", err)
	}
	if err := CheckCreated(t.Context(), store, 0, 201); !errors.Is(err, ErrDamaged) {
		t.Errorf("a commit: %v", err)
	}
	if found := findings(t, store, true); len(found) != 1 || found[0].Object != boundaryKey(0) || found[0].Repaired == "" {
		t.Errorf("found %+v", found)
	}
	b, err := ReadBoundary(t.Context(), store, 0)
	if err != nil || b.Seq != 128+64 && b.Seq != 128 {
		t.Errorf("repaired: %+v, %v", b, err)
	}
	sameView(t, "repaired", viewsAt(t, store, []int64{200}), want)
	if found := findings(t, store, false); len(found) > 0 {
		t.Errorf("found after the repair: %+v", found)
	}
}

func FuzzDecodeBoundary(f *testing.F) {
	f.Add([]byte(`{"format":1,"shard":0,"seq":64,"digest":"d","moved":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = decodeBoundary(data, seal.Place{})
		_, _ = decodeFolded(data, seal.Place{})
	})
}
