// Package embedding carries embeddings to their readers: a compacted topic
// keyed by node id, and Parquet files of a generation.
// docs/format/embeddings.md is the page of both formats.
//
// # Topic
//
// A Format turns a Record into a message: JSON, or Binary with the vector as
// little-endian float32 and the rest in headers. The record of a deleted node
// is a tombstone (null value) in both. Equal records give equal bytes, so a
// record that is sent twice, as at-least-once delivery does, changes nothing.
//
//	pub := embedding.NewPublisher(embedding.NewWriter(brokers, topic, nil), embedding.JSON)
//	err := pub.Publish(ctx, records) // nil: every record is acknowledged by all replicas
//
// Decode reads both formats.
//
// # Parquet
//
// WriteParquet and ReadParquet hold the parts of
// generations/<g>/embeddings, through sink/parquetio.
package embedding
