package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	// batchRecords bounds a batch. kafka-go allocates room for that many records in each batch,
	// and most batches end by batchTimeout with fewer.
	batchRecords = 1024
	// batchBytes keeps a produced batch below the broker's default message.max.bytes (1,048,588).
	batchBytes = 900 << 10
	// batchTimeout is how long a batch waits to fill. kafka-go's default of one second would be the
	// latency of every flush.
	batchTimeout = 5 * time.Millisecond
	// maxPending bounds the bytes that wait for acknowledgement.
	maxPending = 8 << 20
	// recordOverhead is the memory that a pending record takes beyond its bytes: it is a kafka.Message
	// of the caller, and one in a batch.
	recordOverhead = 400
)

// Producer sends records in the background (Send) and lets the caller wait for all of them at once
// (Flush), or sends and waits in one call (Write). Records with the same key arrive in the order
// sent. The partition follows from the key (see Partition), or from the value if the key is nil. A
// Producer is safe for concurrent use. Delivery is at least once.
type Producer struct {
	queued *kafka.Writer // for Send
	large  *kafka.Writer // for Send, of records that no batch can hold
	direct *kafka.Writer // for Write

	mu      sync.Mutex
	change  *sync.Cond
	pending int64 // bytes
	err     error // the first failure since the last Flush
}

// ProducerOption changes what a producer does by default.
type ProducerOption func(*kafka.Writer)

// Zstd compresses batches.
func Zstd(w *kafka.Writer) { w.Compression = kafka.Zstd }

// BatchRecords bounds a batch to fewer records than usual, for producers that send a little to each of
// many partitions: kafka-go makes room for all of them in each batch.
func BatchRecords(n int) ProducerOption {
	return func(w *kafka.Writer) { w.BatchSize = min(w.BatchSize, n) }
}

// Attempts bounds how often a batch is sent; without it kafka-go's bound applies, which is 10.
func Attempts(n int) ProducerOption { return func(w *kafka.Writer) { w.MaxAttempts = n } }

// NewProducer returns a producer on this client's connections.
func (c *Client) NewProducer(options ...ProducerOption) *Producer {
	writer := func(records int, bytes int64) *kafka.Writer {
		w := &kafka.Writer{
			Addr:         c.addr,
			Transport:    &partitionCounts{RoundTripper: c.transport},
			Balancer:     kafka.BalancerFunc(balance),
			RequiredAcks: kafka.RequireAll,
			BatchSize:    records,
			BatchBytes:   bytes,
			BatchTimeout: batchTimeout,
			WriteTimeout: 30 * time.Second,
		}
		for _, option := range options {
			option(w)
		}
		return w
	}
	p := &Producer{
		queued: writer(batchRecords, batchBytes),
		large:  writer(1, 1<<30),
		direct: writer(batchRecords, batchBytes),
	}
	p.change = sync.NewCond(&p.mu)
	p.queued.Async, p.queued.Completion = true, p.completed
	return p
}

// ToPartition is the WriterData of a message that is sent to this partition, whatever its key.
type ToPartition int

// WithKey is the WriterData of a message that is sent to the partition of this key, whatever its own.
type WithKey string

func balance(m kafka.Message, partitions ...int) int {
	key := m.Key
	switch to := m.WriterData.(type) {
	case ToPartition:
		return int(to)
	case WithKey:
		key = []byte(to)
	}
	if key == nil {
		key = m.Value
	}
	return Partition(key, len(partitions))
}

// Send queues records; each names its topic. It blocks while too many bytes wait for
// acknowledgement. The caller must not change keys and values until Flush returns. The error may be
// that of an earlier record: what was sent since the last Flush may or may not have arrived.
func (p *Producer) Send(ctx context.Context, msgs ...kafka.Message) error {
	for len(msgs) > 0 {
		n, bytes := 0, int64(0)
		for n < len(msgs) && bytes < batchBytes {
			size := messageBytes(&msgs[n])
			if size > batchBytes {
				break
			}
			bytes += size
			n++
		}
		if n == 0 {
			if err := p.sendLarge(ctx, msgs[0]); err != nil {
				return err
			}
			msgs = msgs[1:]
			continue
		}
		if err := p.reserve(ctx, bytes); err != nil {
			return err
		}
		if err := p.queued.WriteMessages(ctx, msgs[:n]...); err != nil {
			p.release(bytes, nil)
			return produceError(msgs[0].Topic, err)
		}
		msgs = msgs[n:]
	}
	return nil
}

// sendLarge sends one record that no batch of the default size can hold. It keeps the order: all
// earlier records are acknowledged first, and it returns after the record itself is.
func (p *Producer) sendLarge(ctx context.Context, m kafka.Message) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	if err := p.large.WriteMessages(ctx, m); err != nil {
		return produceError(m.Topic, err)
	}
	return nil
}

// Write sends records and waits until all in-sync replicas have acknowledged them. Unlike Send with
// Flush it reports no other caller's failure, so goroutines may share the producer. Its order
// relative to Send is undefined. The error is a kafka.WriteErrors, one entry per record, where the
// brokers refused some.
func (p *Producer) Write(ctx context.Context, msgs ...kafka.Message) error {
	return p.direct.WriteMessages(ctx, msgs...)
}

// Flush waits until everything sent is acknowledged by all in-sync replicas and returns the first
// failure since the last Flush.
func (p *Producer) Flush(ctx context.Context) error {
	defer p.wakeOn(ctx)()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.pending > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.change.Wait()
	}
	err := p.err
	p.err = nil
	return err
}

// Close waits until what was sent is acknowledged or has failed, and stops the producer.
func (p *Producer) Close() error {
	return errors.Join(p.queued.Close(), p.large.Close(), p.direct.Close())
}

func (p *Producer) reserve(ctx context.Context, bytes int64) error {
	defer p.wakeOn(ctx)()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.pending > maxPending && p.err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.change.Wait()
	}
	if p.err != nil {
		return p.err
	}
	p.pending += bytes
	return nil
}

func (p *Producer) completed(msgs []kafka.Message, err error) {
	var bytes int64
	for i := range msgs {
		bytes += messageBytes(&msgs[i])
	}
	if err != nil && len(msgs) > 0 {
		err = produceError(msgs[0].Topic, err)
	}
	p.release(bytes, err)
}

func (p *Producer) release(bytes int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending -= bytes
	if p.err == nil {
		p.err = err
	}
	p.change.Broadcast()
}

// wakeOn wakes waiters when ctx ends, so that they look at it. Call stop when the wait is over.
func (p *Producer) wakeOn(ctx context.Context) (stop func()) {
	cancel := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.change.Broadcast()
	})
	return func() { cancel() }
}

func messageBytes(m *kafka.Message) int64 {
	n := len(m.Key) + len(m.Value) + recordOverhead
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

func produceError(topic string, err error) error {
	// WriteErrors holds an error per record and does not unwrap to any of them.
	if each, ok := errors.AsType[kafka.WriteErrors](err); ok {
		if i := slices.IndexFunc(each, func(e error) bool { return e != nil }); i >= 0 {
			err = each[i]
		}
	}
	if errors.Is(err, kafka.MessageSizeTooLarge) {
		return fmt.Errorf("kafka: producing to %q: %w (raise the topic's max.message.bytes, or lower the record "+
			"limit)", topic, err)
	}
	return fmt.Errorf("kafka: producing to %q: %w", topic, err)
}
