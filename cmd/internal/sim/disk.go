package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is a machine's file system. Unlike that of a MemFS, its List has an order.
type disk struct{ *vfs.MemFS }

func newDisk() disk { return disk{vfs.NewCrashableMem()} }

// List implements vfs.FS.
func (d disk) List(dir string) ([]string, error) {
	names, err := d.MemFS.List(dir)
	slices.Sort(names)
	return names, err
}

// afterKill is what a killed process leaves: all that it has written.
func (d disk) afterKill(r *rand.Rand) disk {
	return disk{d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: r})}
}

// afterPowerLoss is what a machine finds that has lost its power: what was synced.
func (d disk) afterPowerLoss() disk { return disk{d.CrashClone(vfs.CrashCloneCfg{})} }
