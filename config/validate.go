package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate checks every value, and values against each other. It returns nil or an *Error with all
// faults. The faults have no line numbers, which only Parse knows. Messages leave text values out,
// because they may come from the environment.
func (c *Config) Validate() error {
	if faults := c.faults(); len(faults) > 0 {
		return &Error{Faults: faults}
	}
	return nil
}

func (c *Config) faults() []Fault {
	var v validator
	v.pipeline(c)
	v.store(c)
	v.kafka(c)
	v.ingest(&c.Ingest)
	v.window(c)
	v.state(c)
	v.links(&c.Links)
	v.featurize(&c.Featurize)
	v.check(c.Embedding.Dim >= 1 && c.Embedding.Dim <= max(1, c.Featurize.ProjectionDim), "embedding.dim",
		"must be between 1 and featurize.projection_dim, got %d", c.Embedding.Dim)
	v.oneOf("embed.missing_text", c.Embed.MissingText)
	v.oneOf("embed.precision", c.Embed.Precision)
	v.check(c.Embed.Precision != "int8" || c.Train.Encoder == "bert", "embed.precision",
		"int8 is for train.encoder bert; %s has no products to speed up", c.Train.Encoder)
	v.train(&c.Train)
	v.evaluate(&c.Evaluate)
	v.refresh(&c.Refresh)
	v.outputs(c)
	v.sinks(c)
	return v
}

type validator []Fault

// check reports a fault at path unless ok.
func (v *validator) check(ok bool, path, format string, args ...any) {
	if !ok {
		*v = append(*v, Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

func (v *validator) oneOf(path, value string) {
	allowed := choices[path]
	names := strings.Join(allowed, ", ")
	if slices.Contains(allowed, "") {
		names = `""` + names
	}
	v.check(slices.Contains(allowed, value), path, "must be one of: %s", names)
}

func (v *validator) atLeast(path string, value, least int) {
	v.check(value >= least, path, "must be at least %d, got %d", least, value)
}

func (v *validator) atLeastTime(path string, value, least time.Duration) {
	v.check(value >= least, path, "must be at least %v, got %v", least, value)
}

// share checks a share that may be 0 but not 1.
func (v *validator) share(path string, value float64) {
	v.check(value >= 0 && value < 1, path, "must be a share of at least 0 and below 1, got %v", value)
}

func (v *validator) required(path, value string) {
	v.check(value != "", path, "must be given")
}

// listed checks a list that needs an entry.
func (v *validator) listed(path string, fields List) {
	v.check(len(fields) > 0, path, "must name at least one field")
	for i, field := range fields {
		v.required(listPath(path, i, len(fields)), field)
	}
}

const maxShards = 4096

var (
	pipelineName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	deviceName   = regexp.MustCompile(`^(cpu|cuda(:(0|[1-9][0-9]{0,2}))?)$`)
	topicName    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`) // Kafka's own rule
	bucketName   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)
	keyPrefix    = regexp.MustCompile(`^[A-Za-z0-9._=/-]*$`) // what sink.Store takes
)

func (v *validator) pipeline(c *Config) {
	v.check(pipelineName.MatchString(c.Pipeline), "pipeline", "must be 1 to 63 of a-z, 0-9 and -")
	v.required("state_dir", c.StateDir)
	v.check(c.Shards >= 1 && c.Shards <= maxShards, "shards", "must be between 1 and %d, got %d", maxShards, c.Shards)
}

func (v *validator) store(c *Config) {
	const forms = "must be a directory, file:///directory or s3://bucket/prefix"
	u, err := url.Parse(c.Store)
	switch {
	case c.Store == "":
		v.check(false, "store", forms)
	case !strings.Contains(c.Store, "://"):
		// A path; any is fine.
	case err != nil:
		v.check(false, "store", forms)
	case u.User != nil:
		v.check(false, "store",
			"must not hold credentials; use s3.access_key and s3.secret_key, or the AWS environment")
	case u.RawQuery != "" || u.Fragment != "":
		v.check(false, "store", "must not have a query or fragment; escape ? as %%3F and # as %%23")
	case u.Scheme == "file":
		v.check((u.Host == "" || u.Host == "localhost") && path.IsAbs(u.Path), "store",
			"must have three slashes and an absolute directory: file:///directory")
	case u.Scheme == "s3":
		v.check(bucketName.MatchString(u.Host), "store", "must name a bucket: s3://bucket/prefix")
		v.check(keyPrefix.MatchString(u.Path), "store", "must have a prefix of A-Z, a-z, 0-9 and . _ = / - only")
	default:
		v.check(false, "store", forms)
	}

	s3 := &c.S3
	v.check(isEndpoint(s3.Endpoint), "s3.endpoint", "must be host or host:port, with or without http:// or https://")
	v.required("s3.region", s3.Region)
	v.check(s3.SecretKey == "" || s3.AccessKey != "", "s3.access_key", "must be given with secret_key")
	v.check(s3.AccessKey == "" || s3.SecretKey != "", "s3.secret_key", "must be given with access_key")
	v.check(s3.CAFile == "" || !s3.Insecure, "s3.ca_file", "has no effect with insecure: true")
}

// isEndpoint accepts "" for AWS itself.
func isEndpoint(s string) bool {
	if scheme, rest, found := strings.Cut(s, "://"); found {
		return (scheme == "http" || scheme == "https") && rest != "" && isEndpoint(rest)
	}
	return !strings.ContainsAny(s, "/?#@ ")
}

func (v *validator) kafka(c *Config) {
	k := &c.Kafka
	v.check(len(k.Brokers) > 0, "kafka.brokers", "must be %s, or a list of host:port", EmbeddedBroker)
	if k.Embedded() {
		v.check(k.DataDir != "", "kafka.data_dir", "must be given for the embedded broker")
		v.check(!k.TLS.Enabled, "kafka.tls.enabled", "must be false for the embedded broker")
		v.check(k.SASL.Mechanism == "", "kafka.sasl.mechanism", `must be "" for the embedded broker`)
	} else {
		for i, b := range k.Brokers {
			v.check(isHostPort(b) && !strings.HasPrefix(b, ":"), listPath("kafka.brokers", i, len(k.Brokers)),
				"must be host:port")
		}
	}

	v.atLeastTime("kafka.session_timeout", k.SessionTimeout, time.Second)

	t, s := &k.TLS, &k.SASL
	if !t.Enabled {
		const idle = "has no effect without enabled: true"
		v.check(t.CAFile == "", "kafka.tls.ca_file", idle)
		v.check(t.CertFile == "", "kafka.tls.cert_file", idle)
		v.check(t.KeyFile == "", "kafka.tls.key_file", idle)
		v.check(!t.InsecureSkipVerify, "kafka.tls.insecure_skip_verify", idle)
	}
	v.check(t.KeyFile == "" || t.CertFile != "", "kafka.tls.cert_file", "must be given with key_file")
	v.check(t.CertFile == "" || t.KeyFile != "", "kafka.tls.key_file", "must be given with cert_file")

	if s.Mechanism == "" {
		v.check(s.Username == "" && s.Password == "", "kafka.sasl.mechanism",
			"must be given with a username or password: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	} else {
		v.oneOf("kafka.sasl.mechanism", s.Mechanism)
		v.check(s.Username != "", "kafka.sasl.username", "must be given with a mechanism")
		v.check(s.Password != "", "kafka.sasl.password", "must be given with a mechanism")
	}
	v.topics(c)
}

// topics checks the names that will be used, defaults filled in.
func (v *validator) topics(c *Config) {
	taken := map[string]string{}
	if c.Ingest.Repartition {
		for _, topic := range []string{c.Kafka.Topics.Nodes, c.Kafka.Topics.Edges} {
			taken[c.Keyed(topic)] = "ingest.repartition"
		}
	}
	for _, t := range []struct{ path, name, given string }{
		{"kafka.topics.nodes", c.Kafka.Topics.Nodes, c.Kafka.Topics.Nodes},
		{"kafka.topics.edges", c.Kafka.Topics.Edges, c.Kafka.Topics.Edges},
		{"kafka.topics.mirror", c.Mirror(), c.Kafka.Topics.Mirror},
		{"kafka.topics.embeddings", c.Kafka.Topics.Embeddings, c.Kafka.Topics.Embeddings},
		{"kafka.topics.dead_letters", c.DeadLetters(), c.Kafka.Topics.DeadLetters},
		{"sink.canary_topic", c.Sink.CanaryTopic, c.Sink.CanaryTopic},
	} {
		if t.path == "sink.canary_topic" && t.name == "" {
			continue
		}
		// A topic that is named after the pipeline is at fault with it, and not by itself.
		if t.name != t.given && !pipelineName.MatchString(c.Pipeline) {
			continue
		}
		v.check(topicName.MatchString(t.name) && t.name != "." && t.name != "..", t.path,
			"must be a topic name: 1 to 249 of A-Z, a-z, 0-9 and . _ -")
		other, twice := taken[t.name]
		v.check(!twice, t.path, "must differ from the topic of %s", other)
		taken[t.name] = strings.TrimPrefix(t.path, "kafka.topics.")
	}
}

func (v *validator) ingest(in *Ingest) {
	v.required("ingest.nodes.id", in.Nodes.ID)
	v.listed("ingest.nodes.text", in.Nodes.Text)
	v.required("ingest.edges.src", in.Edges.Src)
	v.required("ingest.edges.dst", in.Edges.Dst)
	v.oneOf("ingest.edges.mode", in.Edges.Mode)

	v.oneOf("ingest.nodes.format", in.Nodes.Format)
	v.oneOf("ingest.edges.format", in.Edges.Format)
	v.baskets(&in.Baskets)
	v.external(&in.External)
	v.schemaRegistry(in)

	v.atLeastTime("ingest.max_future", in.MaxFuture, 0)
	v.check(in.MinFilled >= 0 && in.MinFilled <= 1, "ingest.min_filled", "must be between 0 and 1, got %v",
		in.MinFilled)
	v.check(in.SnapshotGuard >= 0 && in.SnapshotGuard <= 1, "ingest.snapshot_guard", "must be between 0 and 1, got %v",
		in.SnapshotGuard)
	v.check(!in.Edges.Snapshot || len(in.Edges.Topics) == 0, "ingest.edges.snapshot",
		"must be false where further topics state edges (ingest.edges.topics): files of edges are not all edges then")
	v.check(!in.Edges.Snapshot || len(in.Nodes.Edges) == 0, "ingest.edges.snapshot",
		"must be false where node records state edges (ingest.nodes.edges): files of edges are not all edges then")
	v.check(!in.Edges.Snapshot || in.Edges.Kind == "" || in.Edges.Kind[0] == '"', "ingest.edges.snapshot",
		"must be false where a field says the kind of an edge (ingest.edges.kind): what a file lacks has no kind")
	v.oneOf("ingest.isolation", in.Isolation)
	l := &in.Limits
	v.check(l.RecordBytes > 0, "ingest.limits.record_bytes", "must be more than 0")
	v.check(l.TextBytes > 0, "ingest.limits.text_bytes", "must be more than 0")
	v.check(l.TextBytes <= l.RecordBytes, "ingest.limits.text_bytes", "must not exceed record_bytes, %v", l.RecordBytes)
	v.atLeast("ingest.limits.edges_per_record", l.EdgesPerRecord, 1)
}

// leastKeep is the least time for which orders can be kept: they count by whole days.
const leastKeep = 24 * time.Hour

func (v *validator) baskets(b *BasketFields) {
	v.oneOf("ingest.baskets.format", b.Format)
	v.oneOf("ingest.baskets.mode", b.Mode)
	v.atLeast("ingest.baskets.max_items", b.MaxItems, 1)
	if b.Keep != 0 {
		v.atLeastTime("ingest.baskets.keep", b.Keep, leastKeep)
	}
	if b.Topic == "" {
		return
	}
	v.check(topicName.MatchString(b.Topic), "ingest.baskets.topic", "must be 1 to 249 of A-Z, a-z, 0-9, ., _ and -")
	v.listed("ingest.baskets.id", b.ID)
	v.required("ingest.baskets.items", b.Items)
}

func (v *validator) schemaRegistry(in *Ingest) {
	r := &in.SchemaRegistry
	u, err := url.Parse(r.URL)
	switch {
	case r.URL == "":
		v.check(!in.Schemas(), "ingest.schema_registry.url", "must be given for avro and protobuf: https://host:port")
		v.check(in.Schemas() || *r == SchemaRegistry{}, "ingest.schema_registry", "has no effect without url")
	case err == nil && u.User != nil:
		v.check(false, "ingest.schema_registry.url", "must not hold credentials; use username and password")
	default:
		v.check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "" &&
			u.Fragment == "",
			"ingest.schema_registry.url", "must be http://host:port or https://host:port, perhaps with a path")
	}
	v.check(r.Password == "" || r.Username != "", "ingest.schema_registry.username", "must be given with password")
	v.check(r.Username == "" || r.Password != "", "ingest.schema_registry.password", "must be given with username")
	v.check(r.KeyFile == "" || r.CertFile != "", "ingest.schema_registry.cert_file", "must be given with key_file")
	v.check(r.CertFile == "" || r.KeyFile != "", "ingest.schema_registry.key_file", "must be given with cert_file")
}

func (v *validator) window(c *Config) {
	v.atLeast("window.changes", c.Window.Changes, 1)
	v.check(c.Window.Bytes >= c.Ingest.Limits.RecordBytes, "window.bytes",
		"must hold at least one record of ingest.limits.record_bytes, %v", c.Ingest.Limits.RecordBytes)
	v.atLeastTime("window.time", c.Window.Time, time.Millisecond)
	v.oneOf("window.compression", c.Window.Compression)
}

func (v *validator) state(c *Config) {
	if every := c.State.CheckpointEvery; every != 0 {
		v.check(every >= time.Second, "state.checkpoint_every", "must be 0 for never, or at least 1s, got %v", every)
	}
	v.check(c.Stream.Standby == 0 || c.Stream.Standby == 1, "stream.standby", "must be 0 or 1, got %d",
		c.Stream.Standby)
	v.check(c.Stream.Standby == 0 || c.State.CheckpointEvery > 0, "stream.standby",
		"needs checkpoints: state.checkpoint_every is 0")
	v.atLeastTime("compaction.grace", c.Compaction.Grace, time.Minute)
	if history := c.Compaction.History; history != 0 {
		v.check(history >= time.Minute, "compaction.history", "must be 0 for ever, or at least 1m, got %v", history)
	}
}

func (v *validator) links(l *Links) {
	v.check(l.HalfLife >= 0, "links.half_life", "must be at least 0s, got %v", l.HalfLife)
	o := &l.FromOrders
	v.oneOf("links.from_orders.measure", o.Measure)
	v.atLeast("links.from_orders.min_support", o.MinSupport, 0)
	v.check(!math.IsNaN(o.MinAssociation), "links.from_orders.min_association", "must be a number")
	v.atLeast("links.from_orders.max_partners", o.MaxPartners, 0)
}

func (v *validator) featurize(f *Featurize) {
	v.oneOf("featurize.profile", f.Profile)
	v.atLeast("featurize.max_degree", f.MaxDegree, 1)
	v.atLeast("featurize.projection_dim", f.ProjectionDim, 1)
	v.oneOf("featurize.pifa.weighting", f.PIFA.Weighting)
	v.oneOf("featurize.label_features", f.LabelFeatures)
	v.check(f.MemoryLimit == 0 || f.MemoryLimit >= 64*MiB, "featurize.memory_limit",
		"must be at least 64MiB, or 0 for none, got %v", f.MemoryLimit)
	v.atLeast("featurize.tree.leaf_size", f.Tree.LeafSize, 0)
	v.check(f.Tree.Branching == 0 || f.Tree.Branching >= 2, "featurize.tree.branching",
		"must be at least 2, or 0 for the default, got %d", f.Tree.Branching)
}

func (v *validator) train(t *Train) {
	v.oneOf("train.encoder", t.Encoder)
	v.check(t.Encoder != "bert" || t.BERT.Model != "", "train.bert.model",
		"the encoder bert needs a model to start from: a Hugging Face directory with config.json, "+
			"vocab.txt and model.safetensors")
	v.oneOf("train.bert.pooling", t.BERT.Pooling)
	v.check(t.BERT.MaxTokens >= 3 && t.BERT.MaxTokens <= 1<<16, "train.bert.max_tokens",
		"must be between 3 and the positions of the model, got %d", t.BERT.MaxTokens)
	v.share("train.bert.dropout", t.BERT.Dropout)
	v.share("train.bert.drop_tokens", t.BERT.DropTokens)
	v.atLeast("train.bert.ngrams", t.BERT.NGrams, 0)
	v.atLeast("train.epochs", t.Epochs, 0)
	v.atLeast("train.max_instances", t.MaxInstances, 0)
	v.oneOf("train.sampler", t.Sampler)
	v.atLeast("train.threads", t.Threads, 0)
	v.check(deviceName.MatchString(t.Device), "train.device",
		"must be cpu, cuda or cuda:N, N the number of a GPU from 0")
	v.check(t.GPUMemory == 0 || t.Device != CPU, "train.gpu_memory", "has no effect with device: cpu")
	v.check(t.GPUMemory == 0 || t.GPUMemory >= 256*MiB, "train.gpu_memory",
		"must be at least 256MiB, or 0 for all, got %v", t.GPUMemory)
	v.oneOf("train.gpu_math", t.GPUMath)
	v.check(t.GPUMath == GPUMaths[0] || t.Device != CPU, "train.gpu_math", "has no effect with device: cpu")
	v.atLeastTime("train.checkpoint_every", t.CheckpointEvery, 100*time.Millisecond)
}

func (v *validator) evaluate(e *Evaluate) {
	v.check(e.HoldoutEdges >= 0 && e.HoldoutEdges <= 0.5, "evaluate.holdout_edges",
		"must be a share between 0 and 0.5, got %v", e.HoldoutEdges)
	v.check(e.HoldoutNodes >= 0 && e.HoldoutNodes <= 0.5, "evaluate.holdout_nodes",
		"must be a share between 0 and 0.5, got %v", e.HoldoutNodes)
	for i, rate := range e.ProbeRates {
		v.check(rate > 0 && rate < 1, fmt.Sprintf("evaluate.probe_rates[%d]", i),
			"must be a share between 0 and 1, both excluded, got %v", rate)
	}
}

func (v *validator) refresh(r *Refresh) {
	v.atLeast("refresh.min_nodes", r.MinNodes, 1)
	v.changes("refresh.min_changes", r.MinChanges)
	v.atLeastTime("refresh.max_age", r.MaxAge, time.Second)
	v.atLeast("refresh.keep", r.Keep, 1)
	v.oneOf("refresh.quality_gate", r.QualityGate)
	v.oneOf("refresh.space", r.Space)
	v.changes("refresh.drift.min_changes", r.Drift.MinChanges)
	for _, d := range []struct {
		field string
		most  float64
		got   float64
	}{{"unknown_ngrams", 1, r.Drift.UnknownNGrams}, {"label_fit", 2, r.Drift.LabelFit},
		{"link_auc", 1, r.Drift.LinkAUC}, {"cosine", 2, r.Drift.Cosine}} {
		v.check(d.got >= 0 && d.got < d.most, "refresh.drift."+d.field, "must lie in [0, %v), 0 for never, got %v",
			d.most, d.got)
	}
}

// changes checks how much must have changed.
func (v *validator) changes(field string, n float64) {
	share := n > 0 && n < 1
	count := n >= 1 && n <= 1<<53 && n == math.Trunc(n)
	v.check(share || count, field, "must be a share between 0 and 1, or a whole number of changes, got %v", n)
}

func (v *validator) outputs(c *Config) {
	v.oneOf("sink.format", c.Sink.Format)
	v.oneOf("sink.embedding_type", c.Sink.EmbeddingType)
	v.atLeast("sink.embedding_dim", c.Sink.EmbeddingDim, 0)
	v.http(&c.HTTP)
	v.oneOf("log.level", c.Log.Level)
	v.oneOf("log.format", c.Log.Format)
	ratio := c.Telemetry.Traces.Ratio
	v.check(ratio >= 0 && ratio <= 1, "telemetry.traces.ratio", "must be a share between 0 and 1, got %v", ratio)
}

// Renamed has a hint for each field that the file gives by an old name, or that is no more.
func (c *Config) Renamed() []string { return c.renamed }

// Warnings lists settings that are allowed but should be deliberate.
func (c *Config) Warnings() []string {
	var out []string
	warn := func(when bool, text string) {
		if when {
			out = append(out, text)
		}
	}
	k := &c.Kafka
	warn(c.HTTP.Listen != "" && len(c.HTTP.Bearers()) == 0 && !loopback(c.HTTP.Listen),
		"http.listen: metrics are open to other machines, without authentication; set http.token")
	warn(k.TLS.InsecureSkipVerify, "kafka.tls.insecure_skip_verify: brokers are not authenticated")
	warn(k.SASL.Mechanism == "PLAIN" && !k.TLS.Enabled,
		"kafka.sasl.mechanism: PLAIN without TLS sends the password in the clear")
	for _, path := range c.inTheClear() {
		warn(true, path+": http sends the password or key in the clear")
	}
	warn(strings.HasPrefix(c.Store, "s3:") && c.S3.Insecure, "s3.insecure: objects travel in the clear")
	return out
}

func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(host, "@/?#") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func loopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// listPath is the path of entry i of a list; the only entry of a list may stand without brackets.
func listPath(path string, i, n int) string {
	if n == 1 {
		return path
	}
	return elementPath(path, i)
}

func elementPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
