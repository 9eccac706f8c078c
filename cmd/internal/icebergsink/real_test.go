package icebergsink

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/sinks"
	"giantstream/config"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
)

// TestRealSink: the sink as a process has it, from a broker into the reference REST catalog, by processes that take
// over from each other; PyIceberg reads what the topic holds.
func TestRealSink(t *testing.T) {
	uri, python := os.Getenv("GIANTSTREAM_REAL_ICEBERG"), os.Getenv("GIANTSTREAM_ICEBERG_PYTHON")
	if uri == "" {
		t.Skip("GIANTSTREAM_REAL_ICEBERG is not set: cmd/dev/iceberg/server starts a catalog")
	}
	if python == "" || exec.CommandContext(t.Context(), python, "-c", "import pyiceberg").Run() != nil {
		t.Skip("GIANTSTREAM_ICEBERG_PYTHON is no Python with pyiceberg")
	}
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	kafka, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	const partitions = 3
	cfg := config.Default()
	cfg.Sinks.Iceberg.URI, cfg.Sinks.Iceberg.Namespace, cfg.HTTP.Listen = uri, "process", ""
	cfg.Sinks.Iceberg.CommitInterval = 50 * time.Millisecond
	columns := "node_id,generation,seq,embedding"
	for _, a := range vectordbtest.Attributes {
		cfg.Ingest.Nodes.Attributes = append(cfg.Ingest.Nodes.Attributes, a.Name+":"+string(a.Type))
		cfg.Sinks.Attributes = append(cfg.Sinks.Attributes, a.Name)
		columns += "," + a.Name
	}
	name := cfg.Kafka.Topics.Embeddings
	err = kafka.EnsureTopics(t.Context(), client.TopicSpec{Name: name, Partitions: partitions, Compacted: true})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 3))
	topic := vectordbtest.NewTopic(rnd, partitions, true, func(key string) int {
		return client.Partition([]byte(key), partitions)
	})
	run := func(ctx context.Context, caughtUp bool) error {
		index, err := Kind.Open(&cfg, slog.Default())
		if err != nil {
			return err
		}
		defer index.Close()
		return sinks.Run(ctx, sinks.Options{Config: &cfg, Index: index, Client: kafka, UntilCaughtUp: caughtUp,
			Every: 5 * time.Millisecond, Log: slog.Default()})
	}
	sent := make([]int, partitions)
	ended := make(chan error, 4)
	following, end := context.WithCancel(t.Context())
	defer end()
	for range cap(ended) {
		for range 15 {
			topic.Grow()
		}
		publish(t, kafka, name, topic, sent)
		go func() { ended <- run(following, false) }()
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
	}
	topic.Settle()
	publish(t, kafka, name, topic, sent)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	err = run(ctx, true)
	for errors.Is(err, vectordb.ErrTakenOver) { // by one of the others, which was slow to start
		err = run(ctx, true)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		t.Fatal(err)
	}
	end() // one that has nothing to commit does not know that it was taken over from
	for range cap(ended) {
		if err := <-ended; err != nil && !errors.Is(err, vectordb.ErrTakenOver) {
			t.Errorf("a process that was taken over from ends with %v", err)
		}
	}
	want, _ := topic.Compacted(vectordbtest.Target{Vectorless: true, Attributes: true})
	if diff := vectordbtest.Differ(read(t, python, uri, "process."+cfg.Sinks.Name, columns), want); diff != "" {
		t.Errorf("the table does not hold the topic:\n%s", diff)
	}
}

// publish sends what the topic has grown by.
func publish(t *testing.T, c *client.Client, name string, topic *vectordbtest.Topic, sent []int) {
	t.Helper()
	producer := c.NewProducer()
	defer producer.Close()
	for partition, records := range topic.Records {
		for _, r := range records[sent[partition]:] {
			m, err := embeddingtopic.JSON.Encode(r.Record)
			if r.Completion != nil {
				m, err = embeddingtopic.EncodeCompletion(*r.Completion)
			} else if r.OfAttributes {
				m, err = embeddingtopic.EncodeAttributes(embedding.Attributes{NodeID: r.NodeID,
					Attributes: vectordbtest.Object(r.Values)})
			}
			if m.Topic, m.WriterData = name, client.ToPartition(partition); err == nil {
				err = producer.Send(t.Context(), m)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		sent[partition] = len(records)
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// read returns the rows that PyIceberg reads.
func read(t *testing.T, python, uri, table, columns string) map[string]vectordbtest.Seen {
	t.Helper()
	var rows []json.RawMessage
	readBy(t, python, &rows, "pyiceberg", uri, table, columns)
	out := map[string]vectordbtest.Seen{}
	for _, data := range rows {
		var r struct {
			NodeID          string `json:"node_id"`
			Embedding       []float32
			Generation, Seq int64
		}
		var object map[string]any
		if err := errors.Join(json.Unmarshal(data, &r), json.Unmarshal(data, &object)); err != nil {
			t.Fatal(err)
		}
		out[r.NodeID] = vectordbtest.Seen{Vector: vectordbtest.Literal(r.Embedding), Generation: r.Generation,
			Seq: r.Seq, Attributes: vectordbtest.ShowObject(object)}
	}
	return out
}

// readBy decodes what read.py prints.
func readBy(t *testing.T, python string, rows any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, append([]string{"../../../sink/iceberg/testdata/read.py"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	data, err := cmd.Output()
	if err = errors.Join(err, json.Unmarshal(data, rows)); err != nil {
		t.Fatalf("%s: %v\n%s", args[0], err, stderr.String())
	}
}
