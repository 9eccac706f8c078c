package embedding

// Attributes are what is known of a node beside its text, as they travel on the embeddings topic beside its vector.
// They are records of their own, so that a change of a price sends no vector.
type Attributes struct {
	NodeID string
	// Attributes is a JSON object; "" for a node that has none or is deleted.
	Attributes string
	// EventTime, Shard and Seq are as of a Record; 0 without attributes.
	EventTime int64
	Shard     int
	Seq       int64
}
