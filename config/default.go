package config

import (
	_ "embed"
	"slices"
	"time"
)

//go:embed example.yaml
var example []byte

// Example returns a configuration file that describes every field and
// states its default.
func Example() []byte { return slices.Clone(example) }

// Default returns the configuration of an empty file. It is valid.
func Default() Config {
	return Config{
		Pipeline: "main",
		Store:    "file:///var/lib/giantstream/store",
		S3:       S3{Region: "us-east-1", PathStyle: true},
		StateDir: "./giantstream-data/state",
		Shards:   8,
		Kafka: Kafka{
			Brokers: List{EmbeddedBroker},
			DataDir: "./giantstream-data/broker",

			SessionTimeout: 10 * time.Second,

			Topics: Topics{Nodes: "nodes", Edges: "edges", Embeddings: "embeddings"},
		},
		Ingest: Ingest{
			Undirected: true,
			Nodes:      NodeFields{Format: "json", ID: "id", Text: List{"text"}, Label: "label"},
			Edges:      EdgeFields{Format: "json", Src: "src", Dst: "dst", Mode: "add"},
			Limits:     Limits{RecordBytes: 1 * MiB, TextBytes: 256 * KiB, EdgesPerRecord: 10_000},
		},
		Window:     Window{Changes: 50_000, Bytes: 64 * MiB, Time: time.Second, Compression: "zstd"},
		State:      State{CheckpointEvery: 5 * time.Minute},
		Compaction: Compaction{Enabled: true, Grace: 24 * time.Hour},
		Featurize: Featurize{
			Profile:       "default",
			MaxDegree:     1000, // as in the GIANT paper
			ProjectionDim: 512,
			PIFA:          PIFA{Dim: 256, Weighting: "sum"},
			LabelFeatures: "pifa",
			MemoryLimit:   2 * GiB,
		},
		Train: Train{Encoder: "bag", Seed: 1, CheckpointEvery: 30 * time.Second,
			BERT: BERT{Pooling: "mean", MaxTokens: 128, NGrams: 1 << 16}},
		Evaluate: Evaluate{HoldoutEdges: 0.05, ProbeRates: []float64{0.1, 0.6}, Seed: 1},
		Refresh:  Refresh{MinNodes: 100, MinChanges: 0.05, MaxAge: 24 * time.Hour, Keep: 3},
		Sink:     Sink{Format: "json"},
		HTTP:     HTTP{Listen: "127.0.0.1:9464"},
		Log:      Log{Level: "info", Format: "auto"},
	}
}
