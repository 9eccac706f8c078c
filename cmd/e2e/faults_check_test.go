package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
	"giantstream/train/generation"
)

// checkFaults checks everything that must hold once a run has come to rest.
func checkFaults(t *testing.T, r *faultRun) {
	t.Helper()
	r.checkCrew()
	r.checkTrace()
	// Offsets that only grow, no gap, no object missing or named twice.
	r.checkLog(t)
	want := readInput(t, r)
	got := map[string]rows.Row{}
	for id, row := range newestRows(t, r.store) {
		got[id] = bare(row)
	}
	sameMap(t, "newest row", got, want.rows)
	checkState(t, r, want.rows)
	checkSink(t, r, want.rows)

	refused := map[string]decode.Code{}
	for l, err := range deadletter.List(t.Context(), r.client, r.deadLetters, deadletter.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		refused[l.Origin.String()] = l.Code
	}
	letters := map[string]decode.Code{}
	for origin, code := range want.refused {
		letters[origin.String()] = code
	}
	sameMap(t, "dead letter", refused, letters)
	counted, origins := map[string]int64{}, map[string]int64{}
	for origin := range want.refused {
		origins[origin.Topic]++
	}
	for topic := range origins {
		counted[topic] = r.counted(t, topic).DeadLetters
	}
	sameMap(t, "number of dead letters", counted, origins)
}

// checkTrace checks that all that happened in the store is what the specification allows.
func (r *faultRun) checkTrace() {
	r.t.Helper()
	if err := r.trace.Err(); err != nil {
		r.t.Errorf("in the store happened what docs/spec does not allow:\n%v", err)
	}
	if n := r.trace.Changes(); n < r.shards {
		r.t.Errorf("the trace has %d changes; the checker has missed the run", n)
	}
	r.t.Logf("%d changes in the store, as docs/spec allows", r.trace.Changes())
}

// bare is a row without what its generation says of it.
func bare(r rows.Row) rows.Row {
	return rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, Labels: slices.Clone(r.Labels),
		EventTime: r.EventTime, Deleted: r.Deleted}
}

// graphHash is the fingerprint of a graph.
func graphHash(graph map[string]rows.Row) string {
	h := commitlog.NewGraphHasher()
	for _, row := range graph {
		h.Add(&row)
	}
	return h.Sum()
}

// checkState compares the graph in the workers' states. A worker that had to give a shard away
// holds an old state of it, but the last one to commit has all.
func checkState(t *testing.T, r *faultRun, want map[string]rows.Row) {
	t.Helper()
	graph := map[string]rows.Row{}
	for shard := range r.shards {
		whole := 0
		for _, w := range r.crew {
			rows, complete := stateOf(t, r, filepath.Join(w.state, strconv.Itoa(shard)), shard)
			if !complete {
				continue
			}
			whole++
			for _, row := range rows {
				if old, ok := graph[row.NodeID]; ok && fmt.Sprint(old) != fmt.Sprint(row) {
					t.Errorf("two workers know all of shard %d, but one has\n%+v\nand one\n%+v", shard, old, row)
				}
				graph[row.NodeID] = row
			}
		}
		if whole == 0 {
			t.Errorf("no worker's state has all of shard %d", shard)
		}
	}
	if graphHash(graph) != graphHash(want) {
		t.Errorf("the graph in state has hash %s, want %s", graphHash(graph), graphHash(want))
		sameMap(t, "node in state", graph, want)
	}
}

// stateOf reads a shard's state from a worker's disk, and reports whether the state holds
// everything that was committed.
func stateOf(t *testing.T, r *faultRun, dir string, p int) (graph []rows.Row, complete bool) {
	t.Helper()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	head, err := commitlog.Head(t.Context(), r.store, p)
	if err != nil {
		t.Fatal(err)
	}
	g, err := shard.OpenGraph(dir)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return nil, false // the worker was killed while it made the state
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	for topic, next := range head.Next {
		if g.Applied()[topic] < next {
			return nil, false
		}
	}
	for row, err := range g.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		graph = append(graph, bare(row))
	}
	return graph, true
}

// checkSink replays the sink topic as compaction leaves it: of every live node the current
// generation's embedding of its text, of others nothing.
func checkSink(t *testing.T, r *faultRun, want map[string]rows.Row) {
	t.Helper()
	doc, err := generation.Current(t.Context(), r.store)
	if err != nil {
		t.Fatal(err)
	}
	g, err := generation.Open(t.Context(), r.store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	newest := r.latestPublished(t)
	live := 0
	for id, row := range want {
		e, ok := newest[id]
		switch {
		case row.Deleted:
			if ok && !e.Deleted {
				t.Errorf("deleted node %s has an embedding of generation %d, manifest %d", id, e.Generation, e.Seq)
			}
			continue
		case !ok || e.Deleted:
			t.Errorf("live node %s has no embedding (tombstone: %t)", id, ok)
			continue
		}
		live++
		if e.Generation != doc.Generation {
			t.Errorf("node %s has an embedding of generation %d, want %d", id, e.Generation, doc.Generation)
		}
		vector := make([]float32, g.Encoder.Dim())
		if err := g.Encoder.Encode([]string{row.Text}, vector); err != nil {
			t.Fatal(err)
		}
		if !closeTo(e.Vector, vector) {
			t.Errorf("node %s, manifest %d: the embedding is not that of its text %q:\n%v\n%v", id, e.Seq, row.Text,
				e.Vector, vector)
		}
	}
	for id, e := range newest {
		if _, ok := want[id]; !ok && !e.Deleted {
			t.Errorf("node %s has an embedding, and was never there", id)
		}
	}
	if live == 0 {
		t.Error("no live node: the test has not tested anything")
	}
}

// closeTo compares embeddings, which are of length 1, by their direction. How many texts are
// encoded at a time shows in the last bits: sums are then added up in another order.
func closeTo(got, want []float32) bool {
	if len(got) != len(want) {
		return false
	}
	cosine := 0.0
	for i := range got {
		cosine += float64(got[i]) * float64(want[i])
	}
	return math.Abs(cosine-1) < 1e-6
}
