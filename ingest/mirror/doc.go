// Package mirror carries the assertions of an undirected graph to the shard of
// the far end. The owner of s → d publishes, keyed by d, a record that says "s
// asserts (takes back) the edge to d", with the version of the original record; the shard of d reads it as
// stream.MirrorPut or stream.MirrorDelete. The key is hashed like that of any
// node record, so the record lands in the partition of d's shard.
//
// The topic is internal: its format (docs/format/input.md) may change with any
// version of the program, and it must not be written to by others.
package mirror
