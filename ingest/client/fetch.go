package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// Fetched is the answer to one Fetch.
type Fetched struct {
	// Records in offset order, none below the offset asked for. Their keys
	// and values share one buffer; a null key or value is nil, an empty one
	// is not.
	Records []kafka.Message
	// Next is the offset to fetch from next. It can pass the last record:
	// transaction markers and records that compaction removed have offsets too.
	Next int64
	// HighWater is the end of the partition when the broker answered.
	HighWater int64
	// Bytes is the size of the records' keys and values.
	Bytes int64
}

// ErrOffsetOutOfRange: the offset asked for is not, or no longer, in the log.
var ErrOffsetOutOfRange = errors.New("offset out of range")

// Fetch reads a run of records from one partition, at least one if there is
// any, and otherwise up to about maxBytes. It waits up to maxWait for the
// first one. It never skips what is there: an offset outside the log is
// ErrOffsetOutOfRange.
//
// It is built on kafka-go's Client.Fetch and not on its Reader, because the
// Reader silently skips to the oldest offset when its own is gone, cannot tell
// a null value (a deletion) from an empty one, tells nothing about an
// empty partition, and hands transaction markers out as records.
func (c *Client) Fetch(ctx context.Context, topic string, partition int, offset int64, maxBytes int, maxWait time.Duration) (Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait+requestTimeout)
	defer cancel()
	out := Fetched{Next: offset}
	res, err := c.kafka.Fetch(ctx, &kafka.FetchRequest{
		Topic: topic, Partition: partition, Offset: offset,
		MinBytes: 1, MaxBytes: int64(maxBytes), MaxWait: maxWait,
	})
	if err == nil {
		err = res.Error
	}
	switch {
	case errors.Is(err, kafka.OffsetOutOfRange):
		return out, fmt.Errorf("kafka: fetching %s-%d from offset %d: %w", topic, partition, offset, ErrOffsetOutOfRange)
	case err != nil:
		return out, fmt.Errorf("kafka: fetching %s-%d from offset %d: %w", topic, partition, offset, err)
	}
	out.HighWater = res.HighWatermark
	if err := out.read(res.Records); err != nil {
		return out, fmt.Errorf("kafka: reading %s-%d from offset %d: %w", topic, partition, offset, err)
	}
	for i := range out.Records {
		out.Records[i].Topic, out.Records[i].Partition = topic, partition
	}
	return out, nil
}

// read takes the records at or after f.Next out of an answer.
func (f *Fetched) read(answer protocol.RecordReader) error {
	from := f.Next
	batches := []protocol.RecordReader{answer}
	if s, ok := answer.(*protocol.RecordStream); ok {
		batches = s.Records
	}
	for _, b := range batches {
		if err := f.readBatch(b, from); err != nil {
			return err
		}
	}
	if f.Next == from && from < f.HighWater && len(batches) > 0 && isBatch(batches[0]) {
		// The broker answered with batches that hold nothing at or after
		// the offset: compaction emptied them, and kafka-go does not
		// show where they end. What is left at this offset is nothing.
		f.Next++
	}
	return nil
}

func isBatch(r protocol.RecordReader) bool {
	switch r.(type) {
	case *protocol.RecordBatch, *protocol.ControlBatch, *protocol.MessageSet:
		return true
	}
	return false
}

func (f *Fetched) readBatch(r protocol.RecordReader, from int64) error {
	_, control := r.(*protocol.ControlBatch)
	var arena []byte
	for {
		rec, err := r.ReadRecord()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		keep := !control && rec.Offset >= from
		var m kafka.Message
		if m.Key, arena, err = readBytes(rec.Key, arena, keep); err == nil {
			m.Value, arena, err = readBytes(rec.Value, arena, keep)
		}
		if err != nil {
			return err
		}
		f.Next = max(f.Next, rec.Offset+1)
		if !keep {
			continue
		}
		m.Offset, m.Time, m.Headers, m.HighWaterMark = rec.Offset, rec.Time, rec.Headers, f.HighWater
		f.Records = append(f.Records, m)
		f.Bytes += int64(len(m.Key) + len(m.Value))
	}
}

// arenaBytes is how much memory the keys and values of a batch take at a time.
const arenaBytes = 64 << 10

// readBytes copies b into the arena (a new one if it is full) and releases b.
func readBytes(b protocol.Bytes, arena []byte, keep bool) (val, rest []byte, err error) {
	if b == nil {
		return nil, arena, nil
	}
	n := b.Len()
	if keep {
		if n > len(arena) {
			arena = make([]byte, max(n, arenaBytes))
		}
		val, arena = arena[:n:n], arena[n:]
		_, err = io.ReadFull(b, val)
	}
	return val, arena, errors.Join(err, b.Close())
}

// Range yields the records of one partition with offsets in [from, to), in
// order. Offsets below the oldest one that is kept are passed over.
func (c *Client) Range(ctx context.Context, topic string, partition int, from, to int64) iter.Seq2[kafka.Message, error] {
	return func(yield func(kafka.Message, error) bool) {
		for from < to {
			f, err := c.Fetch(ctx, topic, partition, from, 1<<20, time.Second)
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
			for _, m := range f.Records {
				if m.Offset >= to {
					return
				}
				if !yield(m, nil) {
					return
				}
			}
			from = f.Next
		}
	}
}
