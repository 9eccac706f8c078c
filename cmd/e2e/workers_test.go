package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"giantstream/cmd/internal/service/refreshing"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/sink/lease"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// workers are processes that share a pipeline: one broker, one store, and a state directory each.
type workers struct {
	place
	settings string // all but the state directory
	dir      string
}

func newWorkers(t *testing.T) *workers {
	t.Helper()
	b, err := broker.Start(broker.Options{Dir: filepath.Join(t.TempDir(), "broker")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return newWorkersAt(t, b.Addrs()[0])
}

// newWorkersAt is newWorkers on a running broker.
func newWorkersAt(t *testing.T, addr string) *workers {
	t.Helper()
	dir := t.TempDir()
	c, err := client.New(client.Options{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	store := filepath.Join(dir, "store")
	settings := smallConfig + fmt.Sprintf("store: \"file://%s\"\nkafka: {brokers: [%q]}\n", filepath.ToSlash(store), addr)
	return &workers{place: place{store: openStore(t, store), client: c, embeddings: "embeddings",
		deadLetters: "test.dead-letters"},
		settings: settings, dir: dir}
}

// start starts one worker.
func (w *workers) start(t *testing.T, name, settings string, flags ...string) *worker {
	t.Helper()
	p := start(t, append([]string{"run", "-c", w.config(t, name, settings)}, flags...)...)
	exit := make(chan int, 1)
	go func() { exit <- p.wait(nil, nil) }()
	return &worker{p, p.cmd.Process.Pid, filepath.Join(w.dir, name), exit}
}

// config writes the configuration of one worker.
func (w *workers) config(t *testing.T, name, settings string) string {
	t.Helper()
	return writeFile(t, filepath.Join(w.dir, name+".yaml"),
		w.settings+fmt.Sprintf("state_dir: %q\n", filepath.ToSlash(filepath.Join(w.dir, name)))+settings)
}

// worker is one of the processes.
type worker struct {
	*process
	pid   int
	state string
	exit  <-chan int
}

// kill ends the worker without warning.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if code := <-w.exit; code != -1 {
		t.Fatalf("exit code %d of a killed process\n%s", code, w.log())
	}
}

// stop asks the worker to end.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if code := <-w.exit; code != 0 {
		t.Errorf("exit code %d of a process that was asked to stop\n%s", code, w.log())
	}
}

// hasShards reports whether the worker was given any.
func (w *worker) hasShards() bool {
	shards, err := os.ReadDir(w.state)
	return err == nil && len(shards) > 0
}

// until polls until the condition holds, for as long as a run may take.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(longest)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("still not: %s", what)
		case <-tick.C:
		}
	}
}

// committed reports whether a worker has committed anything.
func (w *workers) committed(t *testing.T, by *worker) bool {
	t.Helper()
	for shard := range 3 {
		for m, err := range commitlog.Manifests(t.Context(), w.store, shard, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(m.Writer, fmt.Sprintf("-%d-", by.pid)) {
				return true
			}
		}
	}
	return false
}

// builds reports whether a worker holds the refresh lease.
func (w *workers) builds(t *testing.T, by *worker) bool {
	t.Helper()
	r, err := lease.Newest(t.Context(), w.store, refreshing.RefreshLease)
	if err != nil {
		t.Fatal(err)
	}
	return r != nil && !r.Released && strings.HasSuffix(r.Holder, fmt.Sprintf("-%d", by.pid))
}

// published reports whether the sink has generation 1 and all that was committed.
func (w *workers) published(t *testing.T) bool {
	t.Helper()
	if _, err := generation.Current(t.Context(), w.store); errors.Is(err, generation.ErrNone) {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	for shard := range 3 {
		head, err := commitlog.Head(t.Context(), w.store, shard)
		if err != nil {
			t.Fatal(err)
		}
		at, err := commitlog.LoadPublished(t.Context(), w.store, shard)
		if err != nil {
			t.Fatal(err)
		}
		if head == nil || at.Generation < 1 || at.Seq < head.Seq {
			return false
		}
	}
	return true
}

// Two processes share the shards, and one of them is killed while it reads. Two more join, and the
// one that builds the generation is killed during the build. The remaining processes take over, and
// the outcome is that of a single, undisturbed process.
func TestWorkersShareAndTakeOver(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the broker to notice that a worker has died")
	}
	t.Parallel()
	h := newAuthor(5, 3000).beginning()
	inputs := h.write(t, t.TempDir())
	alone := t.TempDir()
	single := writeFile(t, filepath.Join(alone, "single.yaml"), smallConfig)
	succeed(t, append([]string{"run", "-c", single, "--store", alone, "--until-idle"}, inputs...)...)

	// The first two build no generation: there would be one before all is sent.
	const streamOnly = "refresh: {min_nodes: 1000000}\n"
	w := newWorkers(t)
	a, b := w.start(t, "a", streamOnly), w.start(t, "b", streamOnly)
	until(t, "both have shards", func() bool { return a.hasShards() && b.hasShards() })
	succeed(t, append([]string{"backfill", "-c", filepath.Join(w.dir, "a.yaml")}, inputs...)...)
	until(t, "both have committed", func() bool { return w.committed(t, a) && w.committed(t, b) })
	a.kill(t)

	builder, heir := w.start(t, "c", ""), w.start(t, "d", "")
	until(t, "a generation is being built", func() bool {
		if w.builds(t, heir) {
			builder, heir = heir, builder
		}
		return w.builds(t, builder)
	})
	builder.kill(t)
	until(t, "the embeddings of everything are published", func() bool { return w.published(t) })
	b.stop(t)
	heir.stop(t)

	w.checkLog(t)
	got := w.outcome(t)
	checkGraph(t, got.rows, graphOf(h))
	checkSame(t, got, readOutcome(t, alone))
}
