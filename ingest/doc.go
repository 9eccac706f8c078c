// Package ingest brings changes of the graph in: from Kafka topics, decoded
// and checked, in the order of their partitions; and from files, by way of the
// same topics. The sub-packages, from the wire up:
//
//	client      connections, topic administration, fetch and produce
//	broker      an embedded broker, for trying out and for tests
//	decode      mapping of records to stream.Mutation, limits, error codes
//	schema      Avro and Protobuf values, as the JSON they say
//	preflight   what must be true of topics before they are consumed
//	deadletter  records that cannot be decoded: keep, list, replay
//	mirror      assertions on their way to the shard of the far end
//	feed        the input of one shard: nodes, edges and mirror merged
//	group       the consumer group: which worker has which shards
//	backfill    files and objects to the input topics
//
// A worker runs group.Run; for every shard it is given, it opens a feed.Feed at
// the offsets of the shard's head manifest and hands that to the shard.
// Kafka's committed offsets are never read back: they only show the lag to
// people and tools.
//
// Nothing is dropped silently. A record is either covered by the mutations of
// a batch, or its dead letter is acknowledged by the broker before the batch
// that covers its offset is handed over.
package ingest
