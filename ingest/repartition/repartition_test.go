package repartition_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/internal/kafkatest"
	"giantstream/ingest/repartition"
)

var day = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)

// recordBytes is small enough that a record over it still fits into a batch of a broker with
// default settings.
const recordBytes = 64 << 10

func options(e *kafkatest.Env) repartition.Options {
	limits := kafkatest.Limits()
	return repartition.Options{Client: e.Client, RecordBytes: recordBytes, DeadLetters: e.Topics.DeadLetters,
		Clock: func() time.Time { return day }, Log: e.Log,
		Routes: []repartition.Route{{From: e.Topic("source"), To: e.Topics.Nodes, Group: e.Group,
			Decoder: func() (*decode.Decoder, error) { return decode.Nodes(kafkatest.Mapping().Nodes, limits, 1) }}},
	}
}

// copyAll runs until everything is copied.
func copyAll(t *testing.T, o repartition.Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- repartition.Run(ctx, o) }()
	deadline := time.After(time.Minute)
	for {
		open := int64(0)
		err := repartition.Lag(t.Context(), o.Client, o.Routes, func(_ string, _ int, _, left int64) { open += left })
		if err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			break
		}
		select {
		case err := <-done:
			t.Fatal(err)
		case <-deadline:
			t.Fatalf("%d records are still open after a minute", open)
		case <-time.After(20 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestRecordsComeToTheirShard(t *testing.T) {
	const shards, n = 4, 500
	e := kafkatest.Start(t, shards)
	if err := e.Client.EnsureTopics(t.Context(), client.TopicSpec{Name: e.Topic("source"), Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	var msgs []kafka.Message
	for i := range n {
		msgs = append(msgs, kafka.Message{Topic: "source", Key: fmt.Append(nil, "batch-", i%7),
			Value: fmt.Appendf(nil, `{"id":"n%d"}`, i),
			Time:  day, Headers: []kafka.Header{{Key: "trace", Value: []byte("x")}}})
	}
	large := fmt.Appendf(nil, `{"id":"large","text":%q}`, strings.Repeat("x", recordBytes))
	e.Send(t, append(msgs,
		kafka.Message{Topic: "source", Key: []byte("gone"), Time: day},
		kafka.Message{Topic: "source", Key: []byte(`{"id":"deleted"}`), Time: day},
		kafka.Message{Topic: "source", Key: []byte(`{"sku":"unmapped"}`), Time: day},
		kafka.Message{Topic: "source", Key: []byte("bad"), Value: []byte(`{"text":`), Time: day},
		kafka.Message{Topic: "source", Key: []byte("large"), Value: large, Time: day})...)
	copyAll(t, options(e))

	seen := map[string]bool{}
	versions := map[int64]bool{}
	for _, m := range e.Read(t, "nodes") {
		seen[string(m.Key)] = true
		if p := client.Partition(m.Key, shards); p != m.Partition {
			t.Errorf("%s is in partition %d, want %d", m.Key, m.Partition, p)
		}
		if !m.Time.Equal(day) {
			t.Errorf("%s has the time %v", m.Key, m.Time)
		}
		v := repartition.Version(&m)
		if v <= m.Offset || versions[v] {
			t.Errorf("%s has the version %d", m.Key, v)
		}
		versions[v] = true
	}
	for _, id := range []string{"n0", "n499", "gone", "bad", "deleted", `{"sku":"unmapped"}`} {
		if !seen[id] {
			t.Errorf("%s was not copied", id)
		}
	}
	if len(seen) != n+4 {
		t.Errorf("%d keys, want %d", len(seen), n+4)
	}
	if letters := e.Read(t, "dead-letters"); len(letters) != 1 || string(letters[0].Key) != "large" {
		t.Errorf("%d dead letters, want that of the large record", len(letters))
	}

	// Another worker goes on where the first stopped.
	e.Send(t, kafka.Message{Topic: "source", Value: []byte(`{"id":"later"}`), Time: day})
	before := len(e.Read(t, "nodes"))
	copyAll(t, options(e))
	if after := e.Read(t, "nodes"); len(after) != before+1 {
		t.Errorf("%d records were copied, want 1", len(after)-before)
	}
}

// remembered are Positions in memory.
type remembered struct {
	mu   sync.Mutex
	next map[int]int64
}

func (r *remembered) Copied(_ context.Context, partition int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next, ok := r.next[partition]; ok {
		return next, nil
	}
	return -1, nil
}

func (r *remembered) NoteCopied(_ context.Context, partition int, next int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next[partition] = next
	return nil
}

// A group that was moved to the end of its topic while nobody ran leaves no record out, and none is copied twice. After
// a copier that was killed, what it had copied since it noted how far it was is copied again. Records that became dead
// letters are not missed.
func TestAGroupThatWasMovedForwardLeavesNothingOut(t *testing.T) {
	const partitions, n = 3, 60
	e := kafkatest.Start(t, 4)
	if err := e.Client.EnsureTopics(t.Context(),
		client.TopicSpec{Name: e.Topic("source"), Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	positions := &remembered{next: map[int]int64{}}
	o := options(e)
	o.Routes[0].Positions = positions
	o.OnLost = func(topic string, partition int, from, to int64) {
		t.Errorf("%s-%d has lost [%d, %d)", topic, partition, from, to)
	}
	sent := 0
	send := func() {
		var msgs []kafka.Message
		for p := range partitions {
			for range n / partitions {
				msgs = append(msgs, kafka.Message{Topic: "source", Value: fmt.Appendf(nil, `{"id":"n%d"}`, sent), Time: day,
					WriterData: client.ToPartition(p)})
				sent++
			}
			msgs = append(msgs, kafka.Message{Topic: "source", Time: day, WriterData: client.ToPartition(p),
				Value: fmt.Appendf(nil, `{"id":"large","text":%q}`, strings.Repeat("x", recordBytes))})
		}
		e.Send(t, msgs...)
	}
	copies := func() (distinct, all int) {
		ids := map[string]bool{}
		for _, m := range e.Read(t, "nodes") {
			ids[string(m.Key)] = true
			all++
		}
		return len(ids), all
	}
	moveToEnd := func() {
		t.Helper()
		ends, err := e.Client.EndOffsets(t.Context(), e.Topic("source"))
		if err != nil {
			t.Fatal(err)
		}
		req := &kafka.OffsetCommitRequest{GroupID: e.Group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{}}
		for p, end := range ends[e.Topic("source")] {
			req.Topics[e.Topic("source")] = append(req.Topics[e.Topic("source")],
				kafka.OffsetCommit{Partition: p, Offset: end})
		}
		admin := kafka.Client{Addr: kafka.TCP(e.Client.Brokers()...)}
		res, err := admin.OffsetCommit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range res.Topics[e.Topic("source")] {
			if p.Error != nil {
				t.Fatal(p.Error)
			}
		}
	}

	send()
	copyAll(t, o)
	moveToEnd() // where it is
	copyAll(t, o)
	send()
	moveToEnd()
	copyAll(t, o)
	if distinct, all := copies(); distinct != sent || all != sent {
		t.Errorf("%d copies of %d records, want %d of %d", all, distinct, sent, sent)
	}

	killed := map[int]int64{0: 7, 1: 7, 2: 7}
	positions.next = killed
	send()
	moveToEnd()
	copyAll(t, o)
	if distinct, _ := copies(); distinct != sent {
		t.Errorf("%d records are copied, want %d", distinct, sent)
	}
}

func TestVersionIsOfTheOrigin(t *testing.T) {
	copied := func(origin string) int64 {
		return repartition.Version(&kafka.Message{Offset: 7,
			Headers: []kafka.Header{{Key: "giantstream-origin", Value: []byte(origin)}}})
	}
	for _, o := range []struct {
		origin        string
		partition     int
		epoch, offset int64
		ok            bool
	}{
		{"0/0", 0, 0, 0, true}, {"7/12", 7, 0, 12, true}, {fmt.Sprint("7/", int64(2)<<40+12), 7, 2, 12, true},
		{"x", 0, 0, 0, false},
	} {
		for _, own := range []int64{0, 12} {
			p, epoch, offset, ok := repartition.OriginOf(&kafka.Message{Offset: own,
				Headers: []kafka.Header{{Key: "giantstream-origin", Value: []byte(o.origin)}}})
			if ok != o.ok || ok && (p != o.partition || epoch != o.epoch || offset != o.offset) {
				t.Errorf("the original of %q is %d/%d of epoch %d, %v", o.origin, p, offset, epoch, ok)
			}
		}
	}
	if !(copied("0/1") < copied("1/1") && copied("9/1") < copied("0/2") && 1<<61 < copied("0/0")) {
		t.Error("versions do not follow the origin's offset, then its partition, above all offsets")
	}
	for _, bad := range []string{"", "1", "/", "-1/2", "1/-2", "70000/1", "1/99999999999999999999", "1/2/3"} {
		if copied(bad) != 7 {
			t.Errorf("origin %q is taken for %d", bad, copied(bad))
		}
	}
}
