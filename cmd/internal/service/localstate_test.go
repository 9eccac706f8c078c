package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/shard"
)

// A state that lost a file is set aside and built again. The metrics say so, and the service becomes
// ready.
func TestServiceBuildsDamagedStatesAgain(t *testing.T) {
	store, state, log := &memstore.Store{}, t.TempDir(), t.TempDir()
	places := func(c *config.Config) { c.StateDir, c.Kafka.DataDir = state, log }
	t.Run("fill", func(t *testing.T) {
		s, cfg := testService(t, store, places)
		produceGraph(t, s, cfg)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	markers, err := filepath.Glob(filepath.Join(state, "*", "marker.manifest.*"))
	if err != nil || len(markers) != 2 {
		t.Fatalf("markers %q: %v", markers, err)
	}
	if err := os.Remove(markers[0]); err != nil {
		t.Fatal(err)
	}
	s, cfg := testService(t, store, places, listen(t))
	eventually(t, "the service is ready", func() bool { code, _ := get(t, cfg, "/readyz"); return code == 200 })
	_, text := get(t, cfg, "/metrics")
	for name, want := range map[string]float64{
		"giantstream_states_set_aside_total": 1, "giantstream_shards_stopped": 0,
	} {
		if got, ok := sum(t, text, name, ""); !ok || got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if aside, err := filepath.Glob(filepath.Join(state, "*.damaged-1")); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %q, %v", aside, err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// A shard that waits to be started again is no shard that is ready.
func TestServiceIsNotReadyWhileAShardIsStopped(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, listen(t))
	eventually(t, "the service is ready", func() bool { code, _ := get(t, cfg, "/readyz"); return code == 200 })
	s.watches.stopped(1, shard.ErrDiskFull)
	if code, body := get(t, cfg, "/readyz"); code != 503 || !strings.Contains(body, "shard 1 has stopped") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := get(t, cfg, "/healthz"); code != 200 {
		t.Errorf("health is %d: a restart gives no space", code)
	}
}

// What only a person can mend ends a run that is to finish; a service waits for the person.
func TestWhatNeedsAPerson(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("open: %w", shard.ErrDiskFull), &os.PathError{Err: syscall.EACCES},
		&os.PathError{Err: syscall.EROFS},
		&sink.Error{Op: "put", Err: &os.PathError{Err: syscall.ENOSPC}},
	} {
		if !needsPerson(err) || retry.Final(err) {
			t.Errorf("%v: a run that is to finish goes on, or a service ends", err)
		}
	}
}

// What heals by itself may come again, but not at once and for ever.
func TestStreakEnds(t *testing.T) {
	damaged, other := fmt.Errorf("x: %w", shard.ErrStateDamaged), errors.New("broker away")
	var s streak
	for range 100 {
		if s.tooMany(damaged, 2*streakTime) || s.tooMany(damaged, time.Second) || s.tooMany(other, 0) {
			t.Fatal("ended although it came to work between")
		}
	}
	s = streak{}
	for n := 1; ; n++ {
		if s.tooMany(damaged, time.Second) {
			if n != streakMax {
				t.Errorf("ended after %d, want %d", n, streakMax)
			}
			return
		}
		if n > streakMax {
			t.Fatal("does not end")
		}
	}
}
