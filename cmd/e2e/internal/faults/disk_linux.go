package faults

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FillDisk limits the files that a process writes to the given number of bytes, as if its disk were
// full, until FreeDisk. Writing more fails with EFBIG.
func FillDisk(pid int, bytes uint64) error {
	return limitFiles(pid, bytes)
}

// FreeDisk undoes FillDisk.
func FreeDisk(pid int) error { return limitFiles(pid, unix.RLIM_INFINITY) }

func limitFiles(pid int, bytes uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return fmt.Errorf("file size limit of process %d: %w", pid, err)
	}
	limit.Cur = min(bytes, limit.Max)
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		return fmt.Errorf("file size limit of process %d: %w", pid, err)
	}
	return nil
}
