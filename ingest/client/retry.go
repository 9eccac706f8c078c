package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/internal/retry"
)

// retryUntilTimeout asks until there is an answer or the error is final, and at most until a
// request would time out.
func retryUntilTimeout[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	pause := retry.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second}
	for {
		out, err := ask(ctx)
		if err == nil || !IsRetryable(err) || pause.Wait(ctx) != nil {
			return out, err
		}
	}
}

// settledErrors are errors of this package and of kafka-go that the same request gets again. They are
// not final for all callers (retry.Final): a shard is started again, and asks for another offset, or
// finds the topic created.
var settledErrors = []error{
	ErrNoTopic, errNoPartition, ErrPartitions, ErrOffsetOutOfRange, ErrTruncated,
}

// retryableCodes are answers of a broker that pass, in addition to those that kafka-go calls
// temporary.
var retryableCodes = []kafka.Error{
	kafka.Unknown, // a broker's own failure
	// A member that the coordinator has dropped, or that came during a rebalance, joins the group
	// again.
	kafka.UnknownMemberId, kafka.IllegalGeneration, kafka.RebalanceInProgress, kafka.MemberIDRequired,
	kafka.BrokerNotAvailable, kafka.ReplicaNotAvailable,
}

// IsRetryable reports whether the same request may succeed later: brokers that are away, leaders
// that move, networks, rebalances. What a broker refuses for good is final, and so is what needs
// another request (ErrOffsetOutOfRange) or a person (ErrTruncated).
func IsRetryable(err error) bool {
	if retry.Final(err) {
		return false // of who handles the answer
	}
	if code, ok := errors.AsType[kafka.Error](err); ok {
		return code.Temporary() || slices.Contains(retryableCodes, code)
	}
	return !slices.ContainsFunc(settledErrors, func(settled error) bool { return errors.Is(err, settled) })
}

// PollThrough is retry.Poll for what waits for brokers to have done something: it goes on while they are away, or move
// their leaders, for longer than a request waits, and says so in the log.
func PollThrough(ctx context.Context, longest time.Duration, log *slog.Logger, done func() (bool, error)) error {
	return retry.Poll(ctx, longest, func() (bool, error) {
		ok, err := done()
		if err != nil && ctx.Err() == nil && isOutage(err) {
			log.Warn("the brokers do not answer, trying again until they do", "error", err)
			return false, nil
		}
		return ok, err
	})
}

func isOutage(err error) bool {
	if !IsRetryable(err) {
		return false
	}
	_, answered := errors.AsType[kafka.Error](err)
	_, network := errors.AsType[net.Error](err)
	return answered || network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
