// Package mirror carries the assertions of an undirected graph to the shard of the far end. The
// owner of the edge s → d publishes a record keyed by d: "s asserts the edge to d", or "s takes it
// back", with the version of the original record. The shard of d reads the record as
// mutation.MirrorPut or mutation.MirrorDelete. The key is hashed like that of any node record, so
// the record lands in the partition of d's shard.
//
// The topic is internal: only this program may write to it, and its format (docs/format/input.md)
// may change with any version of the program.
package mirror
