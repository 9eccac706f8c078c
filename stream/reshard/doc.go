// Package reshard writes a pipeline with another number of shards, or without nodes that are to be forgotten: the store
// of a stopped pipeline becomes a new store. docs/PROTOCOL.md, "Another number of shards", says why that is sound.
package reshard
