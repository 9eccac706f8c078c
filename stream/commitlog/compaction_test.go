package commitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// writeLog writes a commit log of small windows that rewrite a few nodes.
func writeLog(t testing.TB, store sink.Store, rng *rand.Rand, windows, nodes int) {
	t.Helper()
	writeSparseLog(t, store, rng, windows, nodes, 1)
}

// writeSparseLog has rows in one of so many windows.
func writeSparseLog(t testing.TB, store sink.Store, rng *rand.Rand, windows, nodes, one int) {
	t.Helper()
	for seq := int64(1); seq <= int64(windows); seq++ {
		if one > 1 && rng.IntN(one) > 0 {
			commitWindow(t, store, seq)
			continue
		}
		var parts [][]rows.Row
		ids := map[string]bool{}
		for range rng.IntN(4) { // some windows have no rows
			ids[fmt.Sprintf("n%03d", rng.IntN(nodes))] = true
		}
		for ids := range slices.Chunk(slices.Sorted(maps.Keys(ids)), 2) {
			var batch []rows.Row
			for _, id := range ids {
				r := rows.Row{NodeID: id, EventTime: seq, Text: fmt.Sprintf("%s as of window %d", id, seq),
					Labels: []string{"x"}}
				if rng.IntN(8) == 0 {
					r = rows.Row{NodeID: id, EventTime: seq, Deleted: true}
				}
				batch = append(batch, r)
			}
			parts = append(parts, batch)
		}
		commitWindow(t, store, seq, parts...)
	}
}

// lines prints rows, in order.
func lines(t testing.TB, seq iter.Seq2[Row, error]) string {
	t.Helper()
	var b strings.Builder
	for r, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, r.Seq, r.NodeID, r.Text, r.Labels, r.EventTime, r.Deleted)
	}
	return b.String()
}

// view is what readers see of a log.
type view map[string]string

// viewsAt reads the log at cuts, and the changes after those.
func viewsAt(t testing.TB, store sink.Store, cuts []int64) view {
	t.Helper()
	v := view{}
	for _, c := range cuts {
		cut := Cut{0: c}
		if c < 1000 { // thousands of windows take long to sort
			v[fmt.Sprint("newest at ", c)] = lines(t, cut.Newest(t.Context(), store, 0))
		}
		v[fmt.Sprint("facts at ", c)] = lines(t, cut.Facts(t.Context(), store, 0))
	}
	return v
}

// changes is the last row of each node in Segments.
func changes(t testing.TB, store sink.Store, after, to int64) map[string]string {
	t.Helper()
	out, next := map[string]string{}, after+1
	for s, err := range Segments(t.Context(), store, 0, after, to) {
		if err != nil {
			t.Fatal(err)
		}
		if s.From > next || s.To < next {
			t.Errorf("manifests %d to %d come where %d is next", s.From, s.To, next)
		}
		next = s.To + 1
		for r, err := range s.Rows(t.Context(), store, rows.ReadOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Seq <= after || r.Seq > to {
				t.Errorf("a row of manifest %d is among the changes from %d to %d", r.Seq, after, to)
			}
			out[r.NodeID] = fmt.Sprint(r.Seq, r.Text, r.Deleted)
		}
	}
	if next != to+1 {
		t.Errorf("segments end before manifest %d, want %d", next, to+1)
	}
	return out
}

func sameView(t testing.TB, when string, got, want view) {
	t.Helper()
	for k := range got {
		if got[k] != want[k] {
			t.Errorf("%s: %s:\ngot\n%swant\n%s", when, k, got[k], want[k])
			return
		}
	}
}

func testCompactor(store sink.Store, now time.Time) *Compactor {
	return NewCompactor(CompactorOptions{Store: store, Grace: time.Hour, Clock: func() time.Time { return now }})
}

// A merged log shows the same rows, of the same manifests, in the same order, at every cut. Once
// the parts are removed it still does at the cuts to be kept.
func TestMergedLogShowsTheSame(t *testing.T) {
	race.SkipComputing(t)
	t.Setenv("TMPDIR", t.TempDir())
	for _, test := range []struct {
		windows, nodes int
		one            int // of so many windows has rows
		merged         int
	}{
		{63, 20, 1, 0}, {64, 20, 1, 1}, {300, 40, 1, 4},
		{64*64 + 70, 60, 16, 64 + 1 + 1}, // a block of the second level
	} {
		t.Run(fmt.Sprint(test.windows), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(test.windows), 1))
			store := &memstore.Store{}
			writeSparseLog(t, store, rng, test.windows, test.nodes, test.one)
			head := int64(test.windows)
			cuts := []int64{head, head - 1, max(1, head-70), 1 + rng.Int64N(head)}
			afters := []int64{0, 63, max(0, head-65), head - 1, rng.Int64N(head)}
			want, moved := viewsAt(t, store, cuts), map[int64]map[string]string{}
			for _, after := range afters {
				moved[after] = changes(t, store, min(after, head), head)
			}
			objects := len(rowObjects(t, store))

			now := time.Unix(1, 0)
			n, err := testCompactor(store, now).Merge(t.Context())
			if err != nil || n != test.merged {
				t.Fatalf("merged %d blocks, %v; want %d", n, err, test.merged)
			}
			if n, err = testCompactor(store, now).Merge(t.Context()); err != nil || n != 0 {
				t.Fatalf("merged %d blocks again, %v", n, err)
			}
			sameView(t, "merged", viewsAt(t, store, cuts), want)

			removed, err := testCompactor(store, now.Add(time.Minute)).Remove(t.Context(), head)
			if err != nil || removed.Objects != 0 {
				t.Fatalf("within the grace %+v were removed, %v", removed, err)
			}
			keep := cuts[2]
			if removed, err = testCompactor(store, now.Add(2*time.Hour)).Remove(t.Context(), keep); err != nil {
				t.Fatal(err)
			}
			if test.merged > 1 && removed.Objects < objects/2 {
				t.Errorf("only %d of %d objects were removed", removed.Objects, objects)
			}
			for _, c := range cuts {
				if c >= keep {
					sameView(t, "parts removed", viewsAt(t, store, []int64{c}), want)
				}
			}
			for _, after := range afters {
				got := changes(t, store, min(after, head), head)
				if fmt.Sprint(got) != fmt.Sprint(moved[after]) {
					t.Errorf("changes after %d are %v, want %v", after, got, moved[after])
				}
			}
		})
	}
}

// Blocks with many rows are left as they are.
func TestLargeBlocksAreNotMerged(t *testing.T) {
	store := &memstore.Store{}
	writeLog(t, store, rand.New(rand.NewPCG(1, 1)), 140, 50)
	want := viewsAt(t, store, []int64{140, 64})
	c := testCompactor(store, time.Unix(1, 0))
	c.opts.maxRows = 3
	if n, err := c.Merge(t.Context()); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if removed, err := testCompactor(store, time.Unix(1e6, 0)).Remove(t.Context(), 140); err != nil ||
		removed.Objects != 0 {
		t.Errorf("removed %+v, %v", removed, err)
	}
	sameView(t, "skipped", viewsAt(t, store, []int64{140, 64}), want)
}

// Compactors that are halted, by errors or for as long as others take to merge and remove, leave a
// log that shows the same rows, and no superfluous objects.
func TestCompactorsOfManySessions(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const head = 200
	seeds := uint64(6)
	switch {
	case race.Enabled:
		seeds = 1
	case testing.Short():
		seeds = 2
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		store := &memstore.Store{}
		writeSparseLog(t, store, rng, head, 30, 2)
		cuts := []int64{head, 192, 150}
		want := viewsAt(t, store, cuts)
		now, depth, quiet := time.Unix(1, 0), 0, false
		turn := func() {
			c := testCompactor(store, now)
			_, err := c.Merge(t.Context())
			if rng.IntN(2) == 0 {
				now = now.Add(2 * time.Hour) // no reader takes that long
			}
			if err == nil {
				_, err = c.Remove(t.Context(), 150)
			}
			// A zombie may find the parts of a block gone that another has merged.
			if err != nil && !errors.Is(err, errInjected) && !errors.Is(err, sink.ErrNotFound) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		hook := func(string, string) error {
			if quiet {
				return nil
			}
			if rng.IntN(50) == 0 {
				return errInjected
			}
			if depth < 2 && rng.IntN(120) == 0 {
				depth++
				turn()
				depth--
				quiet = true
				one := rng.IntN(len(cuts))
				sameView(t, fmt.Sprintf("seed %d", seed), viewsAt(t, store, cuts[one:one+1]), want)
				quiet = false
			}
			return nil
		}
		store.Fail = hook
		if seed%2 == 0 {
			store.Fail, store.FailAfter = nil, hook
		}
		for range 6 {
			turn()
		}
		store.Fail, store.FailAfter, quiet = nil, nil, true
		turn()
		now = now.Add(2 * time.Hour)
		turn()
		sameView(t, fmt.Sprintf("seed %d, at the end", seed), viewsAt(t, store, cuts), want)
		named := map[string]bool{}
		for level := 1; level <= compactionLevels; level++ {
			for from, err := range compactions(t.Context(), store, 0, level, 1) {
				if err != nil {
					t.Fatal(err)
				}
				doc, err := readCompaction(t.Context(), store, 0, level, from)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range doc.Objects {
					named[o.Key] = true
				}
			}
		}
		for info, err := range store.List(t.Context(), compactedPrefix(0), "") {
			if err != nil || !named[info.Key] {
				t.Errorf("seed %d: %s is named by nothing, %v", seed, info.Key, err)
			}
			delete(named, info.Key)
		}
		if len(named) > 0 {
			t.Errorf("seed %d: %v are gone", seed, named)
		}
		for key := range rowObjects(t, store) {
			if seq, _, _ := parseRowKey(0, key); seq <= 128 {
				t.Errorf("seed %d: %s is still there", seed, key)
			}
		}
	}
}

func FuzzDecodeCompaction(f *testing.F) {
	store := &memstore.Store{}
	writeLog(f, store, rand.New(rand.NewPCG(1, 1)), 64, 10)
	if _, err := testCompactor(store, time.Unix(1, 0)).Merge(context.Background()); err != nil {
		f.Fatal(err)
	}
	data, err := sink.ReadAll(context.Background(), store, compactionKey(0, 1, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(bytes.ReplaceAll(data, []byte(`"rows":2`), []byte(`"rows":-2`)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeCompaction(data, seal.Place{})
		if err != nil {
			return
		}
		var n int64
		for _, w := range c.Windows {
			n += w.Rows
		}
		if n != c.Rows && !c.Skipped || c.To <= c.From {
			t.Errorf("accepted %+v", c)
		}
	})
}
