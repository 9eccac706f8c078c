// Package engine is the storage engine of a shard's local state: Pebble, and what keeps its
// failures apart from ours.
//
// Open opens a database whose log are the topics: it has no log of its own. It works on an FS,
// which notices a full or broken disk whatever the engine makes of it, and reports to a Guard.
// Every use of the database goes through Guard.Run, so that errors, panics, fatal messages and
// calls that never return all become one error: ErrDamaged, ErrDiskFull or ErrInUse. Failure says
// which of them an error of the engine means.
//
// The directory of a state is locked by Lock, checked before it is opened by CheckManifest and
// CheckSpace, and moved away by SetAside if it is damaged.
package engine
