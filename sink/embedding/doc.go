// Package embedding holds the embeddings of a generation in Parquet: WriteParquet and ReadParquet
// keep the parts of generations/<g>/embeddings, through sink/parquetio. docs/format/embeddings.md
// is the page of the format.
//
// A Format makes vectors smaller: float16, int8 with a scale, or the first dimensions alone. A record
// says which type it is of, and its Vector holds the numbers that readers will see.
//
// The Status of a record says what the vector was made from. A node without text has a record with
// the status NoText and without a vector: consumers never meet a vector of zeros, which has no
// cosine. Formats leave such records as they are.
//
// A Record is one embedding, in Parquet and on the embeddings topic alike. Package
// ingest/embeddingtopic has the topic, so that a program that uses embeddings in the store links no
// Kafka client.
package embedding
