// Package stage is what the Go halves of the benchmarks beside other programs
// share: what a stage takes, and the matrices that both halves read.
package stage

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Took is what a stage took: seconds, and MiB of resident memory before it
// (base) and at the most (peak).
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
	// The peak starts again (Documentation/filesystems/proc.rst).
	if err = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return t, err
	}
	if t.Base, err = resident("VmRSS"); err != nil {
		return t, err
	}
	cpu, begin := CPUSeconds(), time.Now()
	if err = stage(); err != nil {
		return t, err
	}
	t.Wall, t.CPU = time.Since(begin).Seconds(), CPUSeconds()-cpu
	t.Peak, err = resident("VmHWM")
	return t, err
}

// CPUSeconds is the processor time that this process has used.
func CPUSeconds() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

// resident returns a field of /proc/self/status in MiB.
func resident(field string) (float64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), field+":"); ok {
			var kib float64
			_, err := fmt.Sscan(rest, &kib)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", field)
}
