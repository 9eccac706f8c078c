package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/internal/retry"
)

// Fetched is the answer to one Fetch, or a part of it.
type Fetched struct {
	// Records in offset order, none below the offset asked for. Their keys and values share one
	// buffer, which may be the broker's whole answer; a null key or value is nil, an empty one is not.
	Records []kafka.Message
	// TooLarge are the records over Options.RecordBytes, in offset order, which were not kept whole.
	TooLarge []TooLarge
	// Next is the offset to fetch from next. It can pass the last record: transaction markers, aborted
	// records and records that compaction removed have offsets too.
	Next int64
	// HighWater is the end of the partition when the broker answered, and Stable the end of what can
	// be read: an open transaction holds back its records and all that follow.
	HighWater, Stable int64
	// Bytes is the size of the records' keys and values.
	Bytes int64
	// Asked and Arrived are when the broker was asked, and when its answer was here.
	Asked, Arrived time.Time
}

// TooLarge is a record that is too large to be held in memory. Value is its beginning.
type TooLarge struct {
	kafka.Message
	// Size and SHA256 (hex) of the whole value.
	Size   int64
	SHA256 string
}

// Error implements error: a caller that needs every record whole returns the TooLarge.
func (t *TooLarge) Error() string {
	return fmt.Sprintf("kafka: the record at %s-%d, offset %d, has a value of %d bytes, or headers, over the limit",
		t.Topic, t.Partition, t.Offset, t.Size)
}

// CutBytes is how much of a value that is too large is kept.
const CutBytes = 64 << 10

// defaultRecordBytes is the default of Options.RecordBytes.
const defaultRecordBytes = 8 << 20

// A Fetched ends when it has this many bytes or records, whatever a broker's answer decompresses to. A
// record takes 200 bytes beside its own, so of small ones the number decides.
const (
	fetchedBytes   = 8 << 20
	fetchedRecords = 4 << 10
	// batchRoom bounds the records that room is made for because a batch says that it has them.
	batchRoom = 4 << 10
)

// ErrOffsetOutOfRange: the offset asked for is not, or no longer, in the log.
var ErrOffsetOutOfRange = errors.New("offset out of range")

// Fetch reads a run of records from one partition: at least one record if there is any, and up to
// about maxBytes as they are compressed. It waits up to maxWait for the first one. It never skips a
// record: an offset outside the log is ErrOffsetOutOfRange.
//
// It is built on kafka-go's transport and not on kafka-go's Reader. That Reader silently skips to the
// oldest offset when its own is gone, does not distinguish a null value (a deletion) from an empty
// one, reports nothing about an empty partition, and returns transaction markers as records. Nor is
// it built on kafka-go's decoder of batches, whose memory a small batch can make as large as it likes.
func (c *Client) Fetch(
	ctx context.Context, topic string, partition int, offset int64, maxBytes int, maxWait time.Duration,
) (Fetched, error) {
	a, err := c.fetch(ctx, topic, partition, offset, maxBytes, maxWait)
	if err != nil {
		return Fetched{Next: offset}, err
	}
	return a.read(ctx)
}

// fetch returns the broker's answer, of which nothing is decoded yet. While the client is over its quota, brokers
// answer without records and say how long to wait.
func (c *Client) fetch(
	ctx context.Context, topic string, partition int, offset int64, maxBytes int, maxWait time.Duration,
) (*answer, error) {
	var asked time.Time
	var got *fetchAnswer
	for {
		asked = time.Now()
		var err error
		if got, err = c.exchange(ctx, topic, partition, offset, maxBytes, maxWait); err == nil && got.throttle > 0 {
			if retry.Sleep(ctx, got.throttle) == nil {
				continue
			}
			err = fmt.Errorf("the brokers throttle this client, which is over its quota: %w", ctx.Err())
		}
		if errors.Is(err, kafka.OffsetOutOfRange) {
			err = ErrOffsetOutOfRange
		}
		if err != nil {
			return nil, fmt.Errorf("kafka: fetching %s-%d from offset %d: %w", topic, partition, offset, err)
		}
		break
	}
	a := &answer{asked: asked, arrived: time.Now(), client: c, topic: topic, partition: partition, next: offset,
		highWater: got.highWater, stable: got.highWater, transactions: newTransactions(nil), rest: got.batches}
	if c.isolation == kafka.ReadCommitted {
		a.stable, a.transactions = got.stable, newTransactions(got.aborted)
	}
	return a, nil
}

// exchange asks the broker once.
func (c *Client) exchange(
	ctx context.Context, topic string, partition int, offset int64, maxBytes int, maxWait time.Duration,
) (*fetchAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait+requestTimeout)
	defer cancel()
	res, err := c.transport.RoundTrip(ctx, c.addr,
		newFetchExchange(c.transport.ClientID, topic, partition, offset, maxBytes, maxWait, c.isolation))
	if err != nil {
		return nil, err
	}
	got := res.(*fetchAnswer)
	return got, got.err
}

// answer is what a broker sent for one fetch. It is decompressed and decoded as it is read, since a
// small answer can be gigabytes of records.
type answer struct {
	client    *Client
	topic     string
	partition int
	next      int64 // offset to read from
	highWater int64
	stable    int64
	rest      []byte // batches that are not open
	moved     bool   // something was read
	asked     time.Time
	arrived   time.Time
	batch     *batch
	// room, unless nil, is where the next records go.
	room []kafka.Message

	transactions *transactions
}

// more reports whether read has something to give that the last one left.
func (a *answer) more() bool { return a.batch != nil }

// read returns the next records of the answer. What precedes a damaged batch is returned first.
func (a *answer) read(ctx context.Context) (Fetched, error) {
	f := Fetched{Records: a.room[:0], Next: a.next, HighWater: a.highWater, Stable: a.stable,
		Asked: a.asked, Arrived: a.arrived}
	from, rest := a.next, a.rest
	for f.Bytes < fetchedBytes && len(f.Records)+len(f.TooLarge) < fetchedRecords {
		if a.batch == nil {
			if err := a.open(); err != nil {
				return a.result(f, err)
			}
			if a.batch == nil {
				break
			}
			f.Records = slices.Grow(f.Records, int(min(max(0, a.batch.count), batchRoom)))
		}
		rec, err := a.batch.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			a.next = max(a.next, a.batch.last+1)
			a.batch = nil
			continue
		case err != nil:
			err = fmt.Errorf("%w, in the batch of offsets %d to %d", err, a.batch.base, a.batch.last)
			a.batch, a.rest = nil, nil
			return a.result(f, err)
		case rec.passed:
			continue
		}
		rec.Topic, rec.Partition, rec.HighWaterMark = a.topic, a.partition, a.highWater
		a.next = max(a.next, rec.Offset+1)
		f.Bytes += int64(len(rec.Key) + len(rec.Value))
		if rec.cut {
			f.TooLarge = append(f.TooLarge, TooLarge{Message: rec.Message, Size: rec.size, SHA256: rec.sha256})
		} else {
			f.Records = append(f.Records, rec.Message)
		}
	}
	a.moved = a.moved || a.next > from
	if !a.moved && from < a.stable && a.batch == nil && len(rest) > 0 {
		return a.result(f, fmt.Errorf("%w: a batch at offset %d is larger than the answer", errBadBatch, from))
	}
	return a.result(f, nil)
}

// open opens the next whole batch, if there is one.
func (a *answer) open() error {
	first, rest, err := nextBatch(a.rest)
	if err != nil || first == nil {
		a.rest = nil
		return err
	}
	a.rest = rest
	if a.batch, err = a.client.decompressors.openBatch(first, a.next, a.client.recordBytes,
		a.transactions); err != nil {
		a.batch, a.rest = nil, nil
	}
	return err
}

// result gives f, or err if f has nothing. With the records of f, err comes again with the next
// fetch.
func (a *answer) result(f Fetched, err error) (Fetched, error) {
	moved := a.next > f.Next
	f.Next = a.next
	if err == nil || moved {
		return f, nil
	}
	return f, fmt.Errorf("kafka: reading %s-%d from offset %d: %w", a.topic, a.partition, a.next, err)
}

// Range yields the records of one partition with offsets in [from, to), in order. It skips offsets
// below the oldest one that is kept. A record that is too large is yielded as the error *TooLarge,
// after which the others follow.
func (c *Client) Range(
	ctx context.Context, topic string, partition int, from, to int64,
) iter.Seq2[kafka.Message, error] {
	return func(yield func(kafka.Message, error) bool) {
		var a *answer
		for from < to {
			var f Fetched
			var err error
			if a == nil || !a.more() {
				a, err = c.fetch(ctx, topic, partition, from, 1<<20, time.Second)
			}
			if err == nil {
				f, err = a.read(ctx)
			}
			if errors.Is(err, ErrOffsetOutOfRange) {
				first, ferr := c.FirstOffsets(ctx, topic)
				if ferr == nil && partition < len(first[topic]) && first[topic][partition] > from {
					from = first[topic][partition]
					continue
				}
			}
			if err != nil {
				yield(kafka.Message{}, err)
				return
			}
			if !f.yieldRecords(to, yield) {
				return
			}
			from = f.Next
		}
	}
}

// yieldRecords yields the records with offsets below to, in order, and reports whether the caller wants more.
func (f *Fetched) yieldRecords(to int64, yield func(kafka.Message, error) bool) bool {
	large := f.TooLarge
	for i := 0; i < len(f.Records) || len(large) > 0; {
		var err error
		var m kafka.Message
		if len(large) > 0 && (i == len(f.Records) || large[0].Offset < f.Records[i].Offset) {
			m, err, large = large[0].Message, &large[0], large[1:]
		} else {
			m = f.Records[i]
			i++
		}
		if m.Offset >= to || !yield(m, err) {
			return false
		}
	}
	return true
}
