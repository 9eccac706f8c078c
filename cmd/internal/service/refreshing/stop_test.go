package refreshing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/config"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
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

// A store that is away for an hour is a line a minute, and one when it is back.
func TestAnOutageOfTheStoreIsALineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began := time.Now()
		store := &memstore.Store{Fail: func(string, string) error {
			if time.Since(began) < time.Hour {
				return errors.New("no answer")
			}
			return nil
		}}
		var log bytes.Buffer
		r := &Refresh{Config: &config.Config{}, Store: store, Served: &generation.Served{},
			Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&log, nil))}
		r.Open()
		go func() { _ = r.Run(ctx) }()
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		failing := bytes.Count(log.Bytes(), []byte("cannot look for a newer generation"))
		if failing < 30 || failing > 61 || !bytes.Contains(log.Bytes(), []byte("succeeds again")) {
			t.Errorf("%d lines of the outage in %s", failing, &log)
		}
	})
}
