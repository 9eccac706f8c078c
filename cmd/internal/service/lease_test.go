package service

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/service/refreshing"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
)

// contender is another process's view of the refresh lease; one that is impatient takes every other
// holder for dead.
func contender(t *testing.T, store sink.Store, impatient bool) *lease.Lease {
	t.Helper()
	l, err := lease.New(lease.Options{Store: store, Name: refreshing.RefreshLease, Holder: "another",
		TTL: 50 * time.Millisecond, Ended: func(string) bool { return impatient }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOfTwoWorkersOneBuildsAndBothServe(t *testing.T) {
	store := &memstore.Store{}
	a, cfg := testService(t, store)
	second := *cfg
	second.Kafka.Brokers = a.Client().Brokers()
	second.StateDir = filepath.Join(t.TempDir(), "state")
	b, err := Start(t.Context(), Options{Config: &second, Store: store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	produceGraph(t, a, cfg)
	if err := a.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var built atomic.Int32
	var g errgroup.Group
	for _, s := range []*Service{a, b} {
		g.Go(func() error {
			doc, here, err := s.UpToDate(t.Context())
			if err != nil {
				return err
			}
			if here {
				built.Add(1)
			}
			if doc.Generation != 1 || s.served.Number() != 1 {
				t.Errorf("generation %d, serving %d; want 1", doc.Generation, s.served.Number())
			}
			return s.WaitPublished(t.Context())
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if built.Load() != 1 {
		t.Errorf("%d processes built the generation", built.Load())
	}
	if got := len(sinkTopic(t, a, cfg)); got != nodes {
		t.Errorf("%d nodes on the sink topic, want %d", got, nodes)
	}
}

// A builder that is taken for dead while it builds writes nothing more, and what it has begun is
// finished by others.
func TestABuilderThatLostItsLeaseStops(t *testing.T) {
	var (
		during func() // at the first write of the tree
		ready  bool   // something was written after the takeover
		taken  atomic.Bool
	)
	store := &memstore.Store{Fail: func(op, key string) error {
		switch {
		case op != "put" || !strings.HasPrefix(key, generation.Prefix(1)):
		case strings.HasSuffix(key, "/tree") && taken.CompareAndSwap(false, true):
			during() // this one write is past its check: it gets through
		case taken.Load():
			ready = true
		}
		return nil
	}}
	s, cfg := testService(t, store)
	produceGraph(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var thief *lease.Held
	during = func() {
		var err error
		if thief, err = contender(t, store, true).Acquire(t.Context()); err != nil {
			t.Error(err)
		}
	}
	_, err := s.refresh.BuildIf(t.Context(), s.refresh.Outdated)
	if !errors.Is(err, lease.ErrLost) || !s.refresh.Elsewhere(err) {
		t.Fatalf("refresh: %v, want ErrLost", err)
	}
	if ready {
		t.Error("the builder wrote on after it had lost the lease")
	}
	_, err = s.refresh.BuildIf(t.Context(), s.refresh.Outdated)
	if !errors.Is(err, lease.ErrHeld) || !s.refresh.Elsewhere(err) {
		t.Errorf("refresh: %v, want ErrHeld", err)
	}
	if err := thief.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	doc, _, err := s.UpToDate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if doc.Generation != 1 || doc.Status != generation.Ready {
		t.Errorf("generation %d is %s", doc.Generation, doc.Status)
	}
}
