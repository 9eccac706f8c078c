package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"giantstream/cmd/e2e/internal/faults"
	"giantstream/cmd/e2e/internal/program"
)

// binary is the program under test.
var binary string

// here is this package's folder. An S3 server in this process changes the working directory.
var here, _ = os.Getwd()

func TestMain(m *testing.M) {
	faults.ServeBroker() // if that is what this process was started for
	os.Exit(program.Test(m, &binary))
}

// longest is more than any run in these tests takes on a busy machine.
const longest = 3 * time.Minute

// command prepares a run of the program in an empty working directory, which is also its place for
// temporary files, so that files in unexpected places are found.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TMPDIR="+cmd.Dir)
	return cmd
}

// result is what a process that has ended leaves to its caller.
type result struct {
	stdout, stderr string
	code           int
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// run runs the program to its end, whatever its exit code.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, command(t, args...))
}

// succeed runs the program and wants exit code 0. It returns what the program printed.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := run(t, args...)
	if r.code != 0 {
		t.Fatalf("giantstream %q: exit code %d\n%s", args, r.code, r.stderr)
	}
	return r.stdout
}

// succeedJSON is succeed for commands that print JSON, decoded into v.
func succeedJSON(t *testing.T, v any, args ...string) {
	t.Helper()
	out := succeed(t, args...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		t.Fatalf("giantstream %q: %v\n%s", args, err, out)
	}
}

// writeFile writes a file for a test and returns its path.
func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// smallConfig makes a run of the test graphs take about a second: small windows, so that there are
// several, and few dimensions. Places are left to --store.
const smallConfig = `
pipeline: test
shards: 3
window: {changes: 100, time: 200ms}
ingest:
  nodes: {event_time: at}
  edges: {event_time: at}
featurize:
  projection_dim: 48
  tree: {leaf_size: 8, branching: 4}
embedding: {dim: 32}
train: {checkpoint_every: 1s}
evaluate: {probe_rates: [0.5]}
http: {listen: ""}
log: {format: json}
`

// longTraining trains for longer than checkpoints are apart, and leaves out what takes time but is
// not training.
const longTraining = `
pipeline: test
shards: 2
ingest:
  nodes: {event_time: at}
  edges: {event_time: at}
featurize:
  projection_dim: 256
embedding: {dim: 256}
train: {checkpoint_every: 100ms, epochs: 12}
evaluate: {holdout_edges: 0, probe_rates: []}
http: {listen: ""}
`
