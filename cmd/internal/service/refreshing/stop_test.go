package refreshing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"giantstream/sink/memstore"
)

// A look for generations that the end of the process has broken off is no failure.
func TestTheEndIsNoFailure(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	store := &memstore.Store{Fail: func(string, string) error {
		stop()
		return ctx.Err()
	}}
	var log bytes.Buffer
	r := &Refresh{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) || log.Len() > 0 {
		t.Errorf("%v, logged: %s", err, &log)
	}
}
