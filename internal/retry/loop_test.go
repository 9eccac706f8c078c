package retry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"giantstream/internal/retry"
)

const errGone = retry.FinalError("the table is gone")

// refusal is final for some statuses.
type refusal int

func (r refusal) Error() string { return fmt.Sprintf("status %d", int(r)) }
func (r refusal) Final() bool   { return r == 403 }

func TestFinal(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("away"), false},
		{errGone, true},
		{fmt.Errorf("write: %w", errGone), true},
		{refusal(403), true},
		{refusal(503), false},
		{fmt.Errorf("%w: %w", refusal(503), errGone), true},
		{errors.Join(errors.New("away"), fmt.Errorf("write: %w", refusal(403))), true},
	} {
		if got := retry.Final(tt.err); got != tt.want {
			t.Errorf("%v: final is %t", tt.err, got)
		}
	}
}

type counts struct{ retried, recovered int }

func (c *counts) Retried()   { c.retried++ }
func (c *counts) Recovered() { c.recovered++ }

func TestLoop(t *testing.T) {
	for _, tt := range []struct {
		name     string
		failures []error
		ends     time.Duration // of the context, 0 for never
		want     error
		counts   counts
		lines    []string
	}{
		{"at once", nil, 0, nil, counts{}, nil},
		{"after an outage", []error{refusal(503), refusal(503), refusal(503)}, 0, nil, counts{3, 1},
			[]string{`the index fails`, `the index answers again" after=700ms`}},
		{"a final error", []error{refusal(503), errGone}, 0, errGone, counts{1, 0}, []string{`the index fails`}},
		{"stopped", []error{refusal(503), refusal(503), refusal(503)}, 200 * time.Millisecond,
			context.DeadlineExceeded, counts{2, 0}, []string{`the index fails`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.ends > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.ends)
					defer cancel()
				}
				var log bytes.Buffer
				var got counts
				loop := retry.Loop{Service: "the index", Watch: &got, Log: slog.New(slog.NewTextHandler(&log, nil))}
				left := tt.failures
				err := loop.Do(ctx, "write", func(context.Context) error {
					if len(left) == 0 {
						return nil
					}
					err := left[0]
					left = left[1:]
					return err
				})
				if !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if got != tt.counts {
					t.Errorf("counted %+v, want %+v", got, tt.counts)
				}
				lines := strings.Split(strings.TrimSpace(log.String()), "\n")
				if log.Len() == 0 {
					lines = nil
				}
				if len(lines) != len(tt.lines) {
					t.Fatalf("logged %q", lines)
				}
				for i, want := range tt.lines {
					if !strings.Contains(lines[i], want) {
						t.Errorf("line %d is %q, want %q in it", i, lines[i], want)
					}
				}
			})
		})
	}
}
