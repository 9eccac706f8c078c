package answering

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
	"giantstream/ingest/ordered"
	"giantstream/internal/retry"
	"giantstream/sink/lease"
	"giantstream/train/answer"
)

// OrderedLease is the name of the lease of the process that tells what items are ordered with.
const OrderedLease = "ordered"

const (
	tellEvery = time.Second
	// toldAtOnce bounds the items of a turn. Of each, a row is written, a text encoded and an embedding published.
	toldAtOnce = 100
	// tellerRests is after how long without anything to tell a process gives the lease back.
	tellerRests = time.Minute
	// othersTell is after how long a process asks again whether another one holds the lease.
	othersTell = 10 * time.Second
)

// Teller tells the shards what items are ordered with as the answers have it, so that published embeddings follow the
// orders. Of the processes that answer one does, which has a lease. Two that both believe to have it tell the same,
// once both have followed all orders.
type Teller struct {
	Topic  string
	Client *client.Client
	Right  *lease.Lease
	Log    *slog.Logger

	told prometheus.Counter
}

func (t *Teller) register(r prometheus.Registerer, c *answer.Catalog) {
	t.told = prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_ordered_told_items_total",
		Help: "Items of which this process told the shards what they are ordered with."})
	r.MustRegister(t.told, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_ordered_untold_items",
		Help: "Items that are answered with other orders than published embeddings know."},
		func() float64 { return float64(c.Untold()) }))
}

// run tells until ctx ends.
func (t *Teller) run(ctx context.Context, c *answer.Catalog) error {
	pause := retry.Backoff{Min: tellEvery, Max: 30 * time.Second}
	for {
		wait := tellEvery
		if c.Tells() {
			switch err := t.tellAll(ctx, c); {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, lease.ErrHeld), errors.Is(err, lease.ErrLost):
				wait = othersTell
			case err != nil:
				wait = pause.Next()
				t.Log.Warn("published embeddings do not follow the orders, trying again", "in", wait, "error", err)
			default:
				pause.Reset()
			}
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// tellAll tells what there is, until for a while there was nothing, if this process gets the lease.
func (t *Teller) tellAll(ctx context.Context, c *answer.Catalog) (err error) {
	held, err := t.Right.Acquire(ctx)
	if err != nil {
		return err
	}
	ctx, release := held.Keep(ctx)
	defer release()
	producer := t.Client.NewProducer()
	defer func() {
		if closed := producer.Close(); err == nil {
			err = closed
		}
	}()
	for last := time.Now(); time.Since(last) < tellerRests; {
		n, err := t.tell(ctx, producer, c)
		if lost := context.Cause(ctx); lost != nil {
			return lost
		}
		if err != nil {
			return err
		}
		if n > 0 {
			last = time.Now()
		}
		if err := retry.Sleep(ctx, tellEvery); err != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// tell tells of some items, and returns of how many.
func (t *Teller) tell(ctx context.Context, p *client.Producer, c *answer.Catalog) (n int, err error) {
	generation, taken := c.TakeOrdered(toldAtOnce)
	for i := range taken {
		if err = p.Send(ctx, t.record(generation, &taken[i])); err != nil {
			break
		}
	}
	if err = errors.Join(err, p.Flush(ctx)); err != nil {
		c.PutBackOrdered(generation, taken)
		return 0, err
	}
	t.told.Add(float64(len(taken)))
	return len(taken), nil
}

// record is newer than what the log says, whatever the clock of who said it.
func (t *Teller) record(generation int64, r *answer.OrderedRow) kafka.Message {
	at := time.Now()
	if after := time.UnixMicro(r.After + 1); r.After > 0 && after.After(at) {
		at = after
	}
	return ordered.Record(t.Topic, r.ID, generation, r.Row, at)
}
