package client

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

// Pauses between attempts, doubled each time.
const (
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

// retry asks until there is an answer, for as long as what is wrong can pass
// and at most until a request would time out.
func retry[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	pause := minPause
	for {
		out, err := ask(ctx)
		if err == nil || !Passing(err) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}

// Passing reports whether an error can pass by itself: brokers that are away,
// leaders that move, networks. What a broker refuses for good, and what the
// caller has to mend, is not.
func Passing(err error) bool {
	var k kafka.Error
	if errors.As(err, &k) {
		// kafka-go calls it Unknown when a broker breaks off a request that was
		// spread over several.
		return k.Temporary() || errors.Is(k, kafka.Unknown)
	}
	return !errors.Is(err, ErrNoTopic) && !errors.Is(err, ErrPartitions) && !errors.Is(err, ErrOffsetOutOfRange)
}
