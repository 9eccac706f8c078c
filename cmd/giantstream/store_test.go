package main_test

import (
	"maps"
	"path/filepath"
	"testing"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream"
	"giantstream/train/generation"
)

// outcome is everything that a finished pipeline says about its graph.
type outcome struct {
	doc *generation.Doc
	// rows holds the newest row of every node, deleted ones included.
	rows map[string]rows.Row
	// embeddings are those of the current generation's Parquet parts,
	// published the newest records on the sink topic, without tombstones.
	embeddings, published map[string]embedding.Record
	// refused are the dead letters, by their values.
	refused map[string]decode.Code
}

func openStore(t *testing.T, dir string) sink.Store {
	t.Helper()
	store, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// readOutcome reads the pipeline in dir; no process may have it.
func readOutcome(t *testing.T, dir string) outcome {
	t.Helper()
	store := openStore(t, dir)
	doc, err := generation.Current(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{doc: doc, rows: newestRows(t, store), embeddings: map[string]embedding.Record{},
		published: latestPublished(t, dir), refused: refusedRecords(t, dir)}
	for _, part := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(t.Context(), store, part.Key) {
			if err != nil {
				t.Fatal(err)
			}
			o.embeddings[r.NodeID] = r
		}
	}
	maps.DeleteFunc(o.published, func(_ string, r embedding.Record) bool { return r.Deleted })
	return o
}

func newestRows(t *testing.T, store sink.Store) map[string]rows.Row {
	t.Helper()
	id, err := stream.LoadIdentity(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := stream.CurrentCut(t.Context(), store, id.Shards)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]rows.Row{}
	for shard := range id.Shards {
		for r, err := range cut.Newest(t.Context(), store, shard) {
			if err != nil {
				t.Fatal(err)
			}
			out[r.NodeID] = r.Row
		}
	}
	return out
}

// latestPublished returns the newest record of every node on the sink topic, as
// a compacted topic keeps it: tombstones included.
func latestPublished(t *testing.T, dir string) map[string]embedding.Record {
	t.Helper()
	out := map[string]embedding.Record{}
	withBroker(t, dir, func(c *client.Client) {
		const topic = "embeddings"
		ends, err := c.EndOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for p, end := range ends[topic] {
			for m, err := range c.Range(t.Context(), topic, p, 0, end) {
				if err != nil {
					t.Fatal(err)
				}
				r, err := embedding.Decode(m)
				if err != nil {
					t.Fatal(err)
				}
				out[r.NodeID] = r
			}
		}
	})
	return out
}

func refusedRecords(t *testing.T, dir string) map[string]decode.Code {
	t.Helper()
	out := map[string]decode.Code{}
	withBroker(t, dir, func(c *client.Client) {
		for l, err := range deadletter.List(t.Context(), c, "test.dead-letters", deadletter.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			out[string(l.Value)] = l.Code
		}
	})
	return out
}

// withBroker starts the embedded broker on what a process has left.
func withBroker(t *testing.T, dir string, do func(*client.Client)) {
	t.Helper()
	b, err := broker.Start(broker.Options{Dir: filepath.Join(dir, "local", "broker")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	do(c)
}
