package main_test

import (
	"cmp"
	"encoding/json"
	"hash/crc32"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
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

// checkGraph compares the newest rows with the graph that the input states.
func checkGraph(t *testing.T, got map[string]rows.Row, want map[string]node) {
	t.Helper()
	live := 0
	for id, r := range got {
		n, ok := want[id]
		switch {
		case r.Deleted && ok:
			t.Errorf("node %s is deleted", id)
		case r.Deleted:
		case !ok:
			t.Errorf("node %s should not be there: %+v", id, r)
		case r.Text != n.text || r.Class != n.class:
			t.Errorf("node %s is %q (%s), want %q (%s)", id, r.Text, r.Class, n.text, n.class)
		case !slices.Equal(r.Labels, n.labels):
			t.Errorf("node %s has the neighbours %q, want %q", id, r.Labels, n.labels)
		}
		if !r.Deleted {
			live++
		}
	}
	if live != len(want) {
		t.Errorf("%d live nodes, want %d", live, len(want))
	}
}

// checkSame compares the outcomes of two pipelines on the same input. Only where
// a row stands in the commit log may differ: windows close when they do.
func checkSame(t *testing.T, got, want outcome) {
	t.Helper()
	if got.doc.Generation != want.doc.Generation || got.doc.GraphHash != want.doc.GraphHash {
		t.Errorf("generation %d of graph %s, want %d of %s",
			got.doc.Generation, got.doc.GraphHash, want.doc.Generation, want.doc.GraphHash)
	}
	sameMap(t, "newest row", got.rows, want.rows)
	sameMap(t, "embedding", withoutSeq(got.embeddings), withoutSeq(want.embeddings))
	sameMap(t, "published embedding", withoutSeq(got.published), withoutSeq(want.published))
	sameMap(t, "dead letter", got.refused, want.refused)
	for _, f := range []struct {
		what      string
		got, want any
	}{
		{"settings", got.doc.Settings, want.doc.Settings},
		{"graph", got.doc.Graph, want.doc.Graph},
		{"tree", got.doc.Tree, want.doc.Tree},
		{"encoder", encoderStats(t, got.doc), encoderStats(t, want.doc)},
		{"evaluation", got.doc.Evaluation, want.doc.Evaluation},
	} {
		if !reflect.DeepEqual(f.got, f.want) {
			t.Errorf("generation.json: %s is\n%+v\nwant\n%+v", f.what, f.got, f.want)
		}
	}
}

// encoderStats returns what the document says of the encoder, but for where
// its training was resumed.
func encoderStats(t *testing.T, doc *generation.Doc) map[string]any {
	t.Helper()
	e := doc.Encoder
	metrics := map[string]any{}
	if len(e.Metrics) > 0 {
		if err := json.Unmarshal(e.Metrics, &metrics); err != nil {
			t.Fatal(err)
		}
	}
	delete(metrics, "resumed_step")
	return map[string]any{"kind": e.Kind, "dim": e.Dim, "bytes": e.Bytes, "metrics": metrics}
}

func withoutSeq(records map[string]embedding.Record) map[string]embedding.Record {
	out := maps.Clone(records)
	for id, r := range out {
		r.Seq = 0
		out[id] = r
	}
	return out
}

// sameMap reports the first few keys under which two maps differ.
func sameMap[K cmp.Ordered, V any](t *testing.T, what string, got, want map[K]V) {
	t.Helper()
	differ := 0
	report := func(format string, args ...any) {
		t.Helper()
		if differ++; differ <= 3 {
			t.Errorf(format, args...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[id]
		if !ok {
			report("no %s of %v", what, id)
		} else if !reflect.DeepEqual(g, want[id]) {
			report("%s of %v is\n%+v\nwant\n%+v", what, id, g, want[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			report("%s of %v is one too many: %+v", what, id, got[id])
		}
	}
	if differ > 0 {
		t.Errorf("%s: %d differ of %d", what, differ, len(want))
	}
}

// checkLog checks what must hold of every commit log: sequence numbers without
// gaps, offsets that never go back and end at the topics' ends, objects named
// once that are what their manifest says.
func checkLog(t *testing.T, dir string) {
	t.Helper()
	store := openStore(t, dir)
	id, err := stream.LoadIdentity(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	next := make([]map[string]int64, id.Shards)
	for shard := range id.Shards {
		next[shard] = map[string]int64{}
		seq := int64(0)
		for m, err := range stream.Manifests(t.Context(), store, shard, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if seq++; m.Seq != seq || m.Shard != shard {
				t.Errorf("shard %d: manifest %d of shard %d, want %d", shard, m.Seq, m.Shard, seq)
			}
			for topic, offset := range next[shard] {
				if now, ok := m.Next[topic]; !ok || now < offset {
					t.Errorf("shard %d, manifest %d: %s goes back from %d to %d", shard, seq, topic, offset, now)
				}
			}
			next[shard] = m.Next
			last := ""
			for _, o := range m.Objects {
				if named[o.Key] {
					t.Errorf("%s is named twice", o.Key)
				}
				named[o.Key] = true
				last = checkObject(t, store, m, o, last, id.Shards)
			}
		}
	}
	withBroker(t, dir, func(c *client.Client) {
		for topic := range next[0] {
			ends, err := c.EndOffsets(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			for shard, end := range ends[topic] {
				if next[shard][topic] != end {
					t.Errorf("%s/%d ends at %d, the commit log at %d", topic, shard, end, next[shard][topic])
				}
			}
		}
	})
}

// checkObject compares an object with the manifest that names it, and returns the
// id of its last row; ids ascend throughout a manifest.
func checkObject(t *testing.T, store sink.Store, m *stream.Manifest, o stream.ManifestObject, last string, shards int) string {
	t.Helper()
	data, err := sink.ReadAll(t.Context(), store, o.Key)
	if err != nil {
		t.Errorf("shard %d, manifest %d: %v", m.Shard, m.Seq, err)
		return last
	}
	if sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)); int64(len(data)) != o.Bytes || sum != o.CRC32C {
		t.Errorf("%s has %d bytes with checksum %d, its manifest says %d and %d", o.Key, len(data), sum, o.Bytes, o.CRC32C)
	}
	ids := rowIDs(t, store, o.Key)
	for _, id := range ids {
		if id <= last {
			t.Errorf("%s: node %s follows on %s", o.Key, id, last)
		}
		if p := client.Partition([]byte(id), shards); p != m.Shard {
			t.Errorf("%s: node %s belongs to shard %d", o.Key, id, p)
		}
		last = id
	}
	if int64(len(ids)) != o.Rows {
		t.Errorf("%s has %d rows, its manifest says %d", o.Key, len(ids), o.Rows)
	}
	return last
}

// rowIDs returns the ids of an object's rows, in order.
func rowIDs(t *testing.T, store sink.Store, key string) []string {
	t.Helper()
	var ids []string
	for r, err := range rows.Read(t.Context(), store, key, rows.ReadOptions{Columns: []string{rows.ColNodeID}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.NodeID)
	}
	return ids
}
