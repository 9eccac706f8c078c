package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"

	"github.com/segmentio/kafka-go"
)

// Options say what to send where.
type Options struct {
	Client *client.Client
	Topics ingest.Topics
	// Nodes go to the nodes topic, then Edges to the edges topic.
	Nodes, Edges []Input
	Mapping      decode.Mapping
	Limits       decode.Limits
	// Checkpoint is the file that remembers what was sent; "" begins anew.
	Checkpoint string
	// Clock stamps dead letters.
	Clock func() time.Time
	// Progress is told the bytes read of all inputs; nil for none.
	Progress Progress
}

// Progress receives how far the backfill has come.
type Progress interface {
	// Stage begins a stage of total units (0: unknown) and ends the last one.
	Stage(name string, total int64)
	Add(n int64)
}

// Stats count what a backfill did.
type Stats struct {
	// Nodes and Edges are the records sent to each topic.
	Nodes int64 `json:"nodes"`
	Edges int64 `json:"edges"`
	// Oversize records were dead-lettered instead.
	Oversize int64 `json:"oversize"`
	// Resumed records were sent by an earlier run.
	Resumed int64 `json:"resumed"`
}

const (
	// sendRecords and arenaBytes are how much is handed to the producer at once.
	sendRecords = 1024
	arenaBytes  = 256 << 10
	// checkpointRecords is how often the checkpoint is written.
	checkpointRecords = 50_000
)

// Run sends the inputs. When it returns without an error, every record is
// acknowledged by the broker.
func Run(ctx context.Context, o Options) (Stats, error) {
	var stats Stats
	cp, err := openCheckpoint(o.Checkpoint, o.Mapping, o.Limits)
	if err != nil {
		return stats, err
	}
	// The decoders only find keys here; one shard is as good as any.
	nodes, err := decode.Nodes(o.Mapping.Nodes, o.Limits, 1)
	if err != nil {
		return stats, err
	}
	edges, err := decode.Edges(o.Mapping.Edges, o.Limits, 1)
	if err != nil {
		return stats, err
	}
	if o.Progress == nil {
		o.Progress = discard{}
	}
	s := &sender{
		Options: o, checkpoint: cp, stats: &stats,
		producer: o.Client.NewProducer(),
		letters:  deadletter.NewWriter(o.Client, o.Topics.DeadLetters, o.Clock),
	}
	err = s.stage(ctx, "nodes", o.Nodes, target{
		topic: o.Topics.Nodes, decoder: nodes, sent: &stats.Nodes,
		typed: typedColumns{o.Mapping.Nodes.EventTime, o.Mapping.Nodes.Deleted},
	})
	if err == nil {
		err = s.stage(ctx, "edges", o.Edges, target{
			topic: o.Topics.Edges, decoder: edges, sent: &stats.Edges,
			typed: typedColumns{o.Mapping.Edges.EventTime, o.Mapping.Edges.Deleted},
		})
	}
	return stats, errors.Join(err, s.producer.Close(), s.letters.Close())
}

type discard struct{}

func (discard) Stage(string, int64) {}
func (discard) Add(int64)           {}

// target is where a stage sends to.
type target struct {
	topic   string
	decoder *decode.Decoder
	typed   typedColumns
	sent    *int64
}

type sender struct {
	Options
	checkpoint *checkpoint
	stats      *Stats
	producer   *client.Producer
	letters    *deadletter.Writer

	batch []kafka.Message
	arena []byte
}

func (s *sender) stage(ctx context.Context, what string, inputs []Input, to target) error {
	if len(inputs) == 0 {
		return nil
	}
	var total int64
	for i := range inputs {
		total += inputs[i].Size
	}
	s.Progress.Stage("backfill "+what, total)
	for i := range inputs {
		if err := s.send(ctx, &inputs[i], to); err != nil {
			return fmt.Errorf("backfill of %s: %w", what, err)
		}
	}
	return nil
}

// send sends one input.
func (s *sender) send(ctx context.Context, in *Input, to target) (err error) {
	skip, done := s.checkpoint.sent(to.topic, in)
	if done {
		s.Progress.Add(in.Size)
		s.stats.Resumed += skip
		return nil
	}
	r, closer, err := in.open(ctx, s.Limits.RecordBytes, to.typed, s.Progress.Add)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	last, pending := int64(0), 0
	for {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			return s.flush(ctx, in, to, last, true)
		}
		if err != nil {
			return fmt.Errorf("%s, after line %d: %w", in.Name, last, err)
		}
		last = rec.line
		if rec.line <= skip {
			s.stats.Resumed++
			continue
		}
		if err := s.record(ctx, in, to, rec); err != nil {
			return fmt.Errorf("%s, line %d: %w", in.Name, rec.line, err)
		}
		if pending++; pending == checkpointRecords {
			pending = 0
			if err := s.flush(ctx, in, to, last, false); err != nil {
				return err
			}
		}
	}
}

func (s *sender) record(ctx context.Context, in *Input, to target, rec record) error {
	if rec.over != nil {
		s.stats.Oversize++
		return s.letters.Publish(ctx, deadletter.Letter{
			Origin:  deadletter.Origin{Topic: to.topic, File: in.Name, Line: rec.line},
			Code:    decode.RecordTooLarge,
			Message: fmt.Sprintf("the record has %d bytes; the limit is %d", rec.over.size, s.Limits.RecordBytes),
			Value:   append([]byte(nil), rec.value...), Size: rec.over.size, SHA256: rec.over.sha256,
			Time: in.Modified,
		})
	}
	m := kafka.Message{Topic: to.topic, Value: s.keep(rec.value)}
	id, at, ok := to.decoder.Route(rec.value)
	if ok {
		m.Key = []byte(id)
	}
	if at.IsZero() {
		at = in.Modified
	}
	m.Time = timestamp(at)
	s.batch = append(s.batch, m)
	*to.sent++
	if len(s.batch) == sendRecords {
		return s.sendBatch(ctx)
	}
	return nil
}

// timestamp makes a record timestamp, which is in milliseconds, and to
// kafka-go means "now" when it is 0.
func timestamp(t time.Time) time.Time {
	if t.UnixMilli() < 1 {
		return time.UnixMilli(1)
	}
	return t
}

// keep copies b to where it stays until it is acknowledged.
func (s *sender) keep(b []byte) []byte {
	if len(b) > len(s.arena) {
		s.arena = make([]byte, max(arenaBytes, len(b)))
	}
	kept := s.arena[:len(b):len(b)]
	s.arena = s.arena[copy(kept, b):]
	return kept
}

func (s *sender) sendBatch(ctx context.Context) error {
	err := s.producer.Send(ctx, s.batch...)
	s.batch = s.batch[:0]
	return err
}

// flush waits until everything is acknowledged, then moves the checkpoint.
func (s *sender) flush(ctx context.Context, in *Input, to target, line int64, done bool) error {
	if err := s.sendBatch(ctx); err != nil {
		return err
	}
	if err := s.producer.Flush(ctx); err != nil {
		return err
	}
	if err := s.letters.Flush(ctx); err != nil {
		return err
	}
	return s.checkpoint.save(to.topic, in, line, done)
}
