package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
)

// Brokers that are away, and leaders that move, are waited for; any other error ends the waiting.
func TestPollThroughAnOutage(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	final := errors.New("the commit log is damaged")
	for _, c := range []struct {
		meets []error
		want  error
	}{
		{[]error{kafka.NotLeaderForPartition, fmt.Errorf("listing: %w", refused), io.EOF, context.DeadlineExceeded}, nil},
		{[]error{kafka.NotLeaderForPartition, final}, final},
		{[]error{kafka.TopicAuthorizationFailed}, kafka.TopicAuthorizationFailed},
		{[]error{refused, ErrNoTopic}, ErrNoTopic},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			err := PollThrough(t.Context(), time.Second, slog.New(slog.DiscardHandler), func() (bool, error) {
				if asked == len(c.meets) {
					return true, nil
				}
				asked++
				return false, c.meets[asked-1]
			})
			if !errors.Is(err, c.want) || asked != len(c.meets) {
				t.Errorf("%v: %v after %d answers, want %v", c.meets, err, asked, c.want)
			}
		})
	}
}

func TestPollThroughEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := PollThrough(ctx, time.Second, slog.New(slog.DiscardHandler), func() (bool, error) { return false, io.EOF })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
