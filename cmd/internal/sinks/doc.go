// Package sinks runs a sink: readers of the embeddings topic, the follower that brings their records into a database,
// metrics and health. It joins Kafka, which sink/vectordb does not know, to the databases.
//
// A sink keeps its offsets in its database, with the rows, and uses no consumer group. So a database that is restored
// from a backup continues from the backup's offsets.
package sinks
