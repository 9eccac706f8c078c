// Package stage is what the Go halves of the benchmarks beside other programs share: measuring a
// stage, and reading and writing the arrays that both halves use.
package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// Took is what a stage took: seconds, and MiB of resident memory before it (base) and at its peak.
type Took struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
	Base float64 `json:"base"`
	Peak float64 `json:"peak"`
}

// Measure runs a stage on a heap without garbage.
func Measure(stage func() error) (t Took, err error) {
	runtime.GC()
	debug.FreeOSMemory()
	// This resets the kernel's peak (Documentation/filesystems/proc.rst).
	if err = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return t, err
	}
	if t.Base, err = memory("self", "VmRSS"); err != nil {
		return t, err
	}
	cpu, begin := CPUSeconds(), time.Now()
	if err = stage(); err != nil {
		return t, err
	}
	t.Wall, t.CPU = time.Since(begin).Seconds(), CPUSeconds()-cpu
	t.Peak, err = PeakMiB("self")
	return t, err
}

// CPUSeconds is the processor time of this process so far, user and system.
func CPUSeconds() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

// PeakMiB is the peak resident memory of a process since its start or its last Measure. The process
// is named by its id, or "self".
func PeakMiB(process string) (float64, error) { return memory(process, "VmHWM") }

// memory returns a field of /proc/<process>/status in MiB.
func memory(process, field string) (float64, error) {
	data, err := os.ReadFile(filepath.Join("/proc", process, "status"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), field+":")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("%s of process %s: %w", field, process, err)
	}
	return kib / 1024, nil
}

// Profile runs f and writes a CPU profile of it to the file, or just runs f if path is empty.
func Profile(path string, f func() error) (err error) {
	if path == "" {
		return f()
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return f()
}

// Print writes a report as JSON to standard output, unless there was an error.
func Print(report any, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// Exit ends the program with status 1 if there was an error.
func Exit(program string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}
