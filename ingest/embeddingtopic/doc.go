// Package embeddingtopic carries embeddings to their readers: a compacted topic keyed by node id.
// docs/format/embeddings.md is the page of the format.
//
// A Format turns an embedding.Record into a message: JSON, or Binary with the vector as
// little-endian float32 and the rest in headers. The record of a deleted node is a tombstone (null
// value) in both. Decode reads both formats and tombstones.
//
// A Publisher sends records. Once Publish returns nil, all in-sync replicas have acknowledged every
// record. Delivery is at least once. Equal records give equal bytes, so a record that is sent twice
// changes nothing.
package embeddingtopic
