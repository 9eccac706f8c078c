package shard

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fullDisk is a disk that runs out of space after some writes.
type fullDisk struct {
	mu     sync.Mutex
	writes int   // that still succeed; negative: all
	errno  error // of the others
	tells  bool  // whether the free space can be asked for

	refused int // files and writes
}

// wrap puts the disk's limit around a file system.
func (d *fullDisk) wrap(fs vfs.FS) vfs.FS {
	return tellingFS{errorfs.Wrap(fs, errorfs.InjectorFunc(d.fail)), d}
}

func (d *fullDisk) fail(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpMkdirAll, errorfs.OpFilePreallocate, errorfs.OpFileWrite,
		errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpFileSyncData:
	default:
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writes > 0 {
		d.writes--
	}
	if d.writes != 0 {
		return nil
	}
	if op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite {
		d.refused++
	}
	return d.errno
}

func (d *fullDisk) set(writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes = writes
}

func (d *fullDisk) isFull() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes == 0
}

// tellingFS says how much space is left, if the disk tells.
type tellingFS struct {
	vfs.FS
	disk *fullDisk
}

func (f tellingFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	switch {
	case !f.disk.tells:
		return vfs.DiskUsage{}, vfs.ErrUnsupported
	case f.disk.isFull():
		return vfs.DiskUsage{AvailBytes: stateReserveBytes - 1, TotalBytes: 1 << 40}, nil
	}
	return vfs.DiskUsage{AvailBytes: 1 << 39, TotalBytes: 1 << 40}, nil
}

// A disk that fills up at any write stops the shard with an error that says so. Once there is space
// again, the shard goes on, and its graph is that of an undisturbed run. No state is given up.
func TestFullDiskStopsAndGoesOn(t *testing.T) {
	rounds := roundsOf(60)
	stopped := 0
	for seed := range uint64(rounds) {
		h := newHealing(t, 5000+seed)
		h.checkpoints = seed%2 == 1
		h.full = &fullDisk{writes: -1, errno: syscall.ENOSPC, tells: seed%3 == 0}
		if seed%5 == 0 {
			h.full.errno = syscall.EDQUOT
		}
		for range 3 {
			h.send(80)
			for attempt := 0; ; attempt++ {
				if attempt == 20 {
					h.full.set(-1)
				}
				if attempt == 0 {
					h.full.set(h.rng.IntN(60))
				}
				err := h.runOnce(func() {
					if attempt < 20 {
						h.sometimes(func() { h.full.set(h.rng.IntN(200)) })
					}
				})
				if err == nil {
					break
				}
				if !errors.Is(err, ErrDiskFull) {
					t.Fatalf("seed %d: not the error of a full disk: %v", seed, err)
				}
				stopped++
				if attempt > 25 {
					t.Fatalf("seed %d: the shard does not go on: %v", seed, err)
				}
				h.sometimes(func() { h.full.set(-1) })
			}
			h.full.set(-1)
		}
		h.run(func() {})
		if h.check(); h.aside > 0 {
			t.Errorf("%d states were set aside because the disk was full", h.aside)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %q", seed, h.did)
		}
	}
	t.Logf("stopped %d times in %d runs", stopped, rounds)
	if stopped < rounds {
		t.Errorf("the disk was full only %d times", stopped)
	}
}

func (h *healing) sometimes(f func()) {
	if h.rng.IntN(4) == 0 {
		f()
	}
}

// A disk of which it can be asked is not written to once there is too little space.
func TestNothingIsWrittenToADiskThatIsNearlyFull(t *testing.T) {
	h := newHealing(t, 1)
	h.rng = rand.New(rand.NewPCG(1, 1))
	h.full = &fullDisk{writes: -1, errno: syscall.ENOSPC, tells: true}
	h.send(100)
	h.run(func() {})
	h.full.set(0)
	if err := h.runOnce(func() {}); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("got %v, want ErrDiskFull", err)
	}
	if h.full.refused > 0 {
		t.Errorf("%d writes were tried", h.full.refused)
	}
}
