package service

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/reshard"
)

// vectorsIn returns the first vector of each node by the input that states it, and the fingerprint of all.
func vectorsIn(t *testing.T, store sink.Store, shards int) (first map[int32]map[string]string, hash string) {
	t.Helper()
	cut, err := commitlog.CurrentCut(t.Context(), store, shards)
	if err != nil {
		t.Fatal(err)
	}
	first = map[int32]map[string]string{0: {}, 2: {}}
	hasher := commitlog.NewGraphHasher()
	for p := range shards {
		for row, err := range cut.Vectors(t.Context(), store, p) {
			if err != nil {
				t.Fatal(err)
			}
			hasher.AddVectors(&row.Vectors)
			if len(row.Names) > 0 {
				first[row.Input][row.NodeID] = fmt.Sprint(row.Names[0], row.Numbers(0))
			}
		}
	}
	return first, hasher.Sum()
}

// Vectors of node records and of a topic of their own show in rows with the next window, with which their nodes are
// encoded again. Those that are no vectors are dead letters.
func TestVectorsShowInTheNextWindow(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := startService(t, Options{Store: store, Log: slog.New(slog.DiscardHandler)}, func(c *config.Config) {
		c.Ingest.Nodes.Vectors = config.List{"text=v:2"}
		c.Ingest.Attributes.Vectors = config.List{"pictures/image=v:3:float16"}
	})
	produceGraph(t, s, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = s.Run(ctx) }()
	eventually(t, "every node has an embedding", func() bool { return len(sinkTopic(t, s, cfg)) == nodes })
	published := len(recordsOf(t, s, cfg.Kafka.Topics.Embeddings))

	pictures := map[string]any{}
	for i := range nodes {
		pictures[nodeID(i)] = map[string]any{"id": nodeID(i), "v": []any{i + 1, 0.5, -1}}
	}
	produce(t, s, "pictures", pictures)
	eventually(t, "every node has the vector of its picture", func() bool {
		got, _ := vectorsIn(t, store, cfg.Shards)
		for i := range nodes {
			if got[2][nodeID(i)] != fmt.Sprintf("image[%d 0.5 -1]", i+1) {
				return false
			}
		}
		return true
	})
	produce(t, s, "pictures", map[string]any{nodeID(0): nil,
		nodeID(2): map[string]any{"id": nodeID(2), "v": []any{1, 2}}}) // too short
	// The record of a node that says the same text again, with a vector.
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{nodeID(1): map[string]any{"id": nodeID(1),
		"text": text(1, 1), "label": "1", "v": "AACAPwAAAMA="}})
	eventually(t, "one is taken back, and another is there", func() bool {
		got, _ := vectorsIn(t, store, cfg.Shards)
		return got[2][nodeID(0)] == "" && got[0][nodeID(1)] == "text[1 -2]" &&
			got[2][nodeID(2)] == "image[3 0.5 -1]"
	})
	eventually(t, "the short vector is a dead letter", func() bool {
		return len(recordsOf(t, s, cfg.DeadLetters())) == 1
	})
	again := func() int { return len(recordsOf(t, s, cfg.Kafka.Topics.Embeddings)) - published }
	eventually(t, "nodes with other vectors are published again", func() bool { return again() >= nodes })
	if got := again(); got > nodes+2 {
		t.Errorf("%d embeddings were published of %d nodes with other vectors", got, nodes)
	}
	if d := againstTopics(t, s, cfg, store); d.Total > 0 || d.Vectors != nodes {
		t.Errorf("against the topics: %+v", d)
	}
	var alone int64
	for p := range cfg.Shards {
		for m, err := range commitlog.Manifests(t.Context(), store, p, 0) {
			if err != nil {
				t.Fatal(err)
			}
			alone += m.RowsOf(rows.NodeVectors.Name)
		}
	}
	if alone != nodes+2 {
		t.Errorf("%d rows of vectors", alone)
	}
}

// Files with lists in Parquet, in JSON lines and in cells of CSV, and the same records on the topics, give the same
// rows.
func TestABackfillOfVectorsGivesTheSameRows(t *testing.T) {
	hashes := map[string]bool{}
	for _, way := range []string{"parquet", "jsonl", "csv", "live"} {
		store := &memstore.Store{}
		s, cfg := startService(t, Options{Store: store, Log: slog.New(slog.DiscardHandler)}, func(c *config.Config) {
			c.Ingest.Nodes.Vectors = config.List{"text=v:2:float16"}
			c.Ingest.Attributes.Vectors = config.List{"pictures/image=v:2"}
			c.Refresh.MinNodes = 1 << 30
		})
		if way == "live" {
			records := map[string]any{}
			for i := range nodes {
				records[nodeID(i)] = map[string]any{"id": nodeID(i), "text": text(i, 1), "v": []any{i, 0.1}}
			}
			produce(t, s, cfg.Kafka.Topics.Nodes, records)
			produce(t, s, "pictures", records)
		} else {
			in := vectorFile(t, way)
			files := backfill.Sources{Nodes: in, Attributes: map[string][]backfill.Input{"pictures": in}}
			if _, err := wiring.Backfill(t.Context(), cfg, s.Client(), files, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, hash := vectorsIn(t, store, cfg.Shards)
		if len(got[0]) != nodes || got[2][nodeID(3)] != "image[3 0.1]" {
			t.Errorf("%s: %d vectors of texts, that of a picture is %s", way, len(got[0]), got[2][nodeID(3)])
		}
		hashes[hash] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%d different sets of vectors", len(hashes))
	}
}

// vectorFile writes the nodes with vectors to a file.
func vectorFile(t *testing.T, format string) []backfill.Input {
	t.Helper()
	type record struct {
		ID   string    `parquet:"id"`
		Text string    `parquet:"text"`
		V    []float32 `parquet:"v,list"`
	}
	path := filepath.Join(t.TempDir(), "nodes."+format)
	var all []record
	var lines strings.Builder
	if format == "csv" {
		lines.WriteString("id,text,v\n")
	}
	for i := range nodes {
		all = append(all, record{nodeID(i), text(i, 1), []float32{float32(i), 0.1}})
		if format == "csv" {
			fmt.Fprintf(&lines, "%s,%s,\"[%d, 0.1]\"\n", nodeID(i), text(i, 1), i)
		} else {
			fmt.Fprintf(&lines, "{\"id\":%q,\"text\":%q,\"v\":[%d,0.1]}\n", nodeID(i), text(i, 1), i)
		}
	}
	err := os.WriteFile(path, []byte(lines.String()), 0o600)
	if format == "parquet" {
		err = parquet.WriteFile(path, all)
	}
	if err != nil {
		t.Fatal(err)
	}
	in, err := backfill.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Vectors go to the shards of their nodes, registers and rows, and those of a forgotten node do not.
func TestReshardTakesVectorsAlong(t *testing.T) {
	r := newResharding(t, 3, 2, false)
	for _, cfg := range []*config.Config{&r.old, &r.next} {
		cfg.Ingest.Nodes.Vectors = config.List{"image=image:2:float16"}
	}
	statements := statementsOfAGraph()
	last := statements[0].At
	for i := range statements {
		s := &statements[i]
		if last = max(last, s.At); s.ID != "" && !s.Deleted && i%3 > 0 {
			s.Image = []float32{float32(i + 1), 0.5}
		}
	}
	gone := statement{ID: nodeID(1), Deleted: true, At: last + 1}
	for i := range statements { // nor does a link lead to it
		if s := &statements[i]; s.Src == gone.ID || s.Dst == gone.ID {
			s.Deleted = true
		}
	}
	sendStatements(t, &r.old, r.client, append(statements, gone))
	r.upToDate(t, &r.old, r.from)
	result, err := r.runWith(t, func(o *reshard.Options) { o.Forget = map[string]bool{gone.ID: true} })
	if err != nil {
		t.Fatal(err)
	}
	was, before := vectorsIn(t, r.from, r.old.Shards)
	_, after := vectorsIn(t, r.to, r.next.Shards)
	if before != after || len(was[0]) < nodes/2 || result.Hash != wholeHash(t, r.to, r.next.Shards) {
		t.Errorf("the vectors of %d nodes, %s, are %s afterwards", len(was[0]), before, after)
	}
	cut, err := commitlog.CurrentCut(t.Context(), r.to, r.next.Shards)
	if err != nil {
		t.Fatal(err)
	}
	for p := range r.next.Shards {
		for row, err := range cut.NewestVectors(t.Context(), r.to, p) {
			if err != nil || row.NodeID == gone.ID {
				t.Errorf("shard %d has a row of vectors of %s, %v", p, row.NodeID, err)
			}
		}
	}
	// The registers are there, too: an older statement loses, and a newer one wins.
	var known string
	for id := range was[0] {
		known = max(known, id)
	}
	sendStatements(t, &r.next, r.client, []statement{{ID: known, Text: "t", At: 1, Image: []float32{7, 7}}})
	r.upToDate(t, &r.next, r.to)
	if now, _ := vectorsIn(t, r.to, r.next.Shards); now[0][known] != was[0][known] {
		t.Errorf("an older record made the vector %s of %s", now[0][known], was[0][known])
	}
}
