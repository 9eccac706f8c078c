package service

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
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

// The folder of the embedded broker's log was removed, or is another's. Only files that are sent again make up for it;
// otherwise a service starts when a person has accepted the loss.
func TestAnotherEmbeddedBrokerIsNotAcceptedWithoutFiles(t *testing.T) {
	store := &memstore.Store{}
	t.Run("fill", func(t *testing.T) {
		s, cfg := testService(t, store)
		produceGraph(t, s, cfg)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	topics := wiring.TopicsOf(configured(t)).Inputs()
	for _, c := range []struct {
		what    string
		options Options
		refused bool
	}{
		{"neither files nor acceptance", Options{}, true},
		{"files", Options{Resent: true}, false},
		{"accepted", Options{AcceptLoss: topics}, false},
	} {
		o := c.options
		o.Config, o.Store, o.Roles = configured(t), store, Roles{Stream: true}
		var log bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(s.Drain(t.Context()), s.Close())
		told := strings.Contains(log.String(), "a topic is not the one that was read before")
		if errors.Is(err, shard.ErrInputReplaced) != c.refused || !c.refused && err != nil || told == c.refused {
			t.Errorf("%s: %v, and the log: %s", c.what, err, log.String())
		}
	}
}

// A shard that waits to be started again is no shard that is ready.
func TestServiceIsNotReadyWhileAShardIsStopped(t *testing.T) {
	s, cfg := testService(t, &memstore.Store{}, listen(t))
	eventually(t, "the service is ready", func() bool { code, _ := get(t, cfg, "/readyz"); return code == 200 })
	s.ingest.Watches.Stopped(1, shard.ErrDiskFull)
	if code, body := get(t, cfg, "/readyz"); code != 503 || !strings.Contains(body, "shard 1 has stopped") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := get(t, cfg, "/healthz"); code != 200 {
		t.Errorf("health is %d: a restart gives no space", code)
	}
}
