// Package recent keeps objects in memory that a process has just stored, so that other parts of the process need not
// read them from the store. A shard's worker writes a row object, for example, and a moment later the shard's follower
// reads it, and its compactor a minute later.
//
// A Cache is made for keys that are written once. It holds an object only after the store has acknowledged it, and
// does not notice when another process removes it: a caller that must know whether an object exists asks the store.
package recent
