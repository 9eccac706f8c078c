package embedding

// Completion says that the embeddings of a generation are published of everything that a shard had committed up to
// manifest Seq. It comes after them. Format page: docs/format/embeddings.md, "Control records".
type Completion struct {
	Generation int64 `json:"generation"`
	Space      int64 `json:"space"` // the generation that began the space of the embeddings
	Shard      int   `json:"shard"`
	Shards     int   `json:"shards"` // of the pipeline
	Seq        int64 `json:"seq"`
	Nodes      int64 `json:"nodes"` // live ones of the shard
}
