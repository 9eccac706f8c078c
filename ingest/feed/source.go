package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/rekey"
	"giantstream/ingest/schema"
	"giantstream/stream"

	"github.com/segmentio/kafka-go"
)

const (
	// fetchBytes is how much one fetch asks for. A shard holds at most
	// about two fetches per topic.
	fetchBytes = 1 << 20
	// fetchWait is how long the broker holds a fetch when there is nothing.
	fetchWait = time.Second
	// unknown offset: begin with the oldest record.
	unknown = -1

	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
)

var errNoPartition = errors.New("topic has no partition")

// source reads one partition.
type source struct {
	client    *client.Client
	topic     string
	partition int
	decoder   decoder
	// translator makes JSON of the values, nil where they are JSON.
	translator *schema.Translator
	json       []byte // its output, used again for each record
	// rekeyed: records are copies, whose versions are those of their origins.
	rekeyed bool
	offset  int64
	chunks  chan<- chunk
	metrics *Metrics
	log     *slog.Logger

	// end is the high watermark of the last answer.
	end      atomic.Int64
	answered atomic.Bool
}

// run fetches and decodes until ctx ends or something fails for good.
func (s *source) run(ctx context.Context) {
	backoff := minBackoff
	for ctx.Err() == nil {
		from := s.offset
		c, err := s.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && s.offset == from:
			continue
		case err == nil:
			backoff = minBackoff
		case final(err):
			c.err = err
		default:
			s.metrics.Retries.Add(1)
			s.log.Warn("reading failed, trying again", "offset", from, "wait", backoff, "error", err)
			if !sleep(ctx, backoff) {
				return
			}
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		c.topic, c.next = s.topic, s.offset
		select {
		case s.chunks <- c:
		case <-ctx.Done():
			return
		}
		if c.err != nil {
			return
		}
	}
}

// fetch gets the next records, decodes them and moves the offset.
func (s *source) fetch(ctx context.Context) (chunk, error) {
	if s.offset == unknown {
		return chunk{}, s.seekOldest(ctx)
	}
	wait := fetchWait
	if !s.answered.Load() {
		wait = time.Millisecond // learn the end of the topic at once
	}
	f, err := s.client.Fetch(ctx, s.topic, s.partition, s.offset, fetchBytes, wait)
	if errors.Is(err, client.ErrOffsetOutOfRange) {
		return chunk{}, s.outOfRange(ctx)
	}
	if err != nil {
		return chunk{}, err
	}
	c := chunk{records: len(f.Records), bytes: f.Bytes, mutations: make([]stream.Mutation, 0, len(f.Records))}
	for _, m := range f.Records {
		if err := s.decode(ctx, m, &c); err != nil {
			return chunk{}, err
		}
	}
	s.offset = f.Next
	s.end.Store(f.HighWater)
	s.answered.Store(true)
	return c, nil
}

func (s *source) seekOldest(ctx context.Context) error {
	first, err := s.client.FirstOffsets(ctx, s.topic)
	if err != nil {
		return err
	}
	if s.partition >= len(first[s.topic]) {
		return fmt.Errorf("kafka topic %q: %w %d, which is this shard's", s.topic, errNoPartition, s.partition)
	}
	s.offset = first[s.topic][s.partition]
	return nil
}

// decode adds what a record says to the chunk, mutations or a letter with its
// own bytes. An error is no fault of the record.
func (s *source) decode(ctx context.Context, m kafka.Message, c *chunk) error {
	value := m.Value
	var fault *decode.Fault
	if s.translator != nil {
		var err error
		if value, fault, err = s.translator.JSON(ctx, s.json[:0], m.Value); err != nil {
			return fmt.Errorf("offset %d: %w", m.Offset, err)
		}
		if value != nil {
			s.json = value
		}
	}
	version := m.Offset
	if s.rekeyed {
		version = rekey.Version(&m)
	}
	if fault == nil {
		c.mutations, fault = s.decoder.Decode(decode.Record{
			Key: m.Key, Value: value, Time: m.Time, Partition: m.Partition, Offset: version,
		}, c.mutations)
	}
	if fault != nil {
		c.letters = append(c.letters, deadletter.FromMessage(m, fault))
	}
	return nil
}

// outOfRange moves past records that the broker has deleted, or reports that
// the topic is not the one that was consumed.
func (s *source) outOfRange(ctx context.Context) error {
	first, err := s.client.FirstOffsets(ctx, s.topic)
	if err != nil {
		return err
	}
	end, err := s.client.EndOffsets(ctx, s.topic)
	if err != nil {
		return err
	}
	at, oldest, last := s.offset, first[s.topic][s.partition], end[s.topic][s.partition]
	switch {
	case at < oldest:
		s.metrics.Lost.Add(oldest - at)
		s.log.Error("records were deleted before they were read; going on with the oldest one left. "+
			"Raise the topic's retention, and backfill what is missing", "from", at, "to", oldest, "lost", oldest-at)
		s.offset = oldest
		return nil
	case at > last:
		return fmt.Errorf("kafka topic %q, partition %d: %w: it ends at offset %d, the next to read is %d; "+
			"if the topic was created anew, its data belongs in a new pipeline (another store and state)",
			s.topic, s.partition, ErrTruncated, last, at)
	}
	return fmt.Errorf("kafka topic %q, partition %d: offset %d is in [%d, %d], but the broker refuses it", s.topic, s.partition, at, oldest, last)
}

// final tells the errors that no retry mends from those of brokers and
// networks that come back.
func final(err error) bool {
	return !client.Passing(err) || errors.Is(err, ErrTruncated) || errors.Is(err, errNoPartition)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
