package ingesting

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// metrics of what this process reads and commits. A table in docs/OPERATIONS.md says what each is for.
type metrics struct {
	feed          feed.Metrics
	manifests     prometheus.Counter
	rows          prometheus.Counter
	attributeRows prometheus.Counter
	orderRows     prometheus.Counter
	vectorRows    prometheus.Counter
	shardRestarts prometheus.Counter
	setAside      prometheus.Counter
	restore       prometheus.Histogram
	// commit is of whole windows, manifest of the last step of a commit.
	commit, manifest prometheus.Histogram
	// partitions that the input topics have.
	partitions *prometheus.GaugeVec
	// Copies of shards' states in the store.
	checkpoints, checkpointFailures, checkpointBytes prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	counterOf := func(o prometheus.CounterOpts, load func() int64) {
		r.MustRegister(prometheus.NewCounterFunc(o, func() float64 { return float64(load()) }))
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		r.MustRegister(h)
		return h
	}
	m.manifests = counter("giantstream_manifests_committed_total", "Windows committed by this process.")
	m.rows = counter("giantstream_rows_committed_total", "Rows of nodes committed by this process.")
	m.orderRows = counter("giantstream_order_rows_committed_total",
		"Rows of orders committed by this process.")
	m.vectorRows = counter("giantstream_vector_rows_committed_total",
		"Rows of vectors committed by this process. They encode nothing.")
	m.attributeRows = counter("giantstream_attribute_rows_committed_total",
		"Rows of attributes alone committed by this process. They encode nothing.")
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
	r.MustRegister(m.partitions)
	m.checkpoints = counter("giantstream_checkpoints_total", "Copies of shards' states that are complete in the store.")
	m.checkpointFailures = counter("giantstream_checkpoint_failures_total",
		"Attempts to copy a shard's state to the store that failed.")
	m.checkpointBytes = counter("giantstream_checkpoint_bytes_total",
		"Bytes uploaded for copies of shards' states, those of failed attempts included.")
	for name, c := range map[string]struct {
		help string
		load func() int64
	}{
		"giantstream_records_read_total": {"Input records read, dead-lettered ones included.", m.feed.Records.Load},
		"giantstream_bytes_read_total":   {"Bytes of input records read.", m.feed.Bytes.Load},
		"giantstream_offsets_lost_total": {"Offsets deleted from a topic before they were read.", m.feed.Lost.Load},
		"giantstream_fetch_retries_total": {"Reads from brokers and schema registry that failed and were tried again.",
			m.feed.Retries.Load},
	} {
		counterOf(prometheus.CounterOpts{Name: name, Help: c.help}, c.load)
	}
	for _, code := range decode.Codes() {
		counterOf(prometheus.CounterOpts{Name: "giantstream_dead_letters_total",
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

func (m *metrics) committed(c *commitlog.Manifest) {
	m.manifests.Inc()
	m.rows.Add(float64(c.Rows))
	m.attributeRows.Add(float64(c.RowsOf(rows.NodeAttributes.Name)))
	m.orderRows.Add(float64(c.RowsOf(rows.Orders.Name)))
	m.vectorRows.Add(float64(c.RowsOf(rows.NodeVectors.Name)))
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
	shards  int
	watches *Watches
	waits   func() string // Ingest.waits
	// sourcesLost returns what the partitions of topics had deleted before it was copied.
	sourcesLost func() []commitlog.ShardLost
}

var (
	descAssigned = prometheus.NewDesc("giantstream_shards_assigned", "Shards that this process has.", nil, nil)
	descShards   = prometheus.NewDesc("giantstream_shards", "Shards of the pipeline, whoever has them.", nil, nil)
	descStopped  = prometheus.NewDesc("giantstream_shards_stopped",
		"Shards that have failed and are not yet ready again.", nil, nil)
	descWaits = prometheus.NewDesc("giantstream_ingest_waits", "1 while the process has no place in the consumer "+
		"group that it should have by now, or a shard with records to read commits nothing; /readyz says which.",
		nil, nil)
	descRestoring = prometheus.NewDesc("giantstream_shard_restoring",
		"1 while the shard's state lacks some of what is committed.", []string{"shard"}, nil)
	descAge = prometheus.NewDesc("giantstream_window_age_seconds",
		"How long the shard's oldest uncommitted change has waited.", []string{"shard"}, nil)
	descLag = prometheus.NewDesc("giantstream_lag_records",
		"Records of the shard's partition of a topic that its manifests do not cover.", []string{"topic", "shard"}, nil)
	descHeld = prometheus.NewDesc("giantstream_held_records",
		"Records of the shard's partition of a topic that an open transaction of a producer holds back.",
		[]string{"topic", "shard"}, nil)
	descStatements = prometheus.NewDesc("giantstream_statements_total",
		"Records of the shard's partition of a topic that its manifests cover, each once, by what became of it.",
		[]string{"topic", "shard", "outcome"}, nil)
	descLost = prometheus.NewDesc("giantstream_lost_records",
		"Offsets of a topic whose records are lost to the shard, and whose loss nobody has accepted. Of a topic that "+
			"is copied, the shard is its partition.",
		[]string{"topic", "shard"}, nil)
)

// Describe implements prometheus.Collector.
func (c shardCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descShards, descAssigned, descStopped, descWaits, descRestoring, descAge,
		descLag,
		descHeld, descLost, descStatements} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c shardCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	all := c.watches.States()
	gauge(descShards, float64(c.shards))
	gauge(descAssigned, float64(len(all)))
	gauge(descStopped, float64(len(c.watches.failures())))
	// Of all processes one counts what a partition of a source has lost: the one with the shard of that number.
	sources := map[string]map[int]int64{}
	for _, l := range c.sourcesLost() {
		if slices.ContainsFunc(all, func(s ShardState) bool { return s.Shard == l.Shard%c.shards }) {
			if sources[l.Topic] == nil {
				sources[l.Topic] = map[int]int64{}
			}
			sources[l.Topic][l.Shard] += l.Offsets
		}
	}
	for topic, partitions := range sources {
		for p, lost := range partitions {
			gauge(descLost, float64(lost), topic, strconv.Itoa(p))
		}
	}
	waits := 0.0
	if c.waits() != "" {
		waits = 1
	}
	gauge(descWaits, waits)
	for _, s := range all {
		shard := strconv.Itoa(s.Shard)
		restoring := 1.0
		if s.Ready {
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
		for topic, c := range s.counted {
			all := c.Total()
			for outcome, n := range map[string]int64{"applied": all.Applied, "superseded": all.Superseded,
				"repeated": all.Repeated, "expired": all.Expired, "dead_letter": all.DeadLetters, "empty": all.Empty} {
				out <- prometheus.MustNewConstMetric(descStatements, prometheus.CounterValue, float64(n), topic,
					shard, outcome)
			}
		}
		for topic, lag := range s.lag {
			gauge(descLag, float64(lag), topic, shard)
		}
	}
}
