// Package process says which process of a machine this is.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Name names this process in manifests and leases, for their readers.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// ID identifies this process among all that ever run on this machine: boot, pid namespace,
// pid, start time. It is "" where the system does not provide these (other than Linux).
func ID() string {
	place := processPlace()
	started, err := processStart(os.Getpid())
	if place == "" || err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", place, os.Getpid(), started)
}

// processPlace is the scope in which pids are unique: this boot and this pid namespace.
func processPlace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(namespace, "pid:[]")
}

// Ended reports whether the process with this id has certainly ended. It is false for
// processes of other machines, about which nothing is known.
func Ended(id string) bool {
	parts := strings.Split(id, "/")
	if len(parts) != 4 || strings.Join(parts[:2], "/") != processPlace() {
		return false
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil || pid < 1 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }() // a handle, not the process
	if err := p.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return true
	}
	started, err := processStart(pid)
	return err == nil && started != parts[3]
}

// processStart returns when a process was started, in clock ticks since boot, or "ended" for a
// zombie.
func processStart(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// "pid (command) state …": the command may hold anything, the rest is split by spaces; proc(5)
	// counts state as field 3, the start time as 22.
	_, rest, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return "ended", nil
	}
	return string(fields[19]), nil
}

// leastOpenFiles is how many open files a pipeline needs. The quickstart, with the embedded broker, needs between 160
// and 200, and each further shard, sink and reader of the HTTP server some more.
const leastOpenFiles = 512

// CheckOpenFiles returns an error that says what to do if this process may not open enough files. What fails for want
// of them says so in many ways, or not at all: the embedded broker answers with an unknown error.
func CheckOpenFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil //nolint:nilerr // not every system says so
	}
	if limit.Cur >= leastOpenFiles {
		return nil
	}
	return fmt.Errorf("this process may have %d files open, and needs %d: raise the limit (ulimit -n 65536, "+
		"LimitNOFILE= of systemd, --ulimit nofile= of a container), then start again", limit.Cur, leastOpenFiles)
}
