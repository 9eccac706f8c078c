package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Roles in separate processes have the same results as one process with all roles. A worker that
// would embed only some of the shards is refused.
func TestRolesInProcessesOfTheirOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for groups to balance")
	}
	t.Parallel()
	h := newAuthor(7, 2000).beginning()
	inputs := h.write(t, t.TempDir())
	alone := t.TempDir()
	single := writeFile(t, filepath.Join(alone, "single.yaml"), smallConfig)
	succeed(t, append([]string{"run", "-c", single, "--store", alone, "--until-idle"}, inputs...)...)

	w := newWorkers(t)
	a := w.start(t, "a", "", "--roles", "stream")
	until(t, "a has shards", a.hasShards)
	if all := w.start(t, "all", ""); <-all.exit != 1 || !strings.Contains(all.log(), "role embed") {
		t.Errorf("a worker with all roles beside one that streams alone:\n%s", all.log())
	}
	succeed(t, append([]string{"backfill", "-c", filepath.Join(w.dir, "a.yaml")}, inputs...)...)
	b := w.start(t, "b", "", "--roles", "stream")
	refresh := w.start(t, "refresh", "", "--roles", "refresh", "--until-idle")
	embed := w.start(t, "embed", "", "--roles", "embed", "--until-idle")
	for _, p := range []*worker{refresh, embed} {
		if code := <-p.exit; code != 0 {
			t.Fatalf("exit code %d\n%s", code, p.log())
		}
		if p.hasShards() {
			t.Errorf("a process without role stream has state in %s", p.state)
		}
	}
	var status struct{ Lag struct{ Shards []int64 } }
	if err := json.Unmarshal([]byte(succeed(t, "status", "-c", filepath.Join(w.dir, "a.yaml"), "--json")),
		&status); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(status.Lag.Shards, []int64{0, 0, 0}) {
		t.Errorf("status shows a lag of %v when everything is committed", status.Lag.Shards)
	}
	a.stop(t)
	b.stop(t)
	w.checkLog(t)
	got := w.outcome(t)
	checkGraph(t, got.rows, graphOf(h))
	checkSame(t, got, readOutcome(t, alone))
}
