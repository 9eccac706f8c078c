package backfill_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/backfill"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

// has yields nodes with the far ends of their links, as the pipeline has committed them.
func has(nodes ...backfill.Committed) func(context.Context) iter.Seq2[backfill.Committed, error] {
	return func(context.Context) iter.Seq2[backfill.Committed, error] {
		return func(yield func(backfill.Committed, error) bool) {
			for _, n := range nodes {
				if !yield(n, nil) {
					return
				}
			}
		}
	}
}

// TestSnapshotDeletesWhatItLacks: nodes and edges that the pipeline has and the files lack are deleted, as of
// the time of the newest file, also if an earlier run has sent the files; whatever the mapping.
func TestSnapshotDeletesWhatItLacks(t *testing.T) {
	for name, change := range map[string]func(*decode.Mapping){
		"as it is by default":    func(*decode.Mapping) {},
		"edges replace":          func(m *decode.Mapping) { m.Edges.Mode = decode.Replace },
		"deleted by a condition": func(m *decode.Mapping) { m.Nodes.Deleted, m.Edges.Deleted = "s in [x, y]", "s != z" },
		"change events":          func(m *decode.Mapping) { m.Nodes.Debezium, m.Edges.Debezium = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			e := kafkatest.Start(t, 1)
			o := options(e)
			change(&o.Mapping)
			dir := t.TempDir()
			o.Checkpoint = filepath.Join(dir, "checkpoint")
			o.Nodes = files(t, write(t, filepath.Join(dir, "n.jsonl"),
				[]byte("{\"id\":\"a\"}\n{\"id\":\"b\"}\n")))
			o.Edges = files(t, write(t, filepath.Join(dir, "e.jsonl"), []byte(`{"src":"a","dst":"b"}`)))
			run(t, o)
			o.Snapshot = backfill.Snapshot{Nodes: true, Edges: true, Guard: 0.5, Undirected: true,
				Committed: has(backfill.Committed{ID: "a", Links: []string{"b", "gone"}},
					backfill.Committed{ID: "b", Links: []string{"a"}}, backfill.Committed{ID: "gone", Links: []string{"a"}})}
			stats := run(t, o)
			if stats.MissingNodes != 1 || stats.MissingEdges != 1 || // one, which both ends show
				stats.Nodes != 0 {
				t.Errorf("%+v", stats)
			}
			nodes, err := decode.Nodes(o.Mapping.Nodes, o.Limits, 1)
			if err != nil {
				t.Fatal(err)
			}
			edges, err := decode.Edges(o.Mapping.Edges, o.Limits, 1)
			if err != nil {
				t.Fatal(err)
			}
			var deleted []string
			for topic, d := range map[string]*decode.Decoder{"nodes": nodes, "edges": edges} {
				for _, m := range e.Read(t, topic) {
					got, _ := d.Decode(decode.Record{Key: m.Key, Value: m.Value, Time: m.Time}, nil)
					for _, g := range got {
						if g.Op != mutation.DeleteNode && g.Op != mutation.DeleteEdge {
							continue
						}
						deleted = append(deleted, g.ID+"-"+g.Other)
						if len(m.Headers) != 1 || m.Headers[0].Key != ingest.EventTimeHeader ||
							string(m.Headers[0].Value) != mtime.Format(time.RFC3339Nano) {
							t.Errorf("the deletion of %s has the headers %v", g.ID, m.Headers)
						}
					}
				}
			}
			slices.Sort(deleted)
			if want := []string{"a-gone", "gone-", "gone-a"}; !slices.Equal(deleted, want) {
				t.Errorf("deleted %q, want %q", deleted, want)
			}
		})
	}
}

// A record that cannot be read may state what the pipeline has, so nothing is deleted beside it.
func TestASnapshotWithARecordThatCannotBeReadDeletesNothing(t *testing.T) {
	e := kafkatest.Start(t, 1)
	for _, c := range []struct {
		nodes, edges, says string
	}{
		{nodes: `{"id":"b","price":NaN}`, says: "nodes.jsonl, line 2: bad_json"},
		{nodes: `{"id":"b","text":"cut o`, says: "nodes.jsonl, line 2: bad_json"},
		{nodes: "{\"id\":\"b\",\"text\":\"\xff\"}", says: "nodes.jsonl, line 2: bad_utf8"},
		{nodes: `{"text":"no id"}`, says: "nodes.jsonl, line 2: missing_id"},
		{nodes: `["b"]`, says: "nodes.jsonl, line 2: bad_type"},
		{nodes: `{"id":"b","text":{"a text":"that is an object"}}`}, // a dead letter, but it has an id
		{edges: `{"src":"a","dst":`, says: "edges.jsonl, line 2: bad_json"},
		{edges: `{"src":"a","dst":["b",{"sku":"c"}]}`, says: "edges.jsonl, line 2: bad_type"},
		{edges: `{"src":"a","dst":["a",{"sku":"c"}]}`, says: "edges.jsonl, line 2: self_loop"},
		{edges: `{"src":"a"}`, says: "edges.jsonl, line 2: missing_dst"},
		{edges: `{"src":"a","dst":["a","b"]}`}, // no pipeline has an edge from a to a
	} {
		o := options(e)
		dir := t.TempDir()
		o.Nodes = files(t, write(t, filepath.Join(dir, "nodes.jsonl"), []byte("{\"id\":\"a\"}\n"+c.nodes+"\n")))
		o.Edges = files(t, write(t, filepath.Join(dir, "edges.jsonl"), []byte("{\"src\":\"a\",\"dst\":\"c\"}\n"+c.edges)))
		o.Snapshot = backfill.Snapshot{Nodes: c.nodes != "", Edges: c.edges != "", Guard: 1,
			Committed: has(backfill.Committed{ID: "a", Links: []string{"b", "c"}}, backfill.Committed{ID: "b"})}
		before := len(e.Read(t, "nodes")) + len(e.Read(t, "edges"))
		stats, err := backfill.Run(t.Context(), o)
		if c.says == "" {
			if err != nil || stats.MissingNodes+stats.MissingEdges > 0 {
				t.Errorf("%s%s: %+v, %v", c.nodes, c.edges, stats, err)
			}
			continue
		}
		if !errors.Is(err, backfill.ErrSnapshot) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s%s: %v; want ErrSnapshot with %q", c.nodes, c.edges, err, c.says)
		}
		if after := len(e.Read(t, "nodes")) + len(e.Read(t, "edges")); after != before {
			t.Errorf("%s%s: %d records were sent", c.nodes, c.edges, after-before)
		}
	}
}

// TestSnapshotGuard: a snapshot that lacks more than the guard allows sends nothing, and says how to let it
// pass; so does one with a line that may name anything.
func TestSnapshotGuard(t *testing.T) {
	e := kafkatest.Start(t, 1)
	o := options(e)
	dir := t.TempDir()
	o.Nodes = files(t, write(t, filepath.Join(dir, "n.csv"), []byte("id,text\na,one\n")))
	var nodes []backfill.Committed
	for i := range 4 {
		nodes = append(nodes, backfill.Committed{ID: fmt.Sprint(i)})
	}
	o.Snapshot = backfill.Snapshot{Nodes: true, Guard: 0.1,
		Committed: has(append(nodes, backfill.Committed{ID: "a"})...)}
	refused := func(says string) {
		t.Helper()
		_, err := backfill.Run(t.Context(), o)
		if !errors.Is(err, backfill.ErrSnapshot) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want ErrSnapshot with %q", err, says)
		}
		if sent := e.Read(t, "nodes"); len(sent) > 0 {
			t.Errorf("%d records were sent", len(sent))
		}
	}
	refused("lack 4 of the 5 nodes that the pipeline has, 80.0 %")
	refused("--snapshot-guard 0.801")
	o.Snapshot.Guard = 0.801
	o.Nodes = files(t, write(t, filepath.Join(dir, "bad.csv"), []byte("id,text\na,one\nb,two,three\n")))
	refused("bad.csv, line 3")
	o.Nodes = files(t, write(t, filepath.Join(dir, "n.csv"), []byte("id,text\na,one\n")))
	if stats := run(t, o); stats.MissingNodes != 4 || stats.Nodes != 1 {
		t.Errorf("%+v", stats)
	}
	o.Snapshot.Committed = func(context.Context) iter.Seq2[backfill.Committed, error] {
		return func(yield func(backfill.Committed, error) bool) {
			yield(backfill.Committed{}, context.DeadlineExceeded)
		}
	}
	if _, err := backfill.Run(t.Context(), o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a store that cannot be read: %v", err)
	}
	// Of edges without a direction, those that both ends show count once: 3 of 6 shares are lacking, in 2 edges.
	o.Snapshot = backfill.Snapshot{Edges: true, Guard: 0.1, Undirected: true, Committed: has(
		backfill.Committed{ID: "a", Links: []string{"b", "c"}}, backfill.Committed{ID: "b", Links: []string{"a", "z"}},
		backfill.Committed{ID: "c", Links: []string{"a"}}, backfill.Committed{ID: "d", Links: []string{"b"}})}
	o.Nodes, o.Edges = nil, files(t, write(t, filepath.Join(dir, "e.jsonl"),
		[]byte("{\"src\":\"a\",\"dst\":\"c\"}\n{\"src\":\"d\",\"dst\":\"b\"}\n")))
	_, err := backfill.Run(t.Context(), o)
	if want := "lack 2 edges that the pipeline has, 50.0 %"; !errors.Is(err, backfill.ErrSnapshot) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v; want ErrSnapshot with %q", err, want)
	}
}
