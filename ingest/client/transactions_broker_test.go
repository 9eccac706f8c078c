package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"giantstream/ingest/client"
	"giantstream/ingest/internal/kafkatest"
)

// transactional is a producer of transactions.
type transactional struct {
	*kgo.Client
	id   string
	open []string // values of the open transaction
	in   bool
}

func newTransactional(t *testing.T, e *kafkatest.Env, id string, timeout time.Duration) *transactional {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(e.Client.Brokers()...), kgo.TransactionalID(id),
		kgo.TransactionTimeout(timeout), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &transactional{Client: c, id: id}
}

func (p *transactional) send(t *testing.T, topic string, partition int, value string) {
	t.Helper()
	if !p.in {
		if err := p.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		p.in, p.open = true, nil
	}
	r := &kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte(value)}
	if err := p.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	p.open = append(p.open, value)
}

// end ends the transaction, and returns what it has committed.
func (p *transactional) end(t *testing.T, commit bool) []string {
	t.Helper()
	if err := p.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)); err != nil {
		t.Fatal(err)
	}
	p.in = false
	if commit {
		return p.open
	}
	return nil
}

func values(t *testing.T, e *kafkatest.Env) (all []string) {
	t.Helper()
	for _, m := range e.Read(t, e.Topics.Nodes) {
		all = append(all, string(m.Value))
	}
	slices.Sort(all)
	return all
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// eventuallyHeld waits until so many offsets of the topic of nodes cannot be read yet. A producer is
// told that its transaction has ended before the coordinator has written the markers to all
// partitions (KIP-98), so what it sent can be held back a moment longer.
func eventuallyHeld(t *testing.T, e *kafkatest.Env, want int64) {
	t.Helper()
	topic := e.Topics.Nodes
	eventually(t, fmt.Sprintf("%d offsets are held back", want), func() bool {
		readable, err := e.Client.EndOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		written, err := e.Client.LogEndOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		var held int64
		for partition, end := range written[topic] {
			held += end - readable[topic][partition]
		}
		return held == want
	})
}

// Three producers commit and abort at random. What they have committed is read, and nothing else,
// once all transactions have ended. One that dies in a transaction holds back what follows until its
// successor, or the broker, aborts it.
func TestTransactionsOfOtherProducers(t *testing.T) {
	e := kafkatest.Start(t, 2)
	name := e.Topic(fmt.Sprintf("tx-%d", time.Now().UnixNano()))
	rng := rand.New(rand.NewPCG(1, 1))
	producers := make([]*transactional, 3)
	for i := range producers {
		producers[i] = newTransactional(t, e, fmt.Sprintf("%s-%d", name, i), time.Minute)
	}
	var want []string
	for n := range 150 {
		p := producers[rng.IntN(len(producers))]
		if p.in && rng.IntN(4) == 0 {
			want = append(want, p.end(t, rng.IntN(2) == 0)...)
			continue
		}
		p.send(t, e.Topics.Nodes, rng.IntN(2), fmt.Sprintf("%d of %s", n, p.id))
	}
	for _, p := range producers {
		if p.in {
			want = append(want, p.end(t, true)...)
		}
	}
	slices.Sort(want)
	eventuallyHeld(t, e, 0)
	if got := values(t, e); !slices.Equal(got, want) {
		t.Fatalf("read %d records, want %d:\n%q\n%q", len(got), len(want), got, want)
	}

	dead, alive := producers[0], producers[1]
	dead.send(t, e.Topics.Nodes, 0, "never ended")
	alive.send(t, e.Topics.Nodes, 0, "held back")
	alive.end(t, true)
	eventuallyHeld(t, e, 3) // two records and a marker
	if got := values(t, e); !slices.Equal(got, want) {
		t.Errorf("beside an open transaction: %q", got)
	}
	dead.Close() // and its transaction stays open
	successor := newTransactional(t, e, dead.id, time.Minute)
	successor.send(t, e.Topics.Nodes, 1, "successor")
	successor.end(t, true)
	want = append(want, "held back", "successor")
	slices.Sort(want)
	eventually(t, "the successor's start aborts what was open", func() bool { return slices.Equal(values(t, e), want) })
}

// A producer that dies and has no successor holds records back until transaction.timeout.ms.
func TestATransactionThatTimesOutIsAborted(t *testing.T) {
	e := kafkatest.Start(t, 1)
	p := newTransactional(t, e, e.Topic(fmt.Sprintf("tx-%d", time.Now().UnixNano())), time.Second)
	p.send(t, e.Topics.Nodes, 0, "never ended")
	p.Close()
	e.Send(t, kafka.Message{Topic: "nodes", Value: []byte("held back")})
	eventually(t, "the broker aborts the transaction",
		func() bool { return slices.Equal(values(t, e), []string{"held back"}) })
}

// A reader that follows a topic knows that records are held back: the end of what it can read comes
// before the end of the log.
func TestReaderWaitsForOpenTransactions(t *testing.T) {
	e := kafkatest.Start(t, 1)
	p := newTransactional(t, e, e.Topic(fmt.Sprintf("tx-%d", time.Now().UnixNano())), time.Minute)
	e.Send(t, kafka.Message{Topic: "nodes", Value: []byte("first")})
	p.send(t, e.Topics.Nodes, 0, "second")
	ctx, cancel := context.WithCancel(t.Context())
	r := client.Reader{Client: e.Client, Topic: e.Topics.Nodes, Offset: client.Oldest, Log: slog.New(slog.DiscardHandler)}
	var read atomic.Int64
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, func(_ context.Context, f client.Fetched) error {
			read.Add(int64(len(f.Records)))
			return nil
		})
	}()
	eventually(t, "one record is read and one is held back", func() bool {
		end, known := r.End()
		logEnd, _ := r.LogEnd()
		return known && read.Load() == 1 && end == 1 && logEnd == 2
	})
	p.end(t, true)
	eventually(t, "the transaction's record is read", func() bool {
		end, _ := r.End()
		return read.Load() == 2 && end == 3
	})
	cancel()
	<-done
}
