// Package embedding encodes embeddings for the sink topic and Parquet, and publishes them.
package embedding
