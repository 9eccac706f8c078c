package feed

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/mirror"
	"giantstream/ingest/recordtrace"
	"giantstream/ingest/schema"
	"giantstream/stream/mutation"
)

// Config is what the feeds of a pipeline have in common.
type Config struct {
	Client  *client.Client
	Topics  ingest.Topics
	Mapping decode.Mapping
	Limits  decode.Limits
	// Translators, by topic, make JSON of the values of topics that have a schema. The values of
	// other topics are JSON.
	Translators map[string]*schema.Translator
	Shards      int
	// Pipeline is the one whose mirror records are read.
	Pipeline mirror.Pipeline
	// Bases, by topic, are added to the offsets of the brokers. What a feed is given and returns are
	// the sums. See commitlog.Input.
	Bases map[string]int64
	// MaxFuture bounds how far an event time may be ahead of Clock; 0 is no bound.
	MaxFuture time.Duration
	// Ahead, when not nil, returns the records that a feed has refused for an event time too far ahead, by the place
	// where it has read them, each with the record's own time. Range refuses them, too, though their time may have
	// come.
	Ahead func(context.Context) (map[deadletter.Origin]time.Time, error)
	// Bounds, when not nil, returns what takes the place of MaxFuture and of these Limits for the records of the
	// next fetch. It is called by several goroutines.
	Bounds func() Bounds
	// Clock stamps dead letters.
	Clock func() time.Time
	Log   *slog.Logger
	// Fields, by topic, count in how many values each mapped field is found.
	Fields map[string]*decode.Tally
	// Letters, when not nil, logs the dead letters of all feeds that share it.
	Letters *deadletter.Log
	// Metrics, when not nil, is counted up by all feeds that share it.
	Metrics *Metrics
	// Traces, when not nil, follows some of the records.
	Traces *recordtrace.Tracer
}

// Bounds are what may change while a feed is open. RecordBytes is not among them: the client reads no more.
type Bounds struct {
	TextBytes, EdgesPerRecord int
	MaxFuture                 time.Duration
}

// Metrics count what feeds did.
type Metrics struct {
	// Records and Bytes read, dead-lettered ones included.
	Records, Bytes atomic.Int64
	// codes count the dead letters by code.
	codes sync.Map // decode.Code to *atomic.Int64
	// Lost counts offsets that were deleted from a topic before they were read.
	Lost atomic.Int64
	// Retries counts failed fetches.
	Retries atomic.Int64
}

// Letters returns how many dead letters had a code.
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

// A batch ends when it has this many records or bytes. It takes the whole fetch that reaches the
// limit.
const (
	batchRecords = 4096
	batchBytes   = 8 << 20
)

// Feed is the input of one shard. Next must not be called concurrently.
type Feed struct {
	letters *deadletter.Writer
	log     *deadletter.Log
	metrics *Metrics
	sources []*source
	chunks  chan chunk
	next    map[string]int64
	traced  []*recordtrace.Record
	err     error

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// decoder is a decode.Decoder or mirror.Decoder.
type decoder interface {
	Decode(decode.Record, []mutation.Mutation) ([]mutation.Mutation, *decode.Fault)
}

// chunk is the result of one fetch.
type chunk struct {
	topic      string
	statements []mutation.Statement
	mutations  []mutation.Mutation
	letters    []deadletter.Letter
	traced     []*recordtrace.Record
	lost       []mutation.Lost
	last       mutation.Record // zero for none
	records    int
	bytes      int64
	next       int64
	err        error
}

// Open starts to read shard's partition of the input topics, each from its offset in next, or from
// the oldest record where next has none. The feed reads until ctx ends or it is closed.
func Open(ctx context.Context, c Config, shard int, next map[string]int64) (*Feed, error) {
	decoders := map[string]decoder{}
	for _, topic := range c.Topics.Inputs() {
		var err error
		if decoders[topic], err = c.decoder(topic); err != nil {
			return nil, err
		}
	}
	f := &Feed{
		letters: deadletter.NewWriter(c.Client, c.Topics.DeadLetters, c.Clock),
		log:     c.Letters,
		metrics: c.Metrics,
		next:    map[string]int64{},
	}
	if f.metrics == nil {
		f.metrics = &Metrics{}
	}
	ctx, f.cancel = context.WithCancel(ctx)
	f.chunks = make(chan chunk, len(decoders))
	for in, topic := range c.Topics.Numbered() {
		rebound := func() {}
		if d, ok := decoders[topic].(*decode.Decoder); ok {
			d.CountInto(c.Fields[topic])
			if c.Bounds != nil {
				rebound = c.rebound(topic, d)
			}
		}
		s := &source{
			reader: client.Reader{
				Client: c.Client, Topic: topic, Partition: shard, Offset: client.Oldest,
				OnRetry: func() { f.metrics.Retries.Add(1) },
				Log:     c.Log.With("topic", topic, "partition", shard),
			},
			decoder: decoders[topic], translator: c.Translators[topic],
			copies: c.Topics.HasOrigins(topic), original: c.Topics.Origins[topic],
			input: in, chunks: f.chunks, base: c.Bases[topic], limit: c.Limits.RecordBytes,
			rebound: rebound, traces: c.Traces,
		}
		s.reader.OnLost = func(from, to int64) {
			f.metrics.Lost.Add(to - from)
			s.lost = append(s.lost, mutation.Lost{Topic: topic, From: from + s.base, To: to + s.base})
		}
		if at, ok := next[topic]; ok {
			s.reader.Offset, f.next[topic] = max(0, at-s.base), at
		}
		f.sources = append(f.sources, s)
		f.done.Go(func() { s.run(ctx) })
	}
	return f, nil
}

// DecoderLimits returns the limits for the decoder of a topic. A translator has checked the size of
// the record, and its JSON is larger than the record.
func (c *Config) DecoderLimits(topic string) decode.Limits {
	l := c.Limits
	if c.Translators[topic] != nil {
		l.RecordBytes *= schema.Growth
	}
	return l
}

// rebound returns a function that makes the decoder of a topic follow Bounds.
func (c *Config) rebound(topic string, d *decode.Decoder) func() {
	limits, clock, read := c.DecoderLimits(topic), c.Clock, c.Bounds
	var now Bounds
	return func() {
		if b := read(); b != now {
			now = b
			limits.TextBytes, limits.EdgesPerRecord = b.TextBytes, b.EdgesPerRecord
			d.SetLimits(limits)
			d.LimitFuture(b.MaxFuture, clock)
		}
	}
}

// Next returns what has arrived, or waits for it; after wait without anything it returns an empty
// batch. The dead letters of the records that the batch covers are acknowledged.
func (f *Feed) Next(ctx context.Context, wait time.Duration) (mutation.Batch, error) {
	if f.err == nil {
		b, err := f.collect(ctx, wait)
		if err == nil {
			return b, nil
		}
		f.err = err
	}
	return mutation.Batch{}, f.err
}

func (f *Feed) collect(ctx context.Context, wait time.Duration) (mutation.Batch, error) {
	var b mutation.Batch
	var letters []deadletter.Letter
	f.traced = nil
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
			b.Statements, b.Mutations = c.statements, c.mutations
		} else {
			b.Statements = append(b.Statements, c.statements...)
			b.Mutations = append(b.Mutations, c.mutations...)
		}
		b.Bytes += c.bytes
		b.Lost = append(b.Lost, c.lost...)
		if c.last.Fingerprint != "" {
			if b.Last == nil {
				b.Last = map[string]mutation.Record{}
			}
			b.Last[c.topic] = c.last
		}
		letters = append(letters, c.letters...)
		f.traced = append(f.traced, c.traced...)
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
	}
	for _, l := range letters {
		f.metrics.count(l.Code)
	}
	if f.log != nil {
		f.log.Add(letters...)
	}
	f.metrics.Records.Add(int64(records))
	f.metrics.Bytes.Add(b.Bytes)
	b.Next = maps.Clone(f.next)
	b.CaughtUp = f.caughtUp()
	return b, nil
}

// Traced returns the records that are followed of the batch that Next has returned last. Their spans are open.
func (f *Feed) Traced() []*recordtrace.Record { return f.traced }

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

// caughtUp reports whether every topic has answered and everything it had at its last answer has
// been returned.
func (f *Feed) caughtUp() bool {
	for _, s := range f.sources {
		at, started := f.next[s.reader.Topic]
		end, answered := s.end()
		if !started || !answered || at < end {
			return false
		}
	}
	return true
}

// Ends returns, for each topic that has answered, where the topic ended at its last answer, with
// records that open transactions hold back. It may be called during Next.
func (f *Feed) Ends() map[string]int64 {
	ends := map[string]int64{}
	for _, s := range f.sources {
		if end, answered := s.logEnd(); answered {
			ends[s.reader.Topic] = end
		}
	}
	return ends
}

// Held returns, for each topic that has answered, how many offsets at its end an open transaction of a producer held
// back at its last answer. It may be called during Next.
func (f *Feed) Held() map[string]int64 {
	held := map[string]int64{}
	for _, s := range f.sources {
		end, answered := s.end()
		if logEnd, _ := s.logEnd(); answered {
			held[s.reader.Topic] = max(0, logEnd-end)
		}
	}
	return held
}

// Close stops the feed and waits for its goroutines.
func (f *Feed) Close() error {
	f.cancel()
	f.done.Wait()
	return f.letters.Close()
}
