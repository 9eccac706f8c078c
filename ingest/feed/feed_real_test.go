package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"giantstream/ingest/feed"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/stream/mutation"
)

// producer is a client like Java's: idempotent, and transactional if asked.
func producer(t *testing.T, e *kafkatest.Env, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(e.Client.Brokers()...),
		kgo.DefaultProduceTopic(e.Topics.Nodes),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// produce sends nodes to partition 0 and waits for them.
func produce(t *testing.T, c *kgo.Client, text string, ids ...string) {
	t.Helper()
	var records []*kgo.Record
	for _, id := range ids {
		m := node(id, text)
		records = append(records, &kgo.Record{Key: m.Key, Value: m.Value})
	}
	if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func texts(ms []mutation.Mutation) (out []string) {
	for _, m := range ms {
		out = append(out, m.ID+" "+m.Text)
	}
	return out
}

// caughtUpAt checks that a drained feed stands at the ends of its topics.
func caughtUpAt(t *testing.T, e *kafkatest.Env, b mutation.Batch) {
	t.Helper()
	ends, err := e.Client.EndOffsets(t.Context(), e.Topics.Inputs()...)
	if err != nil {
		t.Fatal(err)
	}
	for topic, end := range ends {
		if b.Next[topic] != end[0] {
			t.Errorf("%s ends at %d, the feed has caught up at %d", topic, end[0], b.Next[topic])
		}
	}
}

// TestRealTransactions: a transaction ends in a marker, which is an offset without a record. A
// topic that ends in one, or in several, is read to its end all the same. Records of aborted
// transactions do not arrive.
func TestRealTransactions(t *testing.T) {
	e := kafkatest.StartReal(t, 1)
	c := producer(t, e, kgo.TransactionalID(e.Topic("tx")))
	var end int64
	transaction := func(try kgo.TransactionEndTry, ids ...string) {
		t.Helper()
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, "x", ids...)
		if err := c.EndTransaction(t.Context(), try); err != nil {
			t.Fatal(err)
		}
		end += int64(len(ids)) + 1
		awaitEnd(t, e, end) // the marker is written after the answer
	}
	transaction(kgo.TryCommit, "a", "b")
	transaction(kgo.TryAbort, "aborted")
	f := open(t, config(e), 0, nil)
	got := drain(t, f)
	if want := []string{"a x", "b x"}; !slices.Equal(texts(got.Mutations), want) {
		t.Errorf("got %q, want %q", texts(got.Mutations), want)
	}
	caughtUpAt(t, e, got)

	transaction(kgo.TryCommit, "c")
	for range 3 {
		transaction(kgo.TryAbort, "d") // markers in a row
	}
	caughtUpAt(t, e, drainTo(t, f, e))
	// A restart between the last record and the end.
	at := got.Next[e.Topics.Nodes]
	again := drain(t, open(t, config(e), 0, map[string]int64{e.Topics.Nodes: at}))
	if want := []string{"c x"}; !slices.Equal(texts(again.Mutations), want) {
		t.Errorf("after a restart: %q, want %q", texts(again.Mutations), want)
	}
	caughtUpAt(t, e, again)
	last := again.Next[e.Topics.Nodes]
	caughtUpAt(t, e, drain(t, open(t, config(e), 0, map[string]int64{e.Topics.Nodes: last - 1})))
}

// awaitEnd waits until the nodes topic ends at an offset.
func awaitEnd(t *testing.T, e *kafkatest.Env, want int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ends, err := e.Client.EndOffsets(ctx, e.Topics.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		if ends[e.Topics.Nodes][0] == want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the topic ends at %v, want %d", ends, want)
		case <-tick.C:
		}
	}
}

// drainTo reads until the feed stands at the ends that the topics have now.
func drainTo(t *testing.T, f *feed.Feed, e *kafkatest.Env) mutation.Batch {
	t.Helper()
	ends, err := e.Client.EndOffsets(t.Context(), e.Topics.Inputs()...)
	if err != nil {
		t.Fatal(err)
	}
	var all mutation.Batch
	for {
		b := drain(t, f)
		all.Mutations = append(all.Mutations, b.Mutations...)
		all.Next, all.CaughtUp = b.Next, b.CaughtUp
		behind := false
		for topic, end := range ends {
			behind = behind || b.Next[topic] < end[0]
		}
		if !behind {
			return all
		}
	}
}

func TestRealCompression(t *testing.T) {
	e := kafkatest.StartReal(t, 1)
	var want []string
	for i, codec := range []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(),
		kgo.ZstdCompression(),
	} {
		c := producer(t, e, kgo.ProducerBatchCompression(codec))
		text := string(bytes.Repeat([]byte("words that repeat themselves "), 100))
		var ids []string
		for k := range 500 {
			ids = append(ids, fmt.Sprintf("codec%d-%d", i, k))
			want = append(want, ids[k]+" "+text)
		}
		produce(t, c, text, ids...)
	}
	got := drain(t, open(t, config(e), 0, nil))
	if !slices.Equal(texts(got.Mutations), want) {
		t.Errorf("%d records came back of %d, or others", len(got.Mutations), len(want))
	}
	caughtUpAt(t, e, got)
}

// TestRealCompactedTopic: compaction takes records out of the middle of batches, out of all of a
// batch, and from the end of the log.
func TestRealCompactedTopic(t *testing.T) {
	e := kafkatest.StartReal(t, 1)
	e.Configure(t, "nodes", map[string]string{
		"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.001",
		"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "500", "delete.retention.ms": "0",
	})
	random := rand.New(rand.NewPCG(1, 1))
	want := map[string]string{}
	for round := range 6 {
		c := producer(t, e)
		var ids []string
		for range 200 {
			ids = append(ids, fmt.Sprint("n", random.IntN(20)))
		}
		for _, id := range ids {
			want[id] = fmt.Sprint("round ", round)
		}
		produce(t, c, fmt.Sprint("round ", round), ids...)
	}
	// Idempotent producers leave empty batches behind when all their records go.
	all := slices.Collect(maps.Keys(want))
	produce(t, producer(t, e), "last", all...)
	for id := range want {
		want[id] = "last"
	}
	awaitCompaction(t, e)

	for _, from := range []map[string]int64{nil, {e.Topics.Nodes: 0}, {e.Topics.Nodes: 1}, {e.Topics.Nodes: 777},
		{e.Topics.Nodes: 1199}} {
		got := drain(t, open(t, config(e), 0, from))
		nodes := map[string]string{}
		for _, m := range got.Mutations {
			if m.ID != "roll" {
				nodes[m.ID] = m.Text
			}
		}
		if !maps.Equal(nodes, want) {
			t.Errorf("from %v: got %v, want %v", from, nodes, want)
		}
		if len(got.Mutations) > 600 {
			t.Errorf("%d records: nothing was compacted, the test tests nothing", len(got.Mutations))
		}
		caughtUpAt(t, e, got)
	}
}

// awaitCompaction sends a record now and then, since the newest segment is never compacted, until
// most of the log is gone.
func awaitCompaction(t *testing.T, e *kafkatest.Env) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		e.Send(t, kafka.Message{Topic: "nodes", Key: []byte("roll"), Value: []byte(`{"id":"roll"}`)})
		if n := len(e.Read(t, "nodes")); n < 200 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("the broker has not compacted the topic")
		case <-tick.C:
		}
	}
}

// TestRealBrokerKilled: a broker that is killed while a feed reads, and comes back, costs no record
// and gives none twice.
func TestRealBrokerKilled(t *testing.T) {
	e := kafkatest.StartReal(t, 1)
	const n = 20_000
	var msgs []kafka.Message
	for i := range n {
		msgs = append(msgs, node(fmt.Sprint("n", i), "text"))
	}
	e.Send(t, msgs[:n/2]...)
	cfg := config(e)
	f := open(t, cfg, 0, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var got []string
	next := func() {
		t.Helper()
		b, err := f.Next(ctx, 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range b.Mutations {
			got = append(got, m.ID)
		}
	}
	for len(got) == 0 {
		next()
	}
	kafkatest.Server(t, "kill", "1")
	for cfg.Metrics.Retries.Load() == 0 {
		next()
	}
	kafkatest.Server(t, "start", "1")
	e.Send(t, msgs[n/2:]...)
	for len(got) < n {
		next()
	}
	for i, id := range got {
		if id != fmt.Sprint("n", i) {
			t.Fatalf("record %d is %s", i, id)
		}
	}
}
