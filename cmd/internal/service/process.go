package service

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processID identifies this process among all that ever run on this machine:
// boot, pid namespace, pid, start time. It is "" where the system (other than
// Linux) does not tell.
func processID() string {
	place := processPlace()
	started, err := processStart(os.Getpid())
	if place == "" || err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", place, os.Getpid(), started)
}

// processPlace is within what pids are unique: this boot, this namespace.
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

// processEnded reports whether the process that another called processID for
// has certainly ended. Of processes of other machines nothing is certain.
func processEnded(id string) bool {
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

// processStart returns when a process was started, in clock ticks since boot,
// or "ended" for one that its parent has not yet taken notice of.
func processStart(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// "pid (command) state …": the command may hold anything, the rest is
	// split by spaces; proc(5) counts state as field 3, the start time as 22.
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
