package embeddingtopic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"giantstream/ingest/client"
	"giantstream/sink/embedding"
)

// recorder is a writer that keeps what it is given.
type recorder struct {
	calls  int
	got    []kafka.Message
	err    error
	closed bool
}

func (w *recorder) Write(_ context.Context, ms ...kafka.Message) error {
	w.calls++
	w.got = append(w.got, ms...)
	return w.err
}

func (w *recorder) Close() error { w.closed = true; return nil }

func records(n, dim int) []embedding.Record {
	out := make([]embedding.Record, n)
	for i := range out {
		v := make([]float32, dim)
		for d := range v {
			v[d] = float32(i) / float32(d+1)
		}
		out[i] = embedding.Record{NodeID: fmt.Sprintf("node-%d", i), Generation: 1, Vector: v, Seq: 1}
	}
	return out
}

func TestPublishSendsEverythingInOrder(t *testing.T) {
	var w recorder
	p := newPublisher(&w, "embeddings", Binary)
	const n, dim = 5000, 1024 // 20 MB
	if err := p.Publish(t.Context(), records(n, dim)); err != nil {
		t.Fatal(err)
	}
	if len(w.got) != n {
		t.Fatalf("%d messages, want %d", len(w.got), n)
	}
	for i, m := range w.got {
		if want := fmt.Sprintf("node-%d", i); string(m.Key) != want {
			t.Fatalf("message %d has the key %s, want %s", i, m.Key, want)
		}
	}
	if w.calls < 2 {
		t.Errorf("20 MB in %d calls: memory is not bounded", w.calls)
	}
	if err := p.Publish(t.Context(), nil); err != nil {
		t.Errorf("nothing to publish: %v", err)
	}
	if err := p.Close(); err != nil || !w.closed {
		t.Errorf("close: %v, writer closed: %t", err, w.closed)
	}
}

func TestPublishErrors(t *testing.T) {
	boom := errors.New("boom")
	t.Run("writer", func(t *testing.T) {
		p := newPublisher(&recorder{err: boom}, "embeddings", JSON)
		if err := p.Publish(t.Context(), records(3, 2)); !errors.Is(err, boom) {
			t.Errorf("got %v, want the writer's error", err)
		}
	})
	t.Run("some messages", func(t *testing.T) {
		p := newPublisher(&recorder{err: kafka.WriteErrors{nil, boom, boom}}, "embeddings", JSON)
		err := p.Publish(t.Context(), records(3, 2))
		if !errors.Is(err, boom) || !strings.Contains(err.Error(), "2 of 3 records") {
			t.Errorf("got %v, want the first error and how many there are", err)
		}
	})
}

// The writer of production against a broker in this process: what a consumer sees, and on which
// partition.
func TestPublishToBroker(t *testing.T) {
	const topic, partitions = "embeddings", 3
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c, err := client.New(client.Options{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p := NewPublisher(c, topic, JSON)
	sent := append(records(100, 8), embedding.Record{NodeID: "gone", Deleted: true, Shard: 1, Seq: 9})
	if err := p.Publish(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	var beside []embedding.Attributes
	for _, r := range sent {
		beside = append(beside, embedding.Attributes{NodeID: r.NodeID})
	}
	if err := p.PublishAttributes(t.Context(), beside); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}

	where, found := map[string]int{}, 0
	for partition := range partitions {
		for _, m := range consume(t, cluster.ListenAddrs()[0], topic, partition) {
			if a, ok, err := DecodeAttributes(m); ok || err != nil {
				if at, known := where[a.NodeID]; !known || at != partition || err != nil {
					t.Errorf("attributes of %s are on partition %d, and not behind its vector: %v", a.NodeID,
						partition, err)
				}
				found++
				continue
			}
			r, err := Decode(m)
			if err != nil {
				t.Fatal(err)
			}
			if r.Deleted != (r.NodeID == "gone") {
				t.Errorf("node %s: deleted is %t", r.NodeID, r.Deleted)
			}
			where[r.NodeID] = partition
		}
	}
	if len(where) != len(sent) || found != len(sent) {
		t.Errorf("vectors of %d nodes and attributes of %d arrived, want %d", len(where), found, len(sent))
	}
	// What Java's producers do: toPositive(murmur2(key)) % 3, computed by an implementation that
	// agrees with the vectors in Kafka's UtilsTest.
	for id, want := range map[string]int{"node-0": 2, "node-1": 1, "node-2": 0, "node-42": 0, "gone": 1} {
		if where[id] != want {
			t.Errorf("node %s is on partition %d, Java puts it on %d", id, where[id], want)
		}
	}
}

func consume(t *testing.T, addr, topic string, partition int) []kafka.Message {
	t.Helper()
	conn, err := kafka.DialLeader(t.Context(), "tcp", addr, topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	last, err := conn.ReadLastOffset()
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{addr}, Topic: topic, Partition: partition,
		MaxWait: 50 * time.Millisecond})
	defer r.Close() //nolint:errcheck // test
	var ms []kafka.Message
	for int64(len(ms)) < last {
		m, err := r.ReadMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	return ms
}

// slowWriter is told to stop while it writes.
type slowWriter struct {
	recorder
	stop  context.CancelFunc
	ended error // of its context, after that
}

func (w *slowWriter) Write(ctx context.Context, ms ...kafka.Message) error {
	w.stop()
	w.ended = ctx.Err()
	return w.recorder.Write(ctx, ms...)
}

// A worker that loses its shard stops publishing, but not before what it has sent is there: it
// would arrive after what the next worker sends.
func TestPublishLeavesNothingUnderWay(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &slowWriter{stop: stop}
	p := newPublisher(w, "embeddings", Binary)
	const n, dim = 5000, 1024 // 20 MB: several writes
	if err := p.Publish(ctx, records(n, dim)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if w.ended != nil {
		t.Errorf("the write that was under way was given up: %v", w.ended)
	}
	if w.calls != 1 {
		t.Errorf("%d writes, want only the one that was under way", w.calls)
	}
}
