// Package peak measures how much memory a piece of a test takes, in a process of its own.
//
// The memory is the greatest resident size, as the system counts it: Go's heap with what was freed and not yet
// given back, stacks, memory of the runtime, and the program itself.
package peak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"giantstream/internal/race"
)

// childEnv names the file that a child reads. It is set in children alone.
const childEnv = "GIANTSTREAM_PEAK_INPUT"

// report precedes the MiB in what a child prints.
const report = "resident at most, in MiB: "

// Measure runs do on what input returns, in another process, and returns the MiB that this process had resident
// at most. It fails the test if the process fails. The input is made in the test's own process, so that
// making it costs the other nothing.
//
// The other process runs the same test of the same binary: it ends when do returns. A test therefore calls Measure
// once, before anything that is large. Measure logs what it saw. It skips the test where the size of a process is
// not known, and under the race detector, which multiplies it.
func Measure(t *testing.T, input func() []byte, do func(data []byte)) (mib int64) {
	t.Helper()
	if path := os.Getenv(childEnv); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		do(data)
		if t.Failed() {
			t.FailNow()
		}
		t.Skipf("%s%d", report, highWater(t)) // the caller compares in the first process
	}
	if runtime.GOOS != "linux" || race.Enabled {
		t.Skip("the resident size of a process is measured on Linux, and without the race detector")
	}
	path := filepath.Join(t.TempDir(), "input")
	data := input()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", pattern(t.Name()))
	child.Env = append(os.Environ(), childEnv+"="+path)
	start := time.Now()
	out, err := child.CombinedOutput()
	took := time.Since(start)
	_, said, ended := strings.Cut(string(out), report)
	if n, scanErr := fmt.Sscan(said, &mib); err != nil || !ended || n != 1 {
		t.Fatalf("on %d bytes the other process ends with %v, %v:\n%s", len(data), err, scanErr, out)
	}
	t.Logf("%d bytes: %d MiB resident, %.1f s", len(data), mib, took.Seconds())
	return mib
}

// highWater returns the greatest resident size that this process had, in MiB. Its parent cannot ask for it
// (getrusage): there, the size of the parent at the fork counts as well.
func highWater(t *testing.T) (mib int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(after, "%d kB", &mib); err != nil {
		t.Fatalf("the resident size of this process is unknown: %v", err)
	}
	return mib >> 10
}

// pattern matches a test's name alone. Spaces are underscores in it already.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts, "/")
}
