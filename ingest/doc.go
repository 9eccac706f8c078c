// Package ingest brings changes of the graph in: from Kafka topics, decoded and checked, in the
// order of their partitions; and from files, by way of the same topics. It also holds everything
// else that talks to Kafka. The sub-packages, from the wire up:
//
//	client          connections, topic administration, partition reader, producer
//	broker          an embedded broker, for trying out and for tests
//	decode          mapping of records to mutations, limits, error codes
//	schema          Avro and Protobuf values, translated to JSON
//	preflight       checks of the topics before they are consumed
//	recordtrace     records that are followed in OpenTelemetry traces
//	deadletter      records that cannot be decoded: keep, list, replay
//	mirror          assertions on their way to the shard of the far end
//	group           the consumer group: which worker has which shards
//	repartition     copies of source topics, keyed and partitioned as shards need them
//	feed            the input of one shard: nodes, edges and mirror merged
//	backfill        files and objects to the input topics
//	embeddingtopic  embeddings to the sink topic
//
// A worker runs group.Run. For every assigned shard it opens a feed.Feed at the offsets of the
// shard's newest manifest and hands the feed to the shard. Kafka's committed offsets are never read
// back: they only show the lag to people and tools.
//
// Nothing is dropped silently. A record is either covered by the mutations of a batch, or its dead
// letter is acknowledged by the broker before the batch that covers its offset is returned.
package ingest
