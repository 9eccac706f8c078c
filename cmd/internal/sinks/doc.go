// Package sinks runs a sink: a source of records, the follower that brings them into a database, metrics and health.
// The source is the embeddings topic, or the store where no other process can reach the topic. The package joins both,
// which sink/vectordb does not know, to the databases.
//
// A sink keeps its offsets in its database, with the rows, and uses no consumer group. So a database that is restored
// from a backup continues from the backup's offsets.
package sinks
