// Package shard turns the mutations of one partition of the graph into committed batches of rows,
// exactly once. Open reads where the commit log stands, Run applies batches of a Feed from Next on
// and commits windows, and Close lets go of the state. The example shows one window.
//
// After any error a Shard does nothing more: close it, and open it again. ErrFenced means that
// another worker owns the shard now.
//
// docs/PROTOCOL.md tells the whole protocol and why it is right, with diagrams. In short:
//
// # Facts
//
// The state is a function of the set of mutations applied: every fact is a register in which the
// highest version wins, so order, repetitions, batches and windows make no difference. An edge has
// one register per family (node records with inlined edges, edge records) on the side of its source
// and, in an undirected graph, one for the mirrored assertion on the other side. A row is due when
// it changes, and only then.
//
// # Windows
//
// What a window changes stays in memory until its manifest exists, and is then written to the state
// in one batch. A window that outgrows its share of memory is written before (spilled), together
// with its marks and the applied offsets; headers and marks of its nodes stay in memory as far as
// there is room, so that they need not be looked up again. The engine keeps no log: what it had not flushed when the
// process ended is read from the topics again.
//
// # Commit
//
// A window closes synchronously: nothing is applied between the first row built and the manifest
// created.
//
//  1. Rows of the due nodes are written, under names that no other session uses.
//  2. The mirror is flushed.
//  3. The manifest is created under the next sequence number, which must be free. It is the commit.
//     A worker that finds the number taken has been fenced (ErrFenced) and stops.
//  4. The window is written to the state, and its marks are cleared.
//
// # Restart
//
// Whatever the state on disk holds, a worker reads each topic from the lower of two offsets, the
// head's and the state's, and commits nothing until it has consumed every topic up to the higher.
// From there on the state is the graph of the records consumed. Marks of a state that holds nothing
// beyond the head are void. Marks of a state that holds more are kept, since the records that caused
// them come again and mark nothing; if another worker has committed meanwhile, all of them are due.
//
// There is no outbox for the mirror: the mirror of everything below a manifest's offsets is durable
// before the manifest, and records above come again and publish theirs again.
//
// # Checkpoints
//
// A shard copies its state to the store now and then, when the state stands exactly at the head.
// Open takes up the newest whole checkpoint if the local state lacks a record that it has. Package
// commitlog has the documents, and the rules of removing old ones.
package shard
