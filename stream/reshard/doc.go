// Package reshard writes a pipeline with another number of shards: the store of a stopped pipeline becomes a
// new store, with the number of before where nodes are to be forgotten alone. docs/PROTOCOL.md, "Another number of shards", says why that is sound.
package reshard
