package refreshing

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/featurize/tfidf"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
)

// metrics of the generations that this process serves and builds.
type metrics struct {
	generation, shortfalls, declines, refused, held, damaged, canary prometheus.Gauge
	neighboursKept, newOnOld, moved                                  prometheus.Gauge
	building                                                         prometheus.Gauge
	refreshFailed                                                    prometheus.Counter
	// unknownLabels and ngrams count in the generation that is served.
	unknownLabels atomic.Int64
	ngrams        tfidf.NGramCount
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	m.generation = gauge("giantstream_generation", "The generation being served, 0 before the first.")
	m.shortfalls = gauge("giantstream_generation_shortfalls",
		"Figures in which the encoder of the generation being served is worse than text alone on held-out data.")
	m.declines = gauge("giantstream_generation_declines",
		"Figures in which the encoder of the generation being served is less ahead of text alone than that of one of "+
			"the ten before it.")
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
		"The canary, a generation that only the topic sink.canary_topic has until it is promoted; 0 for none.")
	m.held = gauge("giantstream_generation_held",
		"The newest generation, if it is ready and people have withdrawn it or pinned an older one; else 0.")
	m.damaged = gauge("giantstream_generation_damaged",
		"The newest generation, if it is damaged in the store and none has replaced it yet; else 0.")
	m.building = gauge("giantstream_refresh_building", "1 while this process builds a generation.")
	m.refreshFailed = prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_refresh_failures_total",
		Help: "Builds of a generation that failed in this process."})
	r.MustRegister(m.refreshFailed)
	for name, c := range map[string]struct {
		help string
		load func() int64
	}{
		"giantstream_labels_unknown_total": {"Labels of rows built by this process that are in no cluster of the " +
			"generation served: newer than it, deleted or isolated.",
			m.unknownLabels.Load},
		"giantstream_ngrams_total": {"N-grams of the texts of rows built by this process.", m.ngrams.Total},
		"giantstream_ngrams_unknown_total": {"Those of them that are no features of the generation served.",
			m.ngrams.Unknown},
	} {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: c.help},
			func() float64 { return float64(c.load()) }))
	}
	return m
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

var (
	descDriftRows = prometheus.NewDesc("giantstream_drift_rows_share",
		"Rows committed since the cut of the newest generation, as a share of the live nodes.", nil, nil)
	descDriftNGrams = prometheus.NewDesc("giantstream_drift_ngrams_unknown_share",
		"Share of the n-grams of rows built by this process since the generation is served that its vocabulary lacks.",
		nil, nil)
	descFittedNGrams = prometheus.NewDesc("giantstream_generation_ngrams_unknown_share",
		"Share of the n-grams of the texts at the generation's cut that its vocabulary lacks.", nil, nil)
	descDriftCosine = prometheus.NewDesc("giantstream_drift_cosine",
		"Mean cosine of the embeddings of changed nodes before and after the change, since the generation's cut.",
		nil, nil)
	descMeasure = prometheus.NewDesc("giantstream_drift_measure", "A measure of refresh.drift, of what was committed "+
		"since the cut of the generation being served; absent with fewer than 200 cases.", []string{"measure"}, nil)
	descMeasureAtCut = prometheus.NewDesc("giantstream_drift_measure_at_cut", "The same measure at the cut.",
		[]string{"measure"}, nil)
	descMeasureLimit = prometheus.NewDesc("giantstream_drift_measure_limit",
		"The value of the measure beyond which a new generation is due.", []string{"measure"}, nil)
	descMeasureCases = prometheus.NewDesc("giantstream_drift_measure_cases",
		"Texts, labels or edges that were measured since the cut.", []string{"measure"}, nil)
	descDriftMoved = prometheus.NewDesc("giantstream_drift_moved_share",
		"Share of those nodes with a cosine below 0.9.", nil, nil)
)

// driftCollector collects what the process knows of the drift.
type driftCollector struct{ refresh *Refresh }

// Describe implements prometheus.Collector.
func (c driftCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDriftRows, descDriftNGrams, descFittedNGrams, descDriftCosine,
		descDriftMoved, descMeasure, descMeasureAtCut, descMeasureLimit, descMeasureCases} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c driftCollector) Collect(out chan<- prometheus.Metric) {
	d := c.refresh.Drift()
	if d == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, v *float64, labels ...string) {
		if v != nil {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, *v, labels...)
		}
	}
	for _, m := range d.Measures {
		gauge(descMeasure, m.Now, m.Name)
		gauge(descMeasureAtCut, m.AtCut, m.Name)
		gauge(descMeasureLimit, m.Limit, m.Name)
		gauge(descMeasureCases, new(float64(m.Cases)), m.Name)
	}
	gauge(descDriftRows, d.RowsShare)
	gauge(descDriftNGrams, d.NGramsUnknown)
	gauge(descFittedNGrams, d.NGramsUnknownFitted)
	if e := d.Embeddings; e != nil {
		gauge(descDriftCosine, e.Cosine)
		gauge(descDriftMoved, e.Moved)
	}
}
