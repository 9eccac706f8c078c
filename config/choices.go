package config

// Names that packages below define, and that this package may not import. A test of
// cmd/internal/wiring compares the lists with the tables in featurize/tfidf, featurize/pifa and
// train/generation/fit, and with the gates of train/generation.
var (
	Encoders      = []string{"hybrid", "bag", "linear", "bert"}
	Profiles      = []string{"default", "pecos"}
	Weightings    = []string{"sum", "inverse_sqrt_degree"}
	LabelFeatures = []string{"pifa", "pifa-identity", "text", "random"}
	GPUMaths      = []string{"float32", "tf32", "bf16"}
	Precisions    = []string{"float32", "int8"}
	Measures      = []string{"cosine", "npmi", "jaccard", "lift"}
	QualityGates  = []string{"warn", "block", "off"}
	Samplers      = []string{"uniform", "degree", "birank"}
	Spaces        = []string{"keep", "turn", "new"}
)

// choices are the values of the fields that have a few.
var choices = map[string][]string{
	"embed.missing_text":        {"skip", "neighbours"},
	"embed.precision":           Precisions,
	"featurize.label_features":  LabelFeatures,
	"featurize.pifa.weighting":  Weightings,
	"featurize.profile":         Profiles,
	"ingest.baskets.format":     {"json", "avro", "protobuf", Debezium},
	"ingest.baskets.mode":       {"", "replace", "add"},
	"ingest.edges.format":       {"json", "avro", "protobuf", Debezium},
	"ingest.edges.mode":         {"add", "replace"},
	"ingest.isolation":          {ReadCommitted, ReadUncommitted},
	"ingest.nodes.format":       {"json", "avro", "protobuf", Debezium},
	"kafka.sasl.mechanism":      {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"},
	"links.from_orders.measure": Measures,
	"log.format":                {"auto", "text", "json"},
	"log.level":                 {"debug", "info", "warn", "error"},
	"refresh.quality_gate":      QualityGates,
	"refresh.space":             Spaces,
	"sink.embedding_type":       {"float32", "float16", "int8"},
	"sink.format":               {"json", "binary"},
	"sinks.malformed":           {MalformedStop, MalformedSkip},
	"train.bert.pooling":        {"mean", "cls"},
	"train.encoder":             Encoders,
	"train.gpu_math":            GPUMaths,
	"train.sampler":             Samplers,
	"window.compression":        {"zstd", "snappy", "none"},
}
