package export_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/export"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
	"giantstream/stream/shard"
)

// world is a pipeline whose topics are slices.
type world struct {
	t          *testing.T
	store      *memstore.Store
	rng        *rand.Rand
	undirected bool
	shards     []*shard.Shard
	next       [][3]int64 // offsets of nodes, edges and mirror, by shard
	mirror     [][]mutation.Mutation
	said       []mutation.Mutation // without mirrored ones
	moments    []moment
	now        time.Time
}

// moment is a cut and how many mutations it covers.
type moment struct {
	cut  commitlog.Cut
	said int
}

func newWorld(t *testing.T, seed uint64, shards int, undirected bool) *world {
	t.Helper()
	w := &world{t: t, store: &memstore.Store{}, rng: rand.New(rand.NewPCG(seed, 5)), undirected: undirected,
		next: make([][3]int64, shards), mirror: make([][]mutation.Mutation, shards), now: time.Unix(1_800_000_000, 0)}
	_, err := commitlog.EnsureIdentity(t.Context(), w.store, commitlog.Identity{Name: "test", Shards: shards,
		Undirected: undirected}, false)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for p := range shards {
		o := shard.Options{Pipeline: "test", Shard: p, Shards: shards, Dir: filepath.Join(dir, strconv.Itoa(p)),
			Store: w.store, Topics: shard.Topics{Nodes: "nodes", Edges: "edges"}, Clock: func() time.Time { return w.now },
			Window: shard.Window{Changes: 1, Bytes: 1, Time: time.Hour}}
		if undirected {
			o.Topics.Mirror, o.Mirror = "mirror", w
		}
		s, err := shard.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		w.shards = append(w.shards, s)
	}
	t.Cleanup(func() {
		for _, s := range w.shards {
			_ = s.Close()
		}
	})
	return w
}

// Publish implements shard.Mirror.
func (w *world) Publish(_ context.Context, assertions []mutation.Mutation) error {
	for _, m := range assertions {
		p := client.Partition([]byte(m.ID), len(w.shards))
		w.mirror[p] = append(w.mirror[p], m)
	}
	return nil
}

// Flush implements shard.Mirror.
func (w *world) Flush(context.Context) error { return nil }

// round sends a few mutations with event times in no order, and commits a window of each shard.
func (w *world) round(few int) {
	w.t.Helper()
	batches := make([][]mutation.Mutation, len(w.shards))
	id := func() string { return fmt.Sprintf("n%d", w.rng.IntN(30)) }
	for range few {
		m := mutation.Mutation{Op: mutation.Op(1 + w.rng.IntN(6)), ID: id()}
		switch m.Op {
		case mutation.PutNode:
			m.Text, m.Class = fmt.Sprintf("text %d", len(w.said)), "c"
		case mutation.PutEdge, mutation.DeleteEdge:
			m.Other = id()
		case mutation.SetEdges:
			m.Others = []string{id(), id()}
		}
		p := client.Partition([]byte(m.ID), len(w.shards))
		if m.Op >= mutation.PutEdge {
			m.Version.Rank = 1
		}
		// Mostly in order, with some that are late and some that lie ahead.
		m.Version.EventTime = int64(len(w.said)) + int64(w.rng.IntN(41)) - 20
		m.Version.Offset = w.next[p][m.Version.Rank]
		w.next[p][m.Version.Rank]++
		batches[p] = append(batches[p], m)
		w.said = append(w.said, m)
	}
	w.apply(batches)
	for w.apply(w.take()) { // what is mirrored is mirrored no further
	}
	for _, s := range w.shards {
		if _, err := s.Commit(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	cut, err := commitlog.CurrentCut(w.t.Context(), w.store, len(w.shards))
	if err != nil {
		w.t.Fatal(err)
	}
	w.moments = append(w.moments, moment{cut, len(w.said)})
	w.now = w.now.Add(time.Minute)
}

// take returns the mirrored assertions that wait.
func (w *world) take() [][]mutation.Mutation {
	out := slices.Clone(w.mirror)
	clear(w.mirror)
	for p := range out {
		w.next[p][2] += int64(len(out[p]))
	}
	return out
}

func (w *world) apply(batches [][]mutation.Mutation) (some bool) {
	w.t.Helper()
	for p, batch := range batches {
		next := map[string]int64{"nodes": w.next[p][0], "edges": w.next[p][1]}
		if w.undirected {
			next["mirror"] = w.next[p][2]
		}
		some = some || len(batch) > 0
		all := mutation.Batch{Next: next}
		for _, m := range batch {
			in := mutation.Input(m.Version.Rank)
			if m.Op == mutation.MirrorPut || m.Op == mutation.MirrorDelete {
				in = mutation.Mirror
			}
			topic := map[mutation.Input]string{mutation.Nodes: "nodes", mutation.Edges: "edges", mutation.Mirror: "mirror"}[in]
			all.State(in, next[topic]-1, m)
		}
		if err := w.shards[p].Apply(w.t.Context(), all); err != nil {
			w.t.Fatal(err)
		}
	}
	return some
}

// compact merges what can be merged, and removes what no cut from keep on needs.
func (w *world) compact(keep commitlog.Cut) {
	w.t.Helper()
	for p := range w.shards {
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: p, Store: w.store,
			Clock: func() time.Time { return w.now.Add(time.Hour) }})
		if _, err := c.Merge(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if _, err := c.Remove(w.t.Context(), keep[p]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// oracle is the graph that the first mutations state, those up to an event time.
func (w *world) oracle(first int, until int64) map[string]rows.Row {
	g := oracle.New(w.undirected)
	for _, m := range w.said[:first] {
		if m.Version.EventTime <= until {
			g.Add(m)
		}
	}
	all := g.Rows()
	for id, r := range all {
		all[id] = plain(r)
	}
	return all
}

func (w *world) export(o export.Options) (map[string]rows.Row, *export.Doc, error) {
	w.t.Helper()
	into := &memstore.Store{Name: "export"}
	o.Store, o.Into, o.Generation = w.store, into, export.NoGeneration
	doc, err := export.Run(w.t.Context(), o)
	if err != nil {
		return nil, nil, err
	}
	return exported(w.t, into, doc), doc, nil
}

// exported reads the rows of an export.
func exported(t *testing.T, into sink.Store, doc *export.Doc) map[string]rows.Row {
	t.Helper()
	all := map[string]rows.Row{}
	for _, part := range doc.Rows {
		last := ""
		for r, err := range rows.Nodes.Read(t.Context(), into, part.Ref(), rows.ReadOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.NodeID <= last {
				t.Errorf("%s: node %q after %q", part.Key, r.NodeID, last)
			}
			last = r.NodeID
			all[r.NodeID] = plain(r)
		}
	}
	return all
}

// plain is a row as the graph defines it: without features, and with nil for what is empty.
func plain(r rows.Row) rows.Row {
	out := rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, EventTime: r.EventTime, Deleted: r.Deleted}
	out.Labels = append(out.Labels, r.Labels...)
	out.LinkEnds, out.LinkWeights, out.LinkTimes = r.LinkEnds, r.LinkWeights, r.LinkTimes
	out.LinkKinds = r.LinkKinds
	return out
}

func same(t *testing.T, what string, got, want map[string]rows.Row) {
	t.Helper()
	for id, row := range want {
		if !reflect.DeepEqual(got[id], row) {
			t.Errorf("%s: row %+v, want %+v", what, got[id], row)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

// An export of a cut is the graph of what the cut covers, however much was committed and merged since; or an error that
// names a cut from which on all can be exported.
func TestCutsAreReplays(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 2 // one without compaction, one with it
	}
	for seed := range seeds {
		w := newWorld(t, seed, 1+int(seed%3), seed%2 == 0)
		var keep commitlog.Cut
		for i := range 150 {
			w.round(4)
			if i == 80 {
				keep = w.moments[i].cut
			}
			if i%37 == 36 && seed > 0 { // without compaction all is kept
				w.compact(keep)
			}
		}
		gone := 0
		for i, m := range w.moments {
			got, doc, err := w.export(export.Options{Cut: m.cut})
			if errors.Is(err, commitlog.ErrNotKept) {
				gone++
				if i%16 == 0 {
					w.refused(m.cut)
				}
				if i >= 80 {
					t.Errorf("seed %d, round %d is gone although a generation keeps it: %v", seed, i, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, i, err)
			}
			same(t, fmt.Sprintf("seed %d, round %d", seed, i), got, w.oracle(m.said, commitlog.Forever))
			if !reflect.DeepEqual(commitlog.Cut(doc.Cut), m.cut) {
				t.Errorf("seed %d, round %d: export of %v says %v", seed, i, m.cut, doc.Cut)
			}
		}
		if (gone > 0) != (seed > 0) {
			t.Errorf("seed %d: %d of %d cuts are gone", seed, gone, len(w.moments))
		}
	}
}

// refused checks that where a cut is not kept, the one before the next that is named is not either, and all from that
// on are.
func (w *world) refused(cut commitlog.Cut) {
	w.t.Helper()
	kept := func(p int, seq int64) bool {
		_, err := (commitlog.Cut{p: seq}).Kept(w.t.Context(), w.store, p)
		if err != nil && !errors.Is(err, commitlog.ErrNotKept) {
			w.t.Fatal(err)
		}
		return err == nil
	}
	for p := range w.shards {
		next, err := cut.Kept(w.t.Context(), w.store, p)
		if err == nil {
			continue
		}
		if kept(p, next-1) {
			w.t.Errorf("shard %d keeps manifest %d, and names %d as the oldest", p, next-1, next)
		}
		head := w.moments[len(w.moments)-1].cut[p]
		for seq := next; seq <= head; seq++ {
			if !kept(p, seq) {
				w.t.Errorf("shard %d does not keep manifest %d, and names %d as the oldest", p, seq, next)
			}
		}
	}
}

// From the log, a node that has not changed after the event time is what it was then. Of any other node, no row says
// anything that is later.
func TestAsOfFromTheLogLeaksNothing(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, seed, 1+int(seed%2), seed%2 == 0)
		for range 90 {
			w.round(4)
		}
		if seed > 2 {
			w.compact(nil)
		}
		all := w.oracle(len(w.said), commitlog.Forever)
		for _, until := range []int64{-30, 0, 50, 200, 330, 1000} {
			what := fmt.Sprintf("seed %d, until %d", seed, until)
			got, doc, err := w.export(export.Options{AsOf: time.UnixMicro(until), From: export.FromLog})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			then := w.oracle(len(w.said), until)
			if doc.Uncertain == 0 {
				same(t, what, got, then)
			}
			for id, row := range got {
				switch {
				case row.EventTime > until:
					t.Errorf("%s: node %s has event time %d", what, id, row.EventTime)
				case all[id].EventTime <= until && !reflect.DeepEqual(row, then[id]):
					t.Errorf("%s: row %+v, want %+v", what, row, then[id])
				}
			}
			for id, row := range all {
				if _, ok := got[id]; row.EventTime <= until && !ok {
					t.Errorf("%s: node %s is missing", what, id)
				}
			}
		}
	}
}

// A folder that holds anything is left as it is, and what an attempt has left is begun again.
func TestOnlyAnEmptyFolderIsTaken(t *testing.T) {
	w := newWorld(t, 1, 2, false)
	w.round(20)
	o := export.Options{Store: w.store, Into: &memstore.Store{}, Generation: export.NoGeneration, Cut: w.moments[0].cut}
	put := func(key string) {
		t.Helper()
		if err := sink.PutBytes(t.Context(), o.Into, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	put("rows/somebody.parquet")
	if _, err := export.Run(t.Context(), o); err == nil {
		t.Fatal("an export went to a folder with other files")
	}
	put("incomplete.json")
	doc, err := export.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := export.Load(t.Context(), o.Into); err != nil || !reflect.DeepEqual(have.Rows, doc.Rows) {
		t.Errorf("export.json has %+v, %v; want %+v", have, err, doc)
	}
	for info := range o.Into.List(t.Context(), "", "") {
		if info.Key == "rows/somebody.parquet" || info.Key == "incomplete.json" {
			t.Errorf("%s is left", info.Key)
		}
	}
	if _, err := export.Run(t.Context(), o); !errors.Is(err, export.ErrComplete) {
		t.Errorf("a second export: %v", err)
	}
}

// A cut that no shard has reached is an error and no export.
func TestACutBeyondTheHead(t *testing.T) {
	w := newWorld(t, 1, 1, false)
	w.round(20)
	if _, _, err := w.export(export.Options{Cut: commitlog.Cut{0: 2}}); err == nil {
		t.Error("manifest 2 was exported before it was committed")
	}
}
