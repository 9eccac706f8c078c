// Package replay computes the rows of a graph from a selection of mutations, by the code that computes them in a
// running pipeline: shards with their states in a folder. A replay writes to no topic and keeps nothing.
//
// Assertions for the far ends of edges go from shard to shard through temporary files. They cannot come from the
// mirror topic: it holds the assertions that were effective when they were written, and other mutations make others
// effective.
package replay
