package e2e_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// outcome is everything that a finished pipeline says about its graph.
type outcome struct {
	doc *generation.Doc
	// rows holds the newest row of every node, deleted ones included.
	rows map[string]rows.Row
	// embeddings are those of the current generation's Parquet parts, published the newest records
	// on the sink topic, without tombstones.
	embeddings, published map[string]embedding.Record
	orders                map[string]rows.Order // newest rows
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

// place is where a pipeline keeps what it has: a store, and topics on a broker.
type place struct {
	store                   sink.Store
	client                  *client.Client
	embeddings, deadLetters string // topics
}

// topic returns the topic of a realPlace with a name.
func (p place) topic(name string) string {
	return strings.TrimSuffix(p.embeddings, "embeddings") + name
}

// readOutcome reads the pipeline in dir; no process may have it.
func readOutcome(t *testing.T, dir string) (o outcome) {
	t.Helper()
	withPlace(t, dir, func(p place) { o = p.outcome(t) })
	return o
}

func (p place) outcome(t *testing.T) outcome {
	t.Helper()
	doc, err := generation.Current(t.Context(), p.store)
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{doc: doc, rows: newestRows(t, p.store), embeddings: map[string]embedding.Record{},
		published: p.latestPublished(t), refused: p.refusedRecords(t), orders: newestOrders(t, p.store)}
	for _, part := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(t.Context(), p.store, part.Ref()) {
			if err != nil {
				t.Fatal(err)
			}
			o.embeddings[r.NodeID] = r
		}
	}
	maps.DeleteFunc(o.published, func(_ string, r embedding.Record) bool { return r.Deleted })
	return o
}

// currentCut is the cut at the heads of all shards of a store.
func currentCut(t *testing.T, store sink.Store) commitlog.Cut {
	t.Helper()
	id, err := commitlog.LoadIdentity(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := commitlog.CurrentCut(t.Context(), store, id.Shards)
	if err != nil {
		t.Fatal(err)
	}
	return cut
}

func newestRows(t *testing.T, store sink.Store) map[string]rows.Row {
	t.Helper()
	cut, out := currentCut(t, store), map[string]rows.Row{}
	for shard := range cut {
		for r, err := range cut.Newest(t.Context(), store, shard) {
			if err != nil {
				t.Fatal(err)
			}
			out[r.NodeID] = r.Row
		}
	}
	return out
}

func newestOrders(t *testing.T, store sink.Store) map[string]rows.Order {
	t.Helper()
	cut, out := currentCut(t, store), map[string]rows.Order{}
	for shard := range cut {
		for r, err := range cut.Orders(t.Context(), store, shard, 0) {
			if err != nil {
				t.Fatal(err)
			}
			out[r.OrderID] = r
		}
	}
	return out
}

// latestPublished returns the newest record of every node on the sink topic, as a compacted topic
// keeps it: tombstones included.
func (p place) latestPublished(t *testing.T) map[string]embedding.Record {
	t.Helper()
	out := map[string]embedding.Record{}
	ends, err := p.client.EndOffsets(t.Context(), p.embeddings)
	if err != nil {
		t.Fatal(err)
	}
	for partition, end := range ends[p.embeddings] {
		for m, err := range p.client.Range(t.Context(), p.embeddings, partition, 0, end) {
			if err != nil {
				t.Fatal(err)
			}
			if embeddingtopic.IsControl(m) {
				continue
			}
			r, err := embeddingtopic.Decode(m)
			if err != nil {
				t.Fatal(err)
			}
			out[r.NodeID] = r
		}
	}
	return out
}

func (p place) refusedRecords(t *testing.T) map[string]decode.Code {
	t.Helper()
	out := map[string]decode.Code{}
	for l, err := range deadletter.List(t.Context(), p.client, p.deadLetters, deadletter.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		out[string(l.Value)] = l.Code
	}
	return out
}

// withPlace starts the embedded broker on what a process has left.
func withPlace(t *testing.T, dir string, do func(place)) {
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
	do(place{store: openStore(t, dir), client: c, embeddings: "embeddings", deadLetters: "test.dead-letters"})
}
