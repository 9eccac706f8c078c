package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/internal/retry"
)

var (
	// errNoPartition: the topic has fewer partitions than the reader needs.
	errNoPartition = errors.New("topic has no partition")
	// ErrTruncated: the topic ends before an offset that was already consumed.
	ErrTruncated = errors.New("topic is shorter than what was consumed from it")
)

const (
	// fetchBytes is how much one fetch of a reader asks for.
	fetchBytes = 1 << 20
	// fetchWait is how long the broker holds a fetch when there is nothing.
	fetchWait = time.Second

	minReadPause = 50 * time.Millisecond
	maxReadPause = 5 * time.Second
)

// Oldest, as a reader's offset, begins with the oldest record of the partition.
const Oldest int64 = -1

// Reader reads one partition in order, from an offset on, until the context of Run ends. Set the
// exported fields before Run. Only End, LogEnd and Failing may be called during Run.
type Reader struct {
	Client    *Client
	Topic     string
	Partition int
	// Offset is the next to read, or Oldest.
	Offset int64
	// FollowRecreated continues with the oldest record of a topic that ends before Offset. Without
	// it such a topic is an error, ErrTruncated: it is not the topic that was consumed.
	FollowRecreated bool
	// OnLost, if set, gets the offsets, from included and to not, whose records were deleted before
	// they were read.
	OnLost func(from, to int64)
	// OnRetry, if set, is called for every failure that is not final.
	OnRetry func()
	// Log names the topic and the partition in its attributes.
	Log *slog.Logger

	// answer is the last one; some of it may be left to read.
	answer *answer

	// end and logEnd are Stable and HighWater of the last answer, plus one; 0 before the first.
	end, logEnd atomic.Int64
	failing     retry.Failing
}

// Failing returns since when no fetch has succeeded, and why; nil while fetches succeed.
func (r *Reader) Failing() (since time.Time, err error) { return r.failing.First() }

// End returns where what could be read of the partition ended when the broker answered last; known is
// false before the first answer.
func (r *Reader) End() (offset int64, known bool) {
	end := r.end.Load()
	return end - 1, end > 0
}

// LogEnd returns where the partition ended when the broker answered last, with the records of open
// transactions; known is false before the first answer.
func (r *Reader) LogEnd() (offset int64, known bool) {
	end := r.logEnd.Load()
	return end - 1, end > 0
}

// Run calls handle with each answer, or a part of it, which may have no records, and moves on when
// handle returns nil. handle may keep keys, values and headers, but not the slice of records. After a
// failure of a fetch or of handle it pauses and fetches the same records again. It
// returns when ctx ends, with ctx.Err(), or when an error is final (IsRetryable).
func (r *Reader) Run(ctx context.Context, handle func(context.Context, Fetched) error) error {
	pause := retry.Backoff{Min: minReadPause, Max: maxReadPause}
	user := fmt.Sprintf("%s/%d", r.Topic, r.Partition)
	defer func() { r.Client.outage.EndFailure(user, time.Now()) }()
	for ctx.Err() == nil {
		got, err := r.fetch(ctx)
		r.failing.Note(err, time.Now())
		if err == nil {
			err = handle(ctx, got)
		}
		recycle(got.Records)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			r.Offset = got.Next
			pause.Reset()
			if lasted, over := r.Client.outage.EndFailure(user, time.Now()); over {
				r.Log.Warn("all partitions are read again", "after", lasted.Round(time.Millisecond))
			}
		case !IsRetryable(err):
			return err
		default:
			if r.OnRetry != nil {
				r.OnRetry()
			}
			wait := pause.Next()
			level := slog.LevelDebug
			if r.Client.outage.Failed(user, time.Now()) {
				level = slog.LevelWarn // the others are like it
			}
			r.Log.Log(ctx, level, "reading failed, trying again until it succeeds", "brokers", r.Client.Brokers(),
				"offset", r.Offset, "wait", wait, "error", err)
			_ = retry.Sleep(ctx, wait) // the loop looks at ctx
		}
	}
	return ctx.Err()
}

// roomForRecords is what readers decode records into: a fifth of a kilobyte for each record, which would
// be most of what reading small records allocates.
var roomForRecords = sync.Pool{New: func() any { return new([]kafka.Message) }}

// recycle gives room back, or the larger one that the records were put into.
func recycle(records []kafka.Message) {
	if cap(records) > 0 {
		clear(records)
		roomForRecords.Put(&records)
	}
}

// fetch returns the next records, or none and the offset to continue at.
func (r *Reader) fetch(ctx context.Context) (Fetched, error) {
	if r.Offset < 0 {
		oldest, _, err := r.bounds(ctx)
		return Fetched{Next: oldest}, err
	}
	if r.answer == nil || !r.answer.more() || r.answer.next != r.Offset {
		wait := fetchWait
		if _, known := r.End(); !known {
			wait = time.Millisecond // learn the end of the topic at once
		}
		var err error
		if r.answer, err = r.Client.fetch(ctx, r.Topic, r.Partition, r.Offset, fetchBytes, wait); err != nil {
			r.answer = nil
			if errors.Is(err, ErrOffsetOutOfRange) {
				next, err := r.outOfRange(ctx)
				return Fetched{Next: next}, err
			}
			return Fetched{}, err
		}
	}
	r.answer.room = *roomForRecords.Get().(*[]kafka.Message)
	got, err := r.answer.read(ctx)
	r.answer.room = nil
	if err == nil {
		r.end.Store(got.Stable + 1)
		r.logEnd.Store(got.HighWater + 1)
	}
	return got, err
}

// outOfRange returns the offset to continue at when the broker does not have the next one.
func (r *Reader) outOfRange(ctx context.Context) (int64, error) {
	oldest, end, err := r.bounds(ctx)
	if err != nil {
		return 0, err
	}
	at := r.Offset
	switch {
	case at < oldest:
		if r.OnLost != nil {
			r.OnLost(at, oldest)
		}
		r.Log.Error("records were deleted before they were read; continuing with the oldest one left. "+
			"Raise the topic's retention, and backfill what is missing", "from", at, "to", oldest-1, "lost", oldest-at)
		return oldest, nil
	case at > end && r.FollowRecreated:
		r.Log.Error("the topic ends before what was read from it, so it was created again; "+
			"continuing with its oldest record", "from", at, "to", oldest)
		return oldest, nil
	case at > end:
		return 0, fmt.Errorf("kafka topic %q, partition %d: %w: it ends at offset %d, the next to read is %d",
			r.Topic, r.Partition, ErrTruncated, end, at)
	}
	return 0, fmt.Errorf("kafka topic %q, partition %d: offset %d is in [%d, %d], but the broker refuses it",
		r.Topic, r.Partition, at, oldest, end)
}

// bounds returns the offset of the oldest record and that of the next one to be written.
func (r *Reader) bounds(ctx context.Context) (oldest, end int64, err error) {
	first, err := r.Client.FirstOffsets(ctx, r.Topic)
	if err != nil {
		return 0, 0, err
	}
	last, err := r.Client.LogEndOffsets(ctx, r.Topic)
	if err != nil {
		return 0, 0, err
	}
	if p := r.Partition; p < len(first[r.Topic]) && p < len(last[r.Topic]) {
		return first[r.Topic][p], last[r.Topic][p], nil
	}
	now, err := r.Client.Identify(ctx, r.Topic)
	if err != nil {
		return 0, 0, err
	}
	if r.Partition < now[r.Topic].Partitions { // it was added after kafka-go has asked for the metadata that it keeps
		r.Client.transport.CloseIdleConnections()
		return 0, 0, fmt.Errorf("kafka topic %q: the metadata of partition %d have not arrived yet", r.Topic,
			r.Partition)
	}
	return 0, 0, fmt.Errorf("kafka topic %q: %w %d", r.Topic, errNoPartition, r.Partition)
}
