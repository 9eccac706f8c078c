package embedding

// Record is one embedding as it travels on the sink topic and in
// generations/<g>/embeddings/part-*.parquet. It names the generation (the
// model) and the manifest (shard and sequence number) it came from.
type Record struct {
	NodeID     string
	Generation int64
	// Vector is the embedding; nil in the record of a deleted node.
	Vector []float32
	// EventTime is the event time of the node's newest change, in
	// microseconds since the Unix epoch.
	EventTime int64
	// Shard and Seq name the manifest that committed the row embedded here.
	Shard int
	Seq   int64
	// Deleted makes the record a tombstone.
	Deleted bool
}
