package shard

import "github.com/cockroachdb/pebble/v2/vfs"

// Simulated returns the options for the simulation: the state lies on a file system in memory, so that a machine can
// lose its power, and files are transferred one after another, so that chance alone decides the order of calls.
func (o Options) Simulated(fs vfs.FS) Options {
	o.fs, o.transfers = fs, 1
	return o
}
