package refreshing

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/sink/memstore"
)

// contender is another process's view of the refresh lease; one that is impatient takes every other
// holder for dead.
func contender(t *testing.T, store sink.Store, impatient bool) *lease.Lease {
	t.Helper()
	l, err := lease.New(lease.Options{Store: store, Name: RefreshLease, Holder: "another",
		TTL: 50 * time.Millisecond, Ended: func(string) bool { return impatient }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestACommandIsToldWhoBuilds(t *testing.T) {
	store := &memstore.Store{}
	log := slog.New(slog.DiscardHandler)
	pipeline, err := contender(t, store, false).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, release := pipeline.Keep(t.Context())
	command, err := OpenLease(store, log)
	if err != nil {
		t.Fatal(err)
	}
	_, err = acquireLease(t.Context(), command, time.Millisecond, log)
	if !errors.Is(err, lease.ErrHeld) || !strings.Contains(err.Error(), "held by another") {
		t.Errorf("error %v", err)
	}
	release()

	// One that was killed is waited out.
	if _, err := contender(t, store, false).Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	held, err := acquireLease(t.Context(), command, time.Millisecond, log)
	if err != nil {
		t.Fatal(err)
	}
	if held.Number() != 3 {
		t.Errorf("number %d, want 3", held.Number())
	}
}
