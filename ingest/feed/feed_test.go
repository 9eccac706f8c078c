package feed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/mirror"
	"giantstream/stream/mutation"
)

var day = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)

func config(e *kafkatest.Env) feed.Config {
	return feed.Config{
		Client: e.Client, Topics: e.Topics, Mapping: kafkatest.Mapping(), Limits: kafkatest.Limits(),
		Shards: e.Shards, Clock: func() time.Time { return day }, Log: e.Log, Metrics: &feed.Metrics{},
	}
}

// drain reads until the feed has caught up.
func drain(t *testing.T, f *feed.Feed) (all mutation.Batch) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		b, err := f.Next(ctx, 20*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		all.Mutations = append(all.Mutations, b.Mutations...)
		all.Bytes += b.Bytes
		all.Next, all.CaughtUp = b.Next, b.CaughtUp
		if b.CaughtUp {
			return all
		}
	}
}

func open(t *testing.T, c feed.Config, shard int, next map[string]int64) *feed.Feed {
	t.Helper()
	f, err := feed.Open(t.Context(), c, shard, next)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func node(id, text string) kafka.Message {
	return kafka.Message{Topic: "nodes", Key: []byte(id), Value: fmt.Appendf(nil, `{"id":%q,"text":%q}`, id, text),
		Time: day}
}

func edge(src, dst string) kafka.Message {
	return kafka.Message{Topic: "edges", Key: []byte(src), Value: fmt.Appendf(nil, `{"src":%q,"dst":%q}`, src, dst),
		Time: day}
}

func TestEveryRecordArrivesOnItsShard(t *testing.T) {
	e := kafkatest.Start(t, 4)
	const n = 20_000 // several batches
	var msgs []kafka.Message
	for i := range n {
		id := fmt.Sprint("n", i)
		msgs = append(msgs, node(id, "text of "+id), edge(id, fmt.Sprint("n", (i+1)%n)))
	}
	e.Send(t, msgs...)

	puts, edges := map[string]int64{}, map[string]int64{}
	for shard := range e.Shards {
		got := drain(t, open(t, config(e), shard, nil))
		for _, m := range got.Mutations {
			if client.Partition([]byte(m.ID), e.Shards) != shard {
				t.Fatalf("shard %d got %s", shard, m.ID)
			}
			if m.Version.EventTime != day.UnixMicro() {
				t.Fatalf("event time %d, want the record's", m.Version.EventTime)
			}
			switch m.Op {
			case mutation.PutNode:
				puts[m.ID]++
			case mutation.PutEdge:
				edges[m.ID+m.Other]++
			default:
				t.Fatalf("op %d", m.Op)
			}
		}
		end, err := e.Client.EndOffsets(t.Context(), e.Topics.Inputs()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range e.Topics.Inputs() {
			if got.Next[topic] != end[topic][shard] {
				t.Errorf("shard %d: next of %s is %d, the topic ends at %d",
					shard, topic, got.Next[topic], end[topic][shard])
			}
		}
	}
	if len(puts) != n || len(edges) != n {
		t.Errorf("%d nodes and %d edges arrived, want %d each", len(puts), len(edges), n)
	}
}

func TestFeedStartsAtTheGivenOffsetsAndWaitsForMore(t *testing.T) {
	e := kafkatest.Start(t, 1)
	e.Send(t, node("a", "old"), node("b", "old"))
	f := open(t, config(e), 0, map[string]int64{e.Topics.Nodes: 1})
	if got := drain(t, f); len(got.Mutations) != 1 || got.Mutations[0].ID != "b" {
		t.Fatalf("got %+v, want b alone", got.Mutations)
	}
	e.Send(t, node("c", "new"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := f.Next(ctx, time.Minute)
	if err != nil || len(b.Mutations) != 1 || b.Mutations[0].ID != "c" || !b.CaughtUp {
		t.Errorf("got %+v, %v; want c", b, err)
	}
}

func TestNullDeletes(t *testing.T) {
	e := kafkatest.Start(t, 1)
	e.Send(t,
		kafka.Message{Topic: "nodes", Key: []byte("a"), Time: day},
		kafka.Message{Topic: "edges", Key: []byte("a"), Time: day},
		kafka.Message{Topic: "nodes", Key: []byte("a"), Value: []byte{}, Time: day})
	got := drain(t, open(t, config(e), 0, nil))
	ops := map[mutation.Op]bool{}
	for _, m := range got.Mutations {
		ops[m.Op] = true
	}
	if len(got.Mutations) != 2 || !ops[mutation.DeleteNode] || !ops[mutation.ClearEdges] {
		t.Errorf("got %+v, want DeleteNode and ClearEdges", got.Mutations)
	}
	if letters := e.Read(t, "dead-letters"); len(letters) != 1 {
		t.Errorf("%d dead letters, want 1: an empty value is not a null value", len(letters))
	}
}

func TestLettersAreWrittenBeforeTheBatchIsHandedOut(t *testing.T) {
	e := kafkatest.Start(t, 1)
	bad := kafka.Message{Topic: "nodes", Key: []byte("x"), Value: []byte(`{"id":`), Time: day}
	e.Send(t, node("a", ""), bad, node("b", ""))
	f := open(t, config(e), 0, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for covered := false; !covered; {
		b, err := f.Next(ctx, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		covered = b.Next[e.Topics.Nodes] > 1
	}
	msgs := e.Read(t, "dead-letters")
	if len(msgs) != 1 {
		t.Fatalf("%d dead letters when the batch arrived, want 1", len(msgs))
	}
	l, err := deadletter.Parse(msgs[0])
	if err != nil {
		t.Fatal(err)
	}
	want := deadletter.Origin{Topic: e.Topics.Nodes, Partition: 0, Offset: 1}
	if l.Origin != want || l.Code != decode.BadJSON || string(l.Value) != `{"id":` || string(l.Key) != "x" ||
		!l.Time.Equal(day) || !l.At.Equal(day) {
		t.Errorf("letter %+v", l)
	}
}

func TestFailedLettersFailTheFeed(t *testing.T) {
	e := kafkatest.Start(t, 1)
	e.Send(t, kafka.Message{Topic: "nodes", Key: []byte("x"), Value: []byte(`?`)})
	c := config(e)
	c.Topics.DeadLetters = "no-such-topic"
	f := open(t, c, 0, nil)
	var err error
	for range 100 {
		if _, err = f.Next(t.Context(), 10*time.Millisecond); err != nil {
			break
		}
	}
	if !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("got %v, want unknown topic", err)
	}
	if _, again := f.Next(t.Context(), 0); again == nil {
		t.Error("the feed went on after the failure")
	}
}

func TestMirrorRoundTrip(t *testing.T) {
	e := kafkatest.Start(t, 2)
	v := mutation.Version{EventTime: 1234567, Rank: 1, Offset: 99}
	sent := []mutation.Mutation{
		{Op: mutation.MirrorPut, ID: "far", Other: "near", Version: v},
		{Op: mutation.MirrorDelete, ID: "far", Other: "nearer", Version: v},
	}
	w := mirror.NewWriter(e.Client, e.Topics.Mirror, 2, mirror.Pipeline{})
	defer w.Close()
	if err := w.Publish(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := drain(t, open(t, config(e), client.Partition([]byte("far"), 2), nil))
	if fmt.Sprint(got.Mutations) != fmt.Sprint(sent) {
		t.Errorf("got %+v, want %+v", got.Mutations, sent)
	}
}

func TestRecreatedTopicIsRefused(t *testing.T) {
	e := kafkatest.Start(t, 1)
	e.Send(t, node("a", ""))
	f := open(t, config(e), 0, map[string]int64{e.Topics.Nodes: 7})
	var err error
	for range 100 {
		if _, err = f.Next(t.Context(), 10*time.Millisecond); err != nil {
			break
		}
	}
	if !errors.Is(err, client.ErrTruncated) {
		t.Errorf("got %v, want ErrTruncated", err)
	}
}

func TestHeldCountsWhatAnOpenTransactionHoldsBack(t *testing.T) {
	e := kafkatest.Start(t, 1)
	producer, err := kgo.NewClient(kgo.SeedBrokers(e.Client.Brokers()...), kgo.TransactionalID("slow"))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	value := node("a", "in a transaction").Value
	if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: e.Topics.Nodes, Key: []byte("a"), Value: value},
		&kgo.Record{Topic: e.Topics.Nodes, Key: []byte("a"), Value: value}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	f := open(t, config(e), 0, nil)
	until := func(held int64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for f.Held()[e.Topics.Nodes] != held {
			if _, err := f.Next(ctx, 10*time.Millisecond); err != nil {
				t.Fatalf("still not %d records held, but %v: %v", held, f.Held(), err)
			}
		}
	}
	until(2)
	if err := producer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	until(0)
}
