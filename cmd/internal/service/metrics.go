package service

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/featurize/tfidf"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
)

// metrics are served at /metrics. Names follow Prometheus' conventions. A table in
// docs/OPERATIONS.md says what each is for.
type metrics struct {
	registry      *prometheus.Registry
	feed          feed.Metrics
	manifests     prometheus.Counter
	rows          prometheus.Counter
	superseded    prometheus.Counter
	shardRestarts prometheus.Counter
	setAside      prometheus.Counter
	restore       prometheus.Histogram
	// commit is of whole windows, manifest of the last step of a commit.
	commit, manifest prometheus.Histogram
	// partitions that the input topics have.
	partitions *prometheus.GaugeVec
	// Copies of shards' states in the store.
	checkpoints, checkpointFailures, checkpointBytes prometheus.Counter
	standbyBytes                                     prometheus.Counter
	published, canaryPublished                       prometheus.Counter
	freshness                                        prometheus.Histogram
	generation                                       prometheus.Gauge
	shortfalls, refused, held, damaged, canary       prometheus.Gauge
	neighboursKept, newOnOld, moved                  prometheus.Gauge
	building                                         prometheus.Gauge
	refreshFailed                                    prometheus.Counter
	// reloaded: whether the configuration could be read again.
	reloaded prometheus.Gauge
	// Questions answered with the role serve.
	answers       *prometheus.CounterVec
	answerSeconds *prometheus.HistogramVec
	// unknownLabels counts in the generation that is served.
	unknownLabels atomic.Int64
	ngrams        tfidf.NGramCount
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := buildinfo.Read()
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_build_info",
		Help:        "1, with the program's version, its source's revision and the version of Go as labels.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Revision, "goversion": build.Go}},
		func() float64 { return 1 }))
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		m.registry.MustRegister(h)
		return h
	}
	m.manifests = counter("giantstream_manifests_committed_total", "Windows committed by this process.")
	m.rows = counter("giantstream_rows_committed_total", "Rows committed by this process.")
	m.superseded = counter("giantstream_statements_superseded_total",
		"Statements about a node or an edge that lost to one with a later event time.")
	m.shardRestarts = counter("giantstream_shard_restarts_total", "Shards started again after a failure.")
	m.setAside = counter("giantstream_states_set_aside_total",
		"Local states that were damaged, set aside and built again.")
	m.restore = histogram("giantstream_shard_restore_seconds",
		"How long shards that came to this process took until their state had all that was committed.",
		0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)
	m.commit = histogram("giantstream_commit_seconds",
		"How long shards took to commit a window: rows, mirror, manifest.", stepBuckets...)
	m.manifest = histogram("giantstream_manifest_seconds",
		"How long shards waited for their manifest to be written.", stepBuckets...)
	m.partitions = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "giantstream_input_partitions",
		Help: "Partitions that an input topic had when a shard of this process looked last."}, []string{"topic"})
	m.registry.MustRegister(m.partitions)
	m.checkpoints = counter("giantstream_checkpoints_total", "Copies of shards' states that are complete in the store.")
	m.standbyBytes = counter("giantstream_standby_bytes_total",
		"Bytes of checkpoints that were fetched to keep shards of other processes warm.")
	m.checkpointFailures = counter("giantstream_checkpoint_failures_total",
		"Attempts to copy a shard's state to the store that failed.")
	m.checkpointBytes = counter("giantstream_checkpoint_bytes_total",
		"Bytes uploaded for copies of shards' states, those of failed attempts included.")
	m.published = counter("giantstream_embeddings_published_total",
		"Embeddings and tombstones acknowledged by the sink topic.")
	m.canaryPublished = counter("giantstream_canary_embeddings_published_total",
		"Embeddings and tombstones acknowledged by the topic of new generations, sink.canary_topic.")
	m.freshness = histogram("giantstream_embedding_freshness_seconds",
		"From a change's event time until the sink topic has acknowledged its embedding.",
		0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 1800, 7200)
	m.generation = gauge("giantstream_generation", "The generation being served, 0 before the first.")
	m.shortfalls = gauge("giantstream_generation_shortfalls",
		"Figures in which the encoder of the generation being served is worse than text alone on held-out data.")
	m.neighboursKept = gauge("giantstream_generation_neighbours_kept",
		"Share of the ten nearest neighbours that stayed from the generation before to the one being served; 1 for "+
			"the first.")
	m.newOnOld = gauge("giantstream_generation_new_query_on_old_index",
		"Share of a new vector's ten nearest that it finds among the vectors of the generation before; 1 for the "+
			"first.")
	m.moved = gauge("giantstream_generation_moved_share",
		"Share of the nodes whose vector has a cosine below 0.9 to that of the generation before; 0 for the first.")
	m.refused = gauge("giantstream_generation_refused",
		"The newest generation, if refresh.quality_gate has refused it and an older one keeps serving; else 0.")
	m.canary = gauge("giantstream_generation_canary",
		"The generation on trial, which a share of the nodes or the topic sink.canary_topic has; 0 for none.")
	m.held = gauge("giantstream_generation_held",
		"The newest generation, if it is ready and people have withdrawn it or pinned an older one; else 0.")
	m.damaged = gauge("giantstream_generation_damaged",
		"The newest generation, if it is damaged in the store and none has replaced it yet; else 0.")
	m.building = gauge("giantstream_refresh_building", "1 while this process builds a generation.")
	m.refreshFailed = counter("giantstream_refresh_failures_total",
		"Builds of a generation that failed in this process.")
	m.reloaded = gauge("giantstream_config_last_reload_successful",
		"1 if the configuration took effect when it was last read, at the start or again; else 0.")
	m.reloaded.Set(1)
	m.answers = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "giantstream_http_answers_total",
		Help: "Answers to questions about similar items, by kind and HTTP status."}, []string{"kind", "status"})
	m.answerSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "giantstream_http_answer_seconds",
		Help:    "How long those answers took, waiting included.",
		Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .5, 1, 5}}, []string{"kind"})
	m.registry.MustRegister(m.answers, m.answerSeconds)
	for name, c := range map[string]struct {
		help string
		load func() int64
	}{
		"giantstream_records_read_total": {"Input records read, dead-lettered ones included.", m.feed.Records.Load},
		"giantstream_bytes_read_total":   {"Bytes of input records read.", m.feed.Bytes.Load},
		"giantstream_offsets_lost_total": {"Offsets deleted from a topic before they were read.", m.feed.Lost.Load},
		"giantstream_fetch_retries_total": {"Reads from brokers and schema registry that failed and were tried again.",
			m.feed.Retries.Load},
		"giantstream_labels_unknown_total": {"Labels of rows built by this process that are in no cluster of the " +
			"generation served: newer than it, deleted or isolated.",
			m.unknownLabels.Load},
		"giantstream_ngrams_total": {"N-grams of the texts of rows built by this process.", m.ngrams.Total},
		"giantstream_ngrams_unknown_total": {"Those of them that are no features of the generation served.",
			m.ngrams.Unknown},
	} {
		m.counterOf(prometheus.CounterOpts{Name: name, Help: c.help}, c.load)
	}
	for _, code := range decode.Codes() {
		m.counterOf(prometheus.CounterOpts{Name: "giantstream_dead_letters_total",
			Help:        "Records sent to the dead-letter topic, by code.",
			ConstLabels: prometheus.Labels{"code": string(code)}}, func() int64 { return m.feed.Letters(code) })
	}
	return m
}

// stepBuckets are those of parts of a commit, in seconds.
var stepBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// step measures a step of a shard (shard.Options.Step), if it has a histogram, until the function it returns is called.
func (m *metrics) step(name string) func() {
	var h prometheus.Histogram
	switch name {
	case "commit":
		h = m.commit
	case "manifest":
		h = m.manifest
	default:
		return func() {}
	}
	began := time.Now()
	return func() { h.Observe(time.Since(began).Seconds()) }
}

// counterOf registers a counter that is kept elsewhere.
func (m *metrics) counterOf(o prometheus.CounterOpts, load func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(o, func() float64 { return float64(load()) }))
}

func (m *metrics) answered(kind string, took time.Duration, status int) {
	m.answers.WithLabelValues(kind, strconv.Itoa(status)).Inc()
	m.answerSeconds.WithLabelValues(kind).Observe(took.Seconds())
}

// compared notes how a generation compares with the one before, nil for the first.
func (m *metrics) compared(o *generation.OverlapStats) {
	all := eval.Overlap{Kept: 1, NewOnOld: 1}
	if o != nil {
		all = o.Overlap
	}
	m.neighboursKept.Set(all.Kept)
	m.newOnOld.Set(all.NewOnOld)
	m.moved.Set(all.Moved)
}

func (m *metrics) committed(c *commitlog.Manifest) {
	m.manifests.Inc()
	m.rows.Add(float64(c.Rows))
}

func (m *metrics) checkpointed(uploaded int64, err error) {
	m.checkpointBytes.Add(float64(uploaded))
	if err != nil {
		m.checkpointFailures.Inc()
		return
	}
	m.checkpoints.Inc()
}

// shardCollector collects metrics of the shards that this process has. It reads their watches and
// makes no requests.
type shardCollector struct {
	watches  *watches
	standbys *standbys
}

var (
	descAssigned = prometheus.NewDesc("giantstream_shards_assigned", "Shards that this process has.", nil, nil)
	descStopped  = prometheus.NewDesc("giantstream_shards_stopped",
		"Shards that have failed and are not yet ready again.", nil, nil)
	descRestoring = prometheus.NewDesc("giantstream_shard_restoring",
		"1 while the shard's state lacks some of what is committed.", []string{"shard"}, nil)
	descAge = prometheus.NewDesc("giantstream_window_age_seconds",
		"How long the shard's oldest uncommitted change has waited.", []string{"shard"}, nil)
	descLag = prometheus.NewDesc("giantstream_lag_records",
		"Records of the shard's partition of a topic that its manifests do not cover.", []string{"topic", "shard"}, nil)
	descHeld = prometheus.NewDesc("giantstream_held_records",
		"Records of the shard's partition of a topic that an open transaction of a producer holds back.",
		[]string{"topic", "shard"}, nil)
	descLost = prometheus.NewDesc("giantstream_lost_records",
		"Offsets of a topic whose records are lost to the shard, and whose loss nobody has accepted.",
		[]string{"topic", "shard"}, nil)
	descStandby = prometheus.NewDesc("giantstream_standby_age_seconds",
		"How old the checkpoint is that this process keeps of a shard of another one.", []string{"shard"}, nil)
)

// Describe implements prometheus.Collector.
func (c shardCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descAssigned, descStopped, descRestoring, descAge, descLag, descHeld,
		descLost, descStandby} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c shardCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for p, age := range c.standbys.ages(time.Now()) {
		gauge(descStandby, age.Seconds(), strconv.Itoa(p))
	}
	all := c.watches.all()
	gauge(descAssigned, float64(len(all)))
	gauge(descStopped, float64(len(c.watches.failures())))
	for _, s := range all {
		shard := strconv.Itoa(s.shard)
		restoring := 1.0
		if s.ready {
			restoring = 0
		}
		gauge(descRestoring, restoring, shard)
		gauge(descAge, s.windowAge.Seconds(), shard)
		for topic, lost := range s.lost {
			gauge(descLost, float64(lost), topic, shard)
		}
		for topic, held := range s.held {
			gauge(descHeld, float64(held), topic, shard)
		}
		for topic, lag := range s.lag {
			gauge(descLag, float64(lag), topic, shard)
		}
	}
}
