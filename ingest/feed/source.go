package feed

import (
	"context"
	"errors"
	"fmt"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/recordtrace"
	"giantstream/ingest/repartition"
	"giantstream/ingest/schema"
	"giantstream/stream/mutation"

	"github.com/segmentio/kafka-go"
)

// source decodes the records of one partition into chunks.
type source struct {
	reader  client.Reader
	decoder decoder
	// rebound brings the decoder's bounds up to date.
	rebound func()
	// translator makes JSON of the values, nil where they are JSON.
	translator *schema.Translator
	json       []byte // its output, reused for each record
	// copies: the records are copies and have the versions of their originals.
	copies bool
	// original is the topic that is copied, "" if the records are no copies of producers' records.
	original string
	input    mutation.Input
	chunks   chan<- chunk
	// base is what the offsets of chunks are above those of the reader.
	base  int64
	limit int             // of a record, in bytes
	lost  []mutation.Lost // since the last chunk
	sent  int64           // next of the last chunk, as the reader counts
	// traces follows some of the records, nil for none.
	traces *recordtrace.Tracer
}

// end returns where what could be read of the topic ended at its last answer.
func (s *source) end() (offset int64, known bool) {
	end, known := s.reader.End()
	return end + s.base, known
}

// logEnd returns where the topic ended at its last answer.
func (s *source) logEnd() (offset int64, known bool) {
	end, known := s.reader.LogEnd()
	return end + s.base, known
}

// run reads until ctx ends or an error is final, which is the last chunk.
func (s *source) run(ctx context.Context) {
	s.sent = s.reader.Offset
	err := s.reader.Run(ctx, s.handle)
	if errors.Is(err, client.ErrTruncated) {
		err = fmt.Errorf("%w; if the topic was created again, its data belongs in a new pipeline "+
			"(another store and state)", err)
	}
	if ctx.Err() == nil {
		s.send(ctx, chunk{err: err})
	}
}

func (s *source) handle(ctx context.Context, got client.Fetched) error {
	if got.Next == s.sent {
		return nil
	}
	c := chunk{next: got.Next + s.base, lost: s.lost, records: len(got.Records) + len(got.TooLarge), bytes: got.Bytes,
		statements: make([]mutation.Statement, 0, len(got.Records)+len(got.TooLarge)),
		mutations:  make([]mutation.Mutation, 0, len(got.Records))}
	if n := len(got.Records); n > 0 {
		last := got.Records[n-1]
		c.last = mutation.Record{Offset: last.Offset + s.base, Fingerprint: client.Fingerprint(last)}
	}
	s.rebound()
	for i, m := range got.Records {
		var followed *recordtrace.Record
		if s.traces != nil && len(c.traced) < tracedRecords {
			followed = s.traces.Begin(&got.Records[i], got.Asked, got.Arrived)
		}
		if err := s.decode(ctx, m, &c, followed); err != nil {
			if followed != nil {
				c.traced = append(c.traced, followed)
			}
			for _, r := range c.traced {
				r.Failed(err)
			}
			return err
		}
	}
	for i := range got.TooLarge {
		c.letters = append(c.letters, s.ofOriginal(deadletter.FromTooLarge(&got.TooLarge[i], s.limit),
			&got.TooLarge[i].Message))
		c.statements = append(c.statements, mutation.Statement{Offset: got.TooLarge[i].Offset + s.base,
			Input: s.input, Refused: true})
	}
	s.send(ctx, c)
	s.sent, s.lost = got.Next, nil
	return nil
}

func (s *source) send(ctx context.Context, c chunk) {
	c.topic = s.reader.Topic
	select {
	case s.chunks <- c:
	case <-ctx.Done():
	}
}

// ofOriginal returns the letter of a record as one of the record that it is a copy of, if it is one: so it names what a
// producer has sent, and is the same letter when that is copied again.
func (s *source) ofOriginal(l deadletter.Letter, m *kafka.Message) deadletter.Letter {
	if partition, epoch, offset, ok := repartition.OriginOf(m); ok && s.original != "" {
		l.OfCopy(deadletter.Origin{Topic: s.original, Partition: partition, Epoch: epoch, Offset: offset})
	}
	return l
}

// tracedRecords bounds the records of a fetch that are followed.
const tracedRecords = 128

// decode adds what a record says to the chunk: mutations, or a letter with the record's own bytes.
// An error is not the record's fault, and the record is decoded again later. followed is nil unless it is.
func (s *source) decode(ctx context.Context, m kafka.Message, c *chunk, followed *recordtrace.Record) error {
	value, key, before := m.Value, m.Key, len(c.mutations)
	var fault *decode.Fault
	if s.copies {
		key = ingest.OwnKey(&m)
	}
	key, err := s.translator.Key(ctx, key)
	if err != nil {
		return fmt.Errorf("offset %d: %w", m.Offset, err)
	}
	if s.translator != nil {
		if value, fault, err = s.translator.JSON(ctx, s.json[:0], m.Value); err != nil {
			return fmt.Errorf("offset %d: %w", m.Offset, err)
		}
		if value != nil {
			s.json = value
		}
	}
	version := m.Offset + s.base
	if s.copies {
		if origin := repartition.Version(&m); origin != m.Offset {
			version = origin // whatever became of the topic with the copies
		}
	}
	var override *int64
	if fault == nil {
		if override, err = ingest.OverrideOf(&m); err != nil {
			fault = &decode.Fault{Code: decode.BadEventTime, Message: err.Error()}
		}
	}
	if fault == nil {
		c.mutations, fault = s.decoder.Decode(decode.Record{
			Key: key, Value: value, Time: m.Time, Partition: m.Partition, Offset: version,
			Override: override,
		}, c.mutations)
	}
	if fault != nil {
		l := s.ofOriginal(deadletter.FromMessage(m, fault), &m)
		if followed != nil {
			followed.Refused(string(fault.Code))
			l.Trace = followed.Headers()
		}
		c.letters = append(c.letters, l)
	}
	said := len(c.mutations) - before
	c.statements = append(c.statements, mutation.Statement{Offset: m.Offset + s.base, Mutations: int32(said),
		Input: s.input, Refused: fault != nil && said == 0})
	if followed != nil && followed.Decoded(c.mutations[before:]) {
		c.traced = append(c.traced, followed)
	}
	return nil
}
