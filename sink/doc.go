// Package sink is where data leaves: the object store (local directory, S3), Parquet
// batches, and the embedding publisher. It knows nothing of graphs.
package sink
