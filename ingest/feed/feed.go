package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/mirror"
	"giantstream/ingest/schema"
	"giantstream/stream"
)

// ErrTruncated: a topic ends before the offset that was already consumed.
var ErrTruncated = errors.New("topic is shorter than what was consumed from it")

// Config is what the feeds of a pipeline have in common.
type Config struct {
	Client  *client.Client
	Topics  ingest.Topics
	Mapping decode.Mapping
	Limits  decode.Limits
	// Translators make JSON of the values of the topics that they are named
	// after; the values of other topics are JSON.
	Translators map[string]*schema.Translator
	// Rekeyed: nodes and edges are copies of other topics' records, see
	// package rekey.
	Rekeyed bool
	Shards  int
	// Clock stamps dead letters.
	Clock func() time.Time
	Log   *slog.Logger
	// Metrics, when not nil, is counted up by all feeds that share it.
	Metrics *Metrics
}

// Metrics count what feeds did.
type Metrics struct {
	// Records and Bytes read, dead-lettered ones included.
	Records, Bytes atomic.Int64
	DeadLetters    atomic.Int64
	// codes count the dead letters by code.
	codes sync.Map // decode.Code to *atomic.Int64
	// Lost counts offsets that were deleted from a topic before they were read.
	Lost atomic.Int64
	// Retries counts failed fetches.
	Retries atomic.Int64
}

// Letters is how many dead letters had a code.
func (m *Metrics) Letters(code decode.Code) int64 {
	if n, ok := m.codes.Load(code); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

func (m *Metrics) count(code decode.Code) {
	n, ok := m.codes.Load(code)
	if !ok {
		n, _ = m.codes.LoadOrStore(code, &atomic.Int64{})
	}
	n.(*atomic.Int64).Add(1)
}

// A batch ends when it has this many records or bytes; the fetch that reaches
// the limit is still taken whole.
const (
	batchRecords = 4096
	batchBytes   = 8 << 20
)

// Feed is the input of one shard. Next must not be called concurrently.
type Feed struct {
	letters *deadletter.Writer
	metrics *Metrics
	sources []*source
	chunks  chan chunk
	next    map[string]int64
	err     error

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// decoder is a decode.Decoder or mirror.Decoder.
type decoder interface {
	Decode(decode.Record, []stream.Mutation) ([]stream.Mutation, *decode.Fault)
}

// chunk is what one fetch gave.
type chunk struct {
	topic     string
	mutations []stream.Mutation
	letters   []deadletter.Letter
	records   int
	bytes     int64
	next      int64
	err       error
}

// Open starts to read shard's partition of the input topics, each from its
// offset in next, or from the oldest record where next has none. The feed
// reads until ctx ends or it is closed.
func Open(ctx context.Context, c Config, shard int, next map[string]int64) (*Feed, error) {
	nodes, err := decode.Nodes(c.Mapping.Nodes, c.DecoderLimits(c.Topics.Nodes), c.Shards)
	if err != nil {
		return nil, err
	}
	edges, err := decode.Edges(c.Mapping.Edges, c.DecoderLimits(c.Topics.Edges), c.Shards)
	if err != nil {
		return nil, err
	}
	f := &Feed{
		letters: deadletter.NewWriter(c.Client, c.Topics.DeadLetters, c.Clock),
		metrics: c.Metrics,
		next:    map[string]int64{},
	}
	if f.metrics == nil {
		f.metrics = &Metrics{}
	}
	ctx, f.cancel = context.WithCancel(ctx)
	decoders := []decoder{nodes, edges, mirror.NewDecoder(c.Shards)}
	topics := c.Topics.Inputs()
	f.chunks = make(chan chunk, len(topics))
	for i, topic := range topics {
		s := &source{
			client: c.Client, topic: topic, partition: shard, decoder: decoders[i], translator: c.Translators[topic], rekeyed: c.Rekeyed && topic != c.Topics.Mirror,
			offset: unknown, chunks: f.chunks, metrics: f.metrics,
			log: c.Log.With("topic", topic, "partition", shard),
		}
		if at, ok := next[topic]; ok {
			s.offset, f.next[topic] = at, at
		}
		f.sources = append(f.sources, s)
		f.done.Go(func() { s.run(ctx) })
	}
	return f, nil
}

// DecoderLimits are those of the decoder of a topic. What comes from a translator,
// which has looked at the size of the record, has grown.
func (c *Config) DecoderLimits(topic string) decode.Limits {
	l := c.Limits
	if c.Translators[topic] != nil {
		l.RecordBytes *= schema.Growth
	}
	return l
}

// Next returns what has arrived, or waits for it; after wait without
// anything it returns an empty batch. The dead letters of the records that
// the batch covers are acknowledged.
func (f *Feed) Next(ctx context.Context, wait time.Duration) (stream.Batch, error) {
	if f.err == nil {
		b, err := f.collect(ctx, wait)
		if err == nil {
			return b, nil
		}
		f.err = err
	}
	return stream.Batch{}, f.err
}

func (f *Feed) collect(ctx context.Context, wait time.Duration) (stream.Batch, error) {
	var b stream.Batch
	var letters []deadletter.Letter
	records := 0
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for records < batchRecords && b.Bytes < batchBytes {
		c, ok := f.receive(ctx, timer.C, records == 0)
		if !ok {
			break
		}
		if c.err != nil {
			return b, c.err
		}
		if b.Mutations == nil {
			b.Mutations = c.mutations
		} else {
			b.Mutations = append(b.Mutations, c.mutations...)
		}
		b.Bytes += c.bytes
		letters = append(letters, c.letters...)
		records += c.records
		f.next[c.topic] = c.next
	}
	if err := ctx.Err(); err != nil {
		return b, err
	}
	if len(letters) > 0 {
		err := f.letters.Publish(ctx, letters...)
		if err == nil {
			err = f.letters.Flush(ctx)
		}
		if err != nil {
			return b, fmt.Errorf("writing dead letters: %w", err)
		}
		f.metrics.DeadLetters.Add(int64(len(letters)))
	}
	for _, l := range letters {
		f.metrics.count(l.Code)
	}
	f.metrics.Records.Add(int64(records))
	f.metrics.Bytes.Add(b.Bytes)
	b.Next = make(map[string]int64, len(f.next))
	for topic, at := range f.next {
		b.Next[topic] = at
	}
	b.CaughtUp = f.caughtUp()
	return b, nil
}

// receive returns the next chunk; with block it waits for one until the timer fires.
func (f *Feed) receive(ctx context.Context, timer <-chan time.Time, block bool) (chunk, bool) {
	select {
	case c := <-f.chunks:
		return c, true
	default:
	}
	if !block {
		return chunk{}, false
	}
	select {
	case c := <-f.chunks:
		return c, true
	case <-timer:
	case <-ctx.Done():
	}
	return chunk{}, false
}

// caughtUp: every topic has answered, and all that it had then is handed out.
func (f *Feed) caughtUp() bool {
	for _, s := range f.sources {
		at, known := f.next[s.topic]
		if !known || !s.answered.Load() || at < s.end.Load() {
			return false
		}
	}
	return true
}

// Ends returns, per topic that has answered, where it ended when it was asked
// last. It may be called while Next is.
func (f *Feed) Ends() map[string]int64 {
	ends := map[string]int64{}
	for _, s := range f.sources {
		if s.answered.Load() {
			ends[s.topic] = s.end.Load()
		}
	}
	return ends
}

// Close stops the feed and waits for its goroutines.
func (f *Feed) Close() error {
	f.cancel()
	f.done.Wait()
	return f.letters.Close()
}
