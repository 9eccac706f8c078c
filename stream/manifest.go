package stream

import "time"

// ManifestFormat is the version of the manifest's JSON; readers refuse others.
const ManifestFormat = 1

// Manifest is one entry of a shard's commit log, stored create-once under
// shards/<p>/manifests/<seq, 20 digits>.json. It is the truth about what has
// been consumed and written: Kafka's committed offsets are a hint.
// Format page: docs/format/manifest.md.
type Manifest struct {
	Format int   `json:"format"`
	Shard  int   `json:"shard"`
	Seq    int64 `json:"seq"` // 1, 2, 3, … without gaps
	// Writer identifies the process that won this sequence number.
	Writer string `json:"writer"`
	// Next holds, per input topic, the offset of the first record that this
	// manifest does not cover (partition = shard).
	Next map[string]int64 `json:"next_offsets"`
	// Objects are the batches of this window, in node_id order throughout.
	Objects    []ManifestObject `json:"objects"`
	Rows       int64            `json:"rows"`
	Generation int64            `json:"generation"`
	// Nodes and Edges count the live facts in the shard's state after this
	// window: nodes, and assertions owned by this shard (mirrors not counted).
	Nodes   int64     `json:"nodes"`
	Edges   int64     `json:"edges"`
	Created time.Time `json:"created"`
}

// ManifestObject names one Parquet object of a window.
type ManifestObject struct {
	Key    string `json:"key"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}
