package process

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"giantstream/cmd/internal/service/servicetest"
)

func TestAProcessKnowsWhichOthersHaveEnded(t *testing.T) {
	self := ID()
	if self == "" {
		t.Skip("this system does not tell processes apart")
	}
	if Ended(self) {
		t.Errorf("this process, %s, is said to have ended", self)
	}
	// The same pid with another start time was given to this process since.
	parts := strings.Split(self, "/")
	if earlier := strings.Join(append(parts[:3:3], "1"), "/"); !Ended(earlier) {
		t.Errorf("%s is said to run, this is %s", earlier, self)
	}
	for _, unknown := range []string{"", "x", "other-boot/1/1/1", "a/b/c/d/e", parts[0] + "/0/" + parts[2] + "/1"} {
		if Ended(unknown) {
			t.Errorf("%q is said to have ended", unknown)
		}
	}
}

func TestAKilledProcessHasEndedBeforeItsParentKnows(t *testing.T) {
	place := processPlace()
	if place == "" {
		t.Skip("this system does not tell processes apart")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it may have been killed
	started, err := processStart(cmd.Process.Pid)
	if err != nil || started == "ended" {
		t.Skip("ended before it was looked at")
	}
	id := strings.Join([]string{place, strconv.Itoa(cmd.Process.Pid), started}, "/")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	servicetest.Eventually(t, "the killed process has ended", func() bool { return Ended(id) })
}

// A process that may not open enough files says so, and what to do.
func TestTooFewOpenFilesAreRefused(t *testing.T) {
	if err := CheckOpenFiles(); err != nil {
		t.Fatalf("the tests themselves: %v", err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Skip(err)
	}
	few := before
	few.Cur = leastOpenFiles - 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err := CheckOpenFiles()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Error(err)
	}
}
