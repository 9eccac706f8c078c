// Package stream holds no code. Its sub-packages turn records into committed rows, exactly once:
//
//	mutation    the vocabulary: mutations of the graph, their versions, batches
//	shard       one partition of the graph: state, windows, commit, restart, checkpoints
//	commitlog   what a shard leaves in the store: manifests, rows, cuts, compaction, orphans
//	publish     follows the commit log and publishes embeddings
//
// Input packages import mutation. Readers of the log import commitlog, which links no storage
// engine. Only a process that runs shards imports shard. docs/PROTOCOL.md tells the protocol from
// beginning to end.
package stream
