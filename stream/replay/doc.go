// Package replay computes the rows of a graph from a selection of mutations, by the code that computes them in a
// running pipeline: shards with their states in a folder. Nothing of a replay is kept, and no topic is written.
//
// Assertions for the far ends of edges go from shard to shard through temporary files. They cannot come from the mirror
// topic: that holds what was effective when it was written, and with other mutations other assertions are effective.
package replay
