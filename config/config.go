package config

import "time"

// Config is a pipeline's configuration. The comments on fields are short; Example describes each
// field in full.
type Config struct {
	// Pipeline names the pipeline; it is part of topic and group names.
	Pipeline string `yaml:"pipeline"`
	// Store is the object store: a directory or s3://bucket/prefix.
	Store string `yaml:"store"`
	S3    S3     `yaml:"s3"`
	// StateDir holds the shards' graph state. It can be rebuilt from the store and the log.
	StateDir string `yaml:"state_dir"`
	// Shards is the number of shards, fixed when the pipeline is created.
	Shards     int        `yaml:"shards"`
	Kafka      Kafka      `yaml:"kafka"`
	Ingest     Ingest     `yaml:"ingest"`
	Window     Window     `yaml:"window"`
	State      State      `yaml:"state"`
	Stream     Stream     `yaml:"stream"`
	Compaction Compaction `yaml:"compaction"`
	Featurize  Featurize  `yaml:"featurize"`
	Embedding  Embedding  `yaml:"embedding"`
	Embed      Embed      `yaml:"embed"`
	Train      Train      `yaml:"train"`
	Evaluate   Evaluate   `yaml:"evaluate"`
	Refresh    Refresh    `yaml:"refresh"`
	Sink       Sink       `yaml:"sink"`
	HTTP       HTTP       `yaml:"http"`
	Log        Log        `yaml:"log"`

	// renamed has a hint for each old name of a field that the file uses.
	renamed []string
}

// S3 says how to reach an s3:// store. Without keys the usual AWS chain applies: environment,
// profile, instance role.
type S3 struct {
	Endpoint  string `yaml:"endpoint"` // host[:port], also with http(s)://; "" is AWS
	Region    string `yaml:"region"`
	PathStyle bool   `yaml:"path_style"`
	Insecure  bool   `yaml:"insecure"` // plain HTTP
	AccessKey Secret `yaml:"access_key"`
	SecretKey Secret `yaml:"secret_key"`
	CAFile    string `yaml:"ca_file"`
}

// EmbeddedBroker as the only entry of Kafka.Brokers runs a broker in the process itself.
const EmbeddedBroker = "embedded"

// Kafka says where the topics are.
type Kafka struct {
	Brokers List   `yaml:"brokers"`  // host:port each, or EmbeddedBroker
	DataDir string `yaml:"data_dir"` // of the embedded broker
	Group   string `yaml:"group"`    // "" for the default, see Config.Group
	// SessionTimeout is how long a worker may be silent before its shards go to others.
	SessionTimeout time.Duration `yaml:"session_timeout"`

	Topics Topics `yaml:"topics"`
	TLS    TLS    `yaml:"tls"`
	SASL   SASL   `yaml:"sasl"`
}

// Embedded reports whether the broker runs in the process itself.
func (k *Kafka) Embedded() bool {
	return len(k.Brokers) == 1 && k.Brokers[0] == EmbeddedBroker
}

// Topics names the topics. Mirror and DeadLetters may be "" for the default, see Config.Mirror and
// Config.DeadLetters.
type Topics struct {
	Nodes       string `yaml:"nodes"`
	Edges       string `yaml:"edges"`
	Mirror      string `yaml:"mirror"`
	Embeddings  string `yaml:"embeddings"`
	DeadLetters string `yaml:"dead_letters"`
}

// TLS secures the connections to the brokers.
type TLS struct {
	Enabled            bool   `yaml:"enabled"`
	CAFile             string `yaml:"ca_file"`
	CertFile           string `yaml:"cert_file"`
	KeyFile            string `yaml:"key_file"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

// SASL authenticates to the brokers.
type SASL struct {
	Mechanism string `yaml:"mechanism"` // "", PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
	Username  string `yaml:"username"`
	Password  Secret `yaml:"password"`
}

// What is read of producers' transactions.
const (
	ReadCommitted   = "read_committed"
	ReadUncommitted = "read_uncommitted"
)

// Ingest says how records become nodes and edges.
type Ingest struct {
	Undirected bool `yaml:"undirected"`
	// Repartition copies the records of the nodes and edges topics to topics of the pipeline's own,
	// keyed by id.
	Repartition bool `yaml:"repartition"`
	// MaxFuture is how far ahead of the clock an event time may be; 0 is no bound.
	MaxFuture time.Duration `yaml:"max_future"`
	// MinFilled is the share of records, from 0 to 1, up to which a mapped id, text or far end that the
	// others lack is reported by a running service.
	MinFilled float64 `yaml:"min_filled"`
	// Isolation is ReadCommitted or ReadUncommitted.
	Isolation string `yaml:"isolation"`

	Nodes  NodeFields `yaml:"nodes"`
	Edges  EdgeFields `yaml:"edges"`
	Limits Limits     `yaml:"limits"`

	SchemaRegistry SchemaRegistry `yaml:"schema_registry"`
}

// SchemaRegistry says where the schemas of Avro and Protobuf values are.
type SchemaRegistry struct {
	URL      string `yaml:"url"` // http(s)://host:port
	Username string `yaml:"username"`
	Password Secret `yaml:"password"`
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// NodeFields maps the fields of a node record.
type NodeFields struct {
	Format    string `yaml:"format"` // json, avro, protobuf
	ID        string `yaml:"id"`
	Text      List   `yaml:"text"`       // joined in this order
	StripHTML bool   `yaml:"strip_html"` // remove markup from the text
	Class     string `yaml:"class"`      // for evaluation; "": none
	EventTime string `yaml:"event_time"` // "": the record's timestamp
	Edges     string `yaml:"edges"`      // "": no edges inlined
}

// EdgeFields maps the fields of an edge record.
type EdgeFields struct {
	Format    string `yaml:"format"` // json, avro, protobuf
	Src       string `yaml:"src"`
	Dst       string `yaml:"dst"`
	EventTime string `yaml:"event_time"` // "": the record's timestamp
	Mode      string `yaml:"mode"`       // add, replace
}

// Schemas reports whether any topic's values name their schema.
func (in *Ingest) Schemas() bool { return in.Nodes.Format != "json" || in.Edges.Format != "json" }

// Limits bound what one record may hold. A record that exceeds one becomes a dead letter.
type Limits struct {
	RecordBytes    Size `yaml:"record_bytes"`
	TextBytes      Size `yaml:"text_bytes"`
	EdgesPerRecord int  `yaml:"edges_per_record"`
}

// Window closes a batch of changes at whichever bound is reached first.
type Window struct {
	Changes int           `yaml:"changes"`
	Bytes   Size          `yaml:"bytes"`
	Time    time.Duration `yaml:"time"`
	// Compression of its rows: zstd, snappy or none.
	Compression string `yaml:"compression"`
}

// State says how copies of the shards' graph state are kept in the store.
type State struct {
	CheckpointEvery time.Duration `yaml:"checkpoint_every"` // 0: never
}

// Stream says how workers share the shards.
type Stream struct {
	// Standby is how many workers besides its owner keep a shard's newest checkpoint on their disk: 0 or 1.
	Standby int `yaml:"standby"`
}

// Compaction merges the rows of many windows into few objects.
type Compaction struct {
	Enabled bool `yaml:"enabled"`
	// Grace is how long objects stay after they have been merged.
	Grace time.Duration `yaml:"grace"`
	// History is how long manifests stay at least. 0: for ever.
	History time.Duration `yaml:"history"`
}

// Featurize says how texts and neighbourhoods become features and targets.
type Featurize struct {
	Profile       string `yaml:"profile"`        // default, pecos
	MaxDegree     int    `yaml:"max_degree"`     // nodes above it are labels only
	ProjectionDim int    `yaml:"projection_dim"` // of the texts' projection
	PIFA          PIFA   `yaml:"pifa"`
	LabelFeatures string `yaml:"label_features"` // pifa, pifa-identity, text, random
	Tree          Tree   `yaml:"tree"`
	// MemoryLimit is what fitting and training may use before texts and features go to temporary
	// files; 0 is any amount. Outcomes are the same.
	MemoryLimit Size `yaml:"memory_limit"`
}

// PIFA says how a label's features sum up its neighbours' texts.
type PIFA struct {
	Weighting string `yaml:"weighting"` // sum, inverse_sqrt_degree
}

// Embedding says what embeddings look like.
type Embedding struct {
	// Dim is the dimension of the embeddings of hybrid, bag and linear, and of the label features that the
	// label tree is built from. Embeddings of bert have the dimension of its model.
	Dim int `yaml:"dim"`
}

// Embed says how nodes get their embeddings.
type Embed struct {
	// MissingText is what a node without text gets: neighbours (the mean of theirs) or skip.
	MissingText string `yaml:"missing_text"`
	// Precision is how the encoder bert multiplies when it encodes, not in training: float32 or int8.
	Precision string `yaml:"precision"`
}

// Tree shapes the label tree; 0 is chosen for the size of the graph.
type Tree struct {
	LeafSize  int    `yaml:"leaf_size"` // labels per leaf, at most
	Branching int    `yaml:"branching"` // children per cluster
	Seed      uint64 `yaml:"seed"`
}

// Train says how the encoder is trained.
type Train struct {
	Encoder         string        `yaml:"encoder"` // hybrid, bag, linear, bert
	Epochs          int           `yaml:"epochs"`  // 0: the encoder's default
	Seed            uint64        `yaml:"seed"`
	Threads         int           `yaml:"threads"` // 0: all cores
	Device          string        `yaml:"device"`  // of transformers: cpu, cuda, cuda:N
	GPUMemory       Size          `yaml:"gpu_memory"`
	GPUMath         string        `yaml:"gpu_math"` // float32, tf32, bf16
	CheckpointEvery time.Duration `yaml:"checkpoint_every"`
	BERT            BERT          `yaml:"bert"`
}

// CPU is the Device that needs no driver.
const CPU = "cpu"

// BERT is the model that the encoder bert starts from.
type BERT struct {
	Model        string  `yaml:"model"`          // a Hugging Face directory
	Pooling      string  `yaml:"pooling"`        // mean, cls
	MaxTokens    int     `yaml:"max_tokens"`     // where texts are cut
	Dropout      float64 `yaml:"dropout"`        // share of hidden states and attention, in training
	DropTokens   float64 `yaml:"drop_tokens"`    // share of a text's tokens left out, in training
	NGrams       int     `yaml:"ngrams"`         // that have a vector beside the model, 0 for the model alone
	CoarseToFine bool    `yaml:"coarse_to_fine"` // level by level, not all at once
}

// Evaluate says what a generation is measured on.
type Evaluate struct {
	HoldoutEdges float64   `yaml:"holdout_edges"` // share hidden from training
	HoldoutNodes float64   `yaml:"holdout_nodes"` // share hidden with all edges, by the command evaluate
	ProbeRates   []float64 `yaml:"probe_rates"`   // shares of labels a probe is fitted on
	Seed         uint64    `yaml:"seed"`
}

// Refresh says when a new generation starts.
type Refresh struct {
	MinNodes int `yaml:"min_nodes"` // no first generation below
	// MinChanges is a share of the live nodes when below 1, else a count.
	MinChanges float64       `yaml:"min_changes"`
	MaxAge     time.Duration `yaml:"max_age"`
	Keep       int           `yaml:"keep"` // generations kept in the store
	// QualityGate says what becomes of a generation that is worse than text alone: warn, block, off.
	QualityGate string `yaml:"quality_gate"`
	// Space says whether a generation's vectors can be compared with those of the one before: keep, new.
	Space string `yaml:"space"`
}

// Sink says how embeddings are written to the sink topic.
type Sink struct {
	Format string `yaml:"format"` // json, binary
	// EmbeddingType and EmbeddingDim are for the topic and the stored embeddings alike.
	EmbeddingType string `yaml:"embedding_type"` // float32, float16, int8
	EmbeddingDim  int    `yaml:"embedding_dim"`  // the first dimensions; 0 for all
}

// HTTP serves a page to watch, metrics, health, and with the role serve answers.
type HTTP struct {
	Listen string `yaml:"listen"` // host:port; "" is off
	// Token is asked of whoever reads the metrics; "" asks for none. Health checks are open.
	Token Secret `yaml:"token"`
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // auto (text on a terminal), text, json
}

// Group returns the consumer group, giantstream-<pipeline> by default.
func (c *Config) Group() string {
	if c.Kafka.Group != "" {
		return c.Kafka.Group
	}
	return "giantstream-" + c.Pipeline
}

// Mirror returns the mirror topic, <pipeline>.mirror by default.
func (c *Config) Mirror() string {
	if c.Kafka.Topics.Mirror != "" {
		return c.Kafka.Topics.Mirror
	}
	return c.Pipeline + ".mirror"
}

// KeyedNodes returns the topic of repartitioned nodes, <pipeline>.nodes.keyed.
func (c *Config) KeyedNodes() string { return c.Pipeline + ".nodes.keyed" }

// KeyedEdges returns the topic of repartitioned edges, <pipeline>.edges.keyed.
func (c *Config) KeyedEdges() string { return c.Pipeline + ".edges.keyed" }

// DeadLetters returns the dead-letter topic, <pipeline>.dead-letters by default.
func (c *Config) DeadLetters() string {
	if c.Kafka.Topics.DeadLetters != "" {
		return c.Kafka.Topics.DeadLetters
	}
	return c.Pipeline + ".dead-letters"
}
