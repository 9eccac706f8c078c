package config

import (
	"fmt"
	"time"
)

// Config is a pipeline's configuration. The comments on fields are short; Example describes each
// field in full. The tag effect is the field's Effect: the one
// statement of what a change of it means, from which all that depends on that is derived.
type Config struct {
	// Pipeline names the pipeline; it is part of topic and group names.
	Pipeline string `yaml:"pipeline" effect:"pipeline"`
	// Store is the object store: a directory or s3://bucket/prefix.
	Store string `yaml:"store" effect:"pipeline"`
	S3    S3     `yaml:"s3"`
	// StateDir holds the shards' graph state. It can be rebuilt from the store and the log.
	StateDir string `yaml:"state_dir" effect:"restart"`
	// Shards is the number of shards, fixed when the pipeline is created.
	Shards     int        `yaml:"shards" effect:"pipeline"`
	Kafka      Kafka      `yaml:"kafka"`
	Ingest     Ingest     `yaml:"ingest"`
	Window     Window     `yaml:"window"`
	State      State      `yaml:"state"`
	Stream     Stream     `yaml:"stream"`
	Compaction Compaction `yaml:"compaction"`
	Links      Links      `yaml:"links"`
	Featurize  Featurize  `yaml:"featurize"`
	Embedding  Embedding  `yaml:"embedding"`
	Embed      Embed      `yaml:"embed"`
	Train      Train      `yaml:"train"`
	Evaluate   Evaluate   `yaml:"evaluate"`
	Refresh    Refresh    `yaml:"refresh"`
	Sink       Sink       `yaml:"sink"`
	Sinks      Sinks      `yaml:"sinks"`
	HTTP       HTTP       `yaml:"http"`
	Log        Log        `yaml:"log"`
	Telemetry  Telemetry  `yaml:"telemetry"`

	// renamed has a hint for each field of the file that has another name now or is gone.
	renamed []string
	// unset has the fields of sinks that refer to variables which are not set.
	unset []Fault
}

// S3 says how to reach an s3:// store. Without keys the usual AWS chain applies: environment,
// profile, instance role.
type S3 struct {
	Endpoint  string `yaml:"endpoint" effect:"restart"` // host[:port], also with http(s)://; "" is AWS
	Region    string `yaml:"region" effect:"restart"`
	PathStyle bool   `yaml:"path_style" effect:"restart"`
	Insecure  bool   `yaml:"insecure" effect:"restart"` // plain HTTP
	AccessKey Secret `yaml:"access_key" effect:"restart"`
	SecretKey Secret `yaml:"secret_key" effect:"restart"`
	CAFile    string `yaml:"ca_file" effect:"restart"`
}

// EmbeddedBroker as the only entry of Kafka.Brokers runs a broker in the process itself.
const EmbeddedBroker = "embedded"

// Kafka says where the topics are.
type Kafka struct {
	Brokers List   `yaml:"brokers" effect:"restart"`  // host:port each, or EmbeddedBroker
	DataDir string `yaml:"data_dir" effect:"restart"` // of the embedded broker
	Group   string `yaml:"group" effect:"restart"`    // "" for the default, see Config.Group
	// SessionTimeout is how long a worker may be silent before its shards go to others.
	SessionTimeout time.Duration `yaml:"session_timeout" effect:"restart"`

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
	Nodes       string `yaml:"nodes" effect:"graph"`
	Edges       string `yaml:"edges" effect:"graph"`
	Mirror      string `yaml:"mirror" effect:"graph"`
	Embeddings  string `yaml:"embeddings" effect:"restart"`
	DeadLetters string `yaml:"dead_letters" effect:"restart"`
}

// TLS secures the connections to the brokers.
type TLS struct {
	Enabled            bool   `yaml:"enabled" effect:"restart"`
	CAFile             string `yaml:"ca_file" effect:"restart"`
	CertFile           string `yaml:"cert_file" effect:"restart"`
	KeyFile            string `yaml:"key_file" effect:"restart"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify" effect:"restart"`
}

// SASL authenticates to the brokers.
type SASL struct {
	Mechanism string `yaml:"mechanism" effect:"restart"` // "", PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
	Username  string `yaml:"username" effect:"restart"`
	Password  Secret `yaml:"password" effect:"restart"`
}

// What is read of producers' transactions.
const (
	ReadCommitted   = "read_committed"
	ReadUncommitted = "read_uncommitted"
)

// Ingest says how records become nodes and edges.
type Ingest struct {
	Undirected bool `yaml:"undirected" effect:"pipeline"`
	// Repartition copies the records of all input topics to topics of the pipeline's own,
	// keyed by id.
	Repartition bool `yaml:"repartition" effect:"graph"`
	// MaxFuture is how far ahead of the clock an event time may be; 0 is no bound.
	MaxFuture time.Duration `yaml:"max_future" effect:"live"`
	// MinFilled is the share of records, from 0 to 1, up to which a mapped id, text or far end that the
	// others lack is reported by a running service.
	MinFilled float64 `yaml:"min_filled" effect:"live"`
	// SnapshotGuard is the share of the nodes, and of the edges, from 0 to 1, that a snapshot may lack.
	SnapshotGuard float64 `yaml:"snapshot_guard" effect:"restart"`
	// Isolation is ReadCommitted or ReadUncommitted.
	Isolation string `yaml:"isolation" effect:"restart"`

	Nodes      NodeFields      `yaml:"nodes"`
	Edges      EdgeFields      `yaml:"edges"`
	Attributes AttributeFields `yaml:"attributes"`
	Baskets    BasketFields    `yaml:"baskets"`
	External   External        `yaml:"external"`
	Limits     Limits          `yaml:"limits"`

	SchemaRegistry SchemaRegistry `yaml:"schema_registry"`
}

// SchemaRegistry says where the schemas of Avro and Protobuf values are.
type SchemaRegistry struct {
	URL      string `yaml:"url" effect:"restart"` // http(s)://host:port
	Username string `yaml:"username" effect:"restart"`
	Password Secret `yaml:"password" effect:"restart"`
	CAFile   string `yaml:"ca_file" effect:"restart"`
	CertFile string `yaml:"cert_file" effect:"restart"`
	KeyFile  string `yaml:"key_file" effect:"restart"`
}

// NodeFields maps the fields of a node record.
type NodeFields struct {
	Format    string `yaml:"format" effect:"graph"` // json, avro, protobuf, debezium
	ID        string `yaml:"id" effect:"graph"`
	Text      List   `yaml:"text" effect:"graph"`       // joined in this order
	StripHTML bool   `yaml:"strip_html" effect:"graph"` // remove markup from the text
	Class     string `yaml:"class" effect:"graph"`      // for evaluation; "": none
	EventTime string `yaml:"event_time" effect:"graph"` // "": the record's timestamp
	Deleted   string `yaml:"deleted" effect:"graph"`    // a field or conditions; "": none
	Edges     List   `yaml:"edges" effect:"graph"`      // [KIND=]PATH of edges inlined
	Snapshot  bool   `yaml:"snapshot" effect:"restart"` // files are all nodes that there are
	// Attributes are carried beside the text: NAME[:TYPE][=PATH].
	Attributes List `yaml:"attributes" effect:"graph"`
	// Vectors are what other models have made of the node: NAME=PATH:LENGTH[:PRECISION].
	Vectors List `yaml:"vectors" effect:"graph"`
}

// AttributeFields map the topics of attributes and vectors alone.
type AttributeFields struct {
	Fields    List   `yaml:"fields" effect:"graph"`  // TOPIC/NAME[:TYPE][=PATH]
	Vectors   List   `yaml:"vectors" effect:"graph"` // TOPIC/NAME=PATH:LENGTH[:PRECISION]
	ID        string `yaml:"id" effect:"graph"`
	EventTime string `yaml:"event_time" effect:"graph"` // "": the record's timestamp
}

// BasketFields map the topic of orders.
type BasketFields struct {
	Topic     string `yaml:"topic" effect:"graph"`  // "": none
	Format    string `yaml:"format" effect:"graph"` // json, avro, protobuf, debezium
	ID        List   `yaml:"id" effect:"graph"`     // several fields that tell orders apart together
	Items     string `yaml:"items" effect:"graph"`
	Quantity  string `yaml:"quantity" effect:"graph"`   // "": 1 of each item
	Time      string `yaml:"time" effect:"graph"`       // "": the event time
	EventTime string `yaml:"event_time" effect:"graph"` // "": the record's timestamp
	Kind      string `yaml:"kind" effect:"graph"`       // a field, a "constant", or "": none
	Customer  string `yaml:"customer" effect:"graph"`   // "": none
	Deleted   string `yaml:"deleted" effect:"graph"`    // as in NodeFields
	Mode      string `yaml:"mode" effect:"graph"`       // replace, add; "": by the path of the items
	MaxItems  int    `yaml:"max_items" effect:"restart"`
	// Keep is how long an order counts, by the newest time of an order. 0: for ever.
	Keep time.Duration `yaml:"keep" effect:"restart"`
}

// EdgeFields maps the fields of an edge record.
type EdgeFields struct {
	Format    string `yaml:"format" effect:"graph"` // json, avro, protobuf, debezium
	Src       string `yaml:"src" effect:"graph"`
	Dst       string `yaml:"dst" effect:"graph"`
	EventTime string `yaml:"event_time" effect:"graph"` // "": the record's timestamp
	Deleted   string `yaml:"deleted" effect:"graph"`    // as in NodeFields
	Mode      string `yaml:"mode" effect:"graph"`       // add, replace
	Weight    string `yaml:"weight" effect:"graph"`     // "": none
	Kind      string `yaml:"kind" effect:"graph"`       // a field, a "constant", or "": none
	Directed  List   `yaml:"directed_kinds" effect:"graph"`
	Topics    List   `yaml:"topics" effect:"graph"`     // further ones, each of one kind: TOPIC/KIND[=SRC,DST]
	Snapshot  bool   `yaml:"snapshot" effect:"restart"` // files are all edges that there are
}

// Debezium is the Format of change events, in JSON or in Avro.
const Debezium = "debezium"

// Schemas reports whether any topic's values name their schema, or may.
func (in *Ingest) Schemas() bool {
	return in.schemas(in.Nodes.Format) || in.schemas(in.Edges.Format) ||
		in.Baskets.Topic != "" && in.schemas(in.Baskets.Format)
}

func (in *Ingest) schemas(format string) bool {
	return format == Debezium && in.SchemaRegistry.URL != "" || format != Debezium && format != "json"
}

// Limits bound what one record may hold. A record that exceeds one becomes a dead letter.
type Limits struct {
	RecordBytes    Size `yaml:"record_bytes" effect:"restart"`
	TextBytes      Size `yaml:"text_bytes" effect:"live"`
	EdgesPerRecord int  `yaml:"edges_per_record" effect:"live"`
}

// Window closes a batch of changes at whichever bound is reached first.
type Window struct {
	Changes int           `yaml:"changes" effect:"live"`
	Bytes   Size          `yaml:"bytes" effect:"live"`
	Time    time.Duration `yaml:"time" effect:"live"`
	// Compression of its rows: zstd, snappy or none.
	Compression string `yaml:"compression" effect:"restart"`
}

// State says how copies of the shards' graph state are kept in the store.
type State struct {
	CheckpointEvery time.Duration `yaml:"checkpoint_every" effect:"restart"` // 0: never
}

// Stream says how workers share the shards.
type Stream struct {
	// Standby is how many workers besides its owner keep a shard's newest checkpoint on their disk: 0 or 1.
	Standby int `yaml:"standby" effect:"restart"`
}

// Compaction merges the rows of many windows into few objects.
type Compaction struct {
	Enabled bool `yaml:"enabled" effect:"restart"`
	// Grace is how long objects stay after they have been merged.
	Grace time.Duration `yaml:"grace" effect:"restart"`
	// History is how long manifests stay at least. 0: for ever.
	History time.Duration `yaml:"history" effect:"restart"`
}

// Links says what links nodes beside the edges that are stated.
type Links struct {
	FromOrders FromOrders `yaml:"from_orders"`
	// HalfLife is the age at which a link with a kind or a weight has half of its weight. 0: never.
	HalfLife time.Duration `yaml:"half_life" effect:"encoding"`
}

// FromOrders says which nodes that are ordered together are linked.
type FromOrders struct {
	Measure        string  `yaml:"measure" effect:"encoding"`         // cosine, npmi, jaccard, lift
	MinSupport     int     `yaml:"min_support" effect:"encoding"`     // orders that have both
	MinAssociation float64 `yaml:"min_association" effect:"encoding"` // by the measure
	MaxPartners    int     `yaml:"max_partners" effect:"encoding"`    // of an item; 0: no links
}

// Featurize says how texts and neighbourhoods become features and targets.
type Featurize struct {
	Profile       string `yaml:"profile" effect:"encoding"`        // default, pecos
	MaxDegree     int    `yaml:"max_degree" effect:"encoding"`     // nodes above it are labels only
	ProjectionDim int    `yaml:"projection_dim" effect:"encoding"` // of the texts' projection
	PIFA          PIFA   `yaml:"pifa"`
	LabelFeatures string `yaml:"label_features" effect:"encoding"` // pifa, pifa-identity, text, random
	Tree          Tree   `yaml:"tree"`
	// MemoryLimit is what fitting and training may use before texts and features go to temporary
	// files; 0 is any amount. Outcomes are the same.
	MemoryLimit Size `yaml:"memory_limit" effect:"restart"`
}

// PIFA says how a label's features sum up its neighbours' texts.
type PIFA struct {
	Weighting string `yaml:"weighting" effect:"encoding"` // sum, inverse_sqrt_degree
}

// Embedding says what embeddings look like.
type Embedding struct {
	// Dim is the dimension of the embeddings of hybrid, bag and linear, and of the label features that the
	// label tree is built from. Embeddings of bert have the dimension of its model.
	Dim int `yaml:"dim" effect:"encoding"`
}

// Embed says how nodes get their embeddings.
type Embed struct {
	// MissingText is what a node without text gets: neighbours (the mean of theirs) or skip.
	MissingText string `yaml:"missing_text" effect:"encoding"`
	// Precision is how the encoder bert multiplies when it encodes, not in training: float32 or int8.
	Precision string `yaml:"precision" effect:"encoding"`
}

// Tree shapes the label tree; 0 is chosen for the size of the graph.
type Tree struct {
	LeafSize  int    `yaml:"leaf_size" effect:"encoding"` // labels per leaf, at most
	Branching int    `yaml:"branching" effect:"encoding"` // children per cluster
	Seed      uint64 `yaml:"seed" effect:"encoding"`
}

// Train says how the encoder is trained.
type Train struct {
	Encoder         string        `yaml:"encoder" effect:"encoding"` // hybrid, bag, linear, bert
	Epochs          int           `yaml:"epochs" effect:"encoding"`  // 0: the encoder's default
	Seed            uint64        `yaml:"seed" effect:"encoding"`
	MaxInstances    int           `yaml:"max_instances" effect:"encoding"` // 0: all
	Sampler         string        `yaml:"sampler" effect:"encoding"`       // uniform, degree, birank
	Threads         int           `yaml:"threads" effect:"restart"`        // 0: all cores
	Device          string        `yaml:"device" effect:"restart"`         // of transformers: cpu, cuda, cuda:N
	GPUMemory       Size          `yaml:"gpu_memory" effect:"restart"`
	GPUMath         string        `yaml:"gpu_math" effect:"restart"` // float32, tf32, bf16
	CheckpointEvery time.Duration `yaml:"checkpoint_every" effect:"restart"`
	BERT            BERT          `yaml:"bert"`
}

// CPU is the Device that needs no driver.
const CPU = "cpu"

// BERT is the model that the encoder bert starts from.
type BERT struct {
	Model        string  `yaml:"model" effect:"encoding"`          // a Hugging Face directory
	Pooling      string  `yaml:"pooling" effect:"encoding"`        // mean, cls
	MaxTokens    int     `yaml:"max_tokens" effect:"encoding"`     // where texts are cut
	Dropout      float64 `yaml:"dropout" effect:"encoding"`        // of hidden states and attention, in training
	DropTokens   float64 `yaml:"drop_tokens" effect:"encoding"`    // of a text's tokens, in training
	NGrams       int     `yaml:"ngrams" effect:"encoding"`         // beside the model, 0 for the model alone
	CoarseToFine bool    `yaml:"coarse_to_fine" effect:"encoding"` // level by level, not all at once
}

// Evaluate says what a generation is measured on.
type Evaluate struct {
	HoldoutEdges float64   `yaml:"holdout_edges" effect:"encoding"` // share hidden from training
	HoldoutNodes float64   `yaml:"holdout_nodes" effect:"restart"`  // share hidden with all edges, by evaluate
	ProbeRates   []float64 `yaml:"probe_rates" effect:"generation"` // shares of labels a probe is fitted on
	Seed         uint64    `yaml:"seed" effect:"encoding"`
}

// Refresh says when a new generation starts.
type Refresh struct {
	MinNodes int `yaml:"min_nodes" effect:"live"` // no first generation below
	// MinChanges is a share of the live nodes when below 1, else a count.
	MinChanges float64       `yaml:"min_changes" effect:"live"`
	MaxAge     time.Duration `yaml:"max_age" effect:"live"`
	Keep       int           `yaml:"keep" effect:"live"` // generations kept in the store
	// QualityGate says what becomes of a generation that is worse than text alone: warn, block, off.
	QualityGate string `yaml:"quality_gate" effect:"live"`
	// Space says what a generation takes of the one before: keep, turn, new.
	Space string `yaml:"space" effect:"live"`
	Drift Drift  `yaml:"drift"`
}

// Drift says by how much a measure must be worse than at the cut of the generation being served for a new one to
// start; 0 is never.
type Drift struct {
	// MinChanges is how much must have changed before any of them counts: a share of the live nodes when below 1,
	// else a count.
	MinChanges    float64 `yaml:"min_changes" effect:"live"`
	UnknownNGrams float64 `yaml:"unknown_ngrams" effect:"live"` // share of the n-grams of new texts
	LabelFit      float64 `yaml:"label_fit" effect:"live"`      // cosine of new labels to their clusters
	LinkAUC       float64 `yaml:"link_auc" effect:"live"`       // of fresh edges
	Cosine        float64 `yaml:"cosine" effect:"live"`         // of changed texts' embeddings to those published
}

// Sink says how embeddings are written to the sink topic.
type Sink struct {
	Format string `yaml:"format" effect:"restart"` // json, binary
	// EmbeddingType and EmbeddingDim are for the topic and the stored embeddings alike.
	EmbeddingType string `yaml:"embedding_type" effect:"restart"` // float32, float16, int8
	EmbeddingDim  int    `yaml:"embedding_dim" effect:"restart"`  // the first dimensions; 0 for all
	// ControlRecords: records on the topic say when all of a generation is published.
	ControlRecords bool `yaml:"control_records" effect:"restart"`
	// CanaryTopic, unless "", is the topic that gets a new generation first, as a canary: the embeddings topic gets it
	// once people promote it.
	CanaryTopic string `yaml:"canary_topic" effect:"restart"`
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level" effect:"live"`     // debug, info, warn, error
	Format string `yaml:"format" effect:"restart"` // auto (text on a terminal), text, json
}

// Telemetry says what a process reports of single records and builds.
type Telemetry struct {
	Traces Traces `yaml:"traces"`
}

// Traces says what is sent to a collector of OpenTelemetry traces. Where it is, the OTEL_EXPORTER_OTLP_ variables of
// the environment say.
type Traces struct {
	// Ratio is the share of records, from 0 to 1, that begin a trace, of those without a traceparent.
	Ratio float64 `yaml:"ratio" effect:"restart"`
	// Exemplars: the metric of freshness names traces.
	Exemplars bool `yaml:"exemplars" effect:"restart"`
}

// Group returns the consumer group, giantstream-<pipeline> by default.
func (c *Config) Group() string {
	if c.Kafka.Group != "" {
		return c.Kafka.Group
	}
	return "giantstream-" + c.Pipeline
}

// Bearers are the clients that have a token, none where none is asked for. The one of Token has no name.
func (h *HTTP) Bearers() []Bearer {
	if h.Token == "" {
		return h.Tokens
	}
	return []Bearer{{Token: h.Token, Scopes: scopes}}
}

// Mirror returns the mirror topic, <pipeline>.mirror by default.
func (c *Config) Mirror() string {
	if c.Kafka.Topics.Mirror != "" {
		return c.Kafka.Topics.Mirror
	}
	return c.Pipeline + ".mirror"
}

// OrderedRows returns the topic in which the pipeline says what nodes are ordered with, "" without orders. A store
// with another number of shards has another topic, since the pipeline alone knows of it.
func (c *Config) OrderedRows() string {
	if c.Ingest.Baskets.Topic == "" {
		return ""
	}
	return fmt.Sprintf("%s.ordered-%d", c.Pipeline, c.Shards)
}

// Keyed returns the topic with copies of the records of a source topic, <pipeline>.<topic>.keyed. Those of the nodes
// and the edges topic are named for what they have.
func (c *Config) Keyed(topic string) string {
	switch topic {
	case c.Kafka.Topics.Nodes:
		topic = "nodes"
	case c.Kafka.Topics.Edges:
		topic = "edges"
	}
	return c.Pipeline + "." + topic + ".keyed"
}

// DeadLetters returns the dead-letter topic, <pipeline>.dead-letters by default.
func (c *Config) DeadLetters() string {
	if c.Kafka.Topics.DeadLetters != "" {
		return c.Kafka.Topics.DeadLetters
	}
	return c.Pipeline + ".dead-letters"
}
