// Package client is the pipeline's way to Kafka: one set of connections with its TLS and SASL
// settings, topic administration, a partition reader that hides nothing, and the only producer.
//
// New returns a Client, which connects when it is first used. EnsureTopics creates topics and
// checks their partitions. Reader reads one partition for as long as it is run; Range reads a known
// piece. NewProducer returns a Producer: Send and Flush for batches in the background, Write for
// callers that share a producer. IsRetryable says which errors pass.
//
// The package is a thin layer over github.com/segmentio/kafka-go. That library has no working
// idempotent or transactional producer, so delivery is at least once, and readers must tolerate
// records that come twice (the graph does: see mutation.Version). Of other
// producers' transactions, committed records are read and aborted ones are not; an open transaction
// holds back its records and all that follow in the partition, unless Options.ReadUncommitted is set.
package client
