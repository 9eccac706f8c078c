package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"giantstream/sink/dirstore"
	"giantstream/stream/commitlog"
)

// TestLongLog runs the program on a log of GIANTSTREAM_MANIFESTS manifests, and says what that takes. Those
// after the first few have no rows, so that what is measured is the log.
func TestLongLog(t *testing.T) {
	t.Parallel()
	n := int64(envNumber(t, "GIANTSTREAM_MANIFESTS", 2000)) // each takes a file
	inputs, dir := t.TempDir(), t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"),
		strings.Replace(smallConfig, "shards: 3", "shards: 1", 1))
	args := func(command ...string) []string { return append(command, "-c", config, "--store", dir) }
	h := newAuthor(10, 200).beginning()
	succeed(t, slices.Concat(args("run", "--until-idle"), h.write(t, inputs))...)

	store, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := commitlog.Head(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	for head.Seq < n {
		next := *head
		next.Seq, next.Objects, next.Rows = head.Seq+1, nil, 0
		next.Follow(head)
		data, err := next.Encode("")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, commitlog.ManifestKey(0, next.Seq)), data, 0o600) // and no sync
		}
		if err != nil {
			t.Fatal(err)
		}
		head = &next
	}
	for _, what := range [][]string{{"status"}, {"status"}, {"run", "--until-idle"}, {"run", "--until-idle"}, {"status"}} {
		cmd := command(t, args(what...)...)
		start := time.Now()
		r := finish(t, cmd)
		if r.code != 0 {
			t.Fatalf("%q: exit code %d\n%s", what, r.code, r.stderr)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			t.Skip("no resource usage on this system")
		}
		t.Logf("%v on %d manifests: %.2f s, %.2f s of the processor, %d MiB resident", what, n,
			time.Since(start).Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
			usage.Maxrss>>10)
	}
	after, err := commitlog.Head(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	if after.Seq != head.Seq {
		t.Errorf("the log ends at %d, want %d", after.Seq, head.Seq)
	}
}
