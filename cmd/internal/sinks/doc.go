// Package sinks runs a sink: readers of the embeddings topic, the follower that brings their records into a database,
// metrics and health. It is where Kafka, which sink/vectordb does not know, and the databases meet.
//
// The offsets of a sink are in its database, with the rows, and no consumer group has any. A database that is restored
// from a backup thus goes on from where the backup was made.
package sinks
