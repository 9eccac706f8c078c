package service

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/wiring"
	"giantstream/featurize/tfidf"
	"giantstream/train/generation"
)

// drift is what the process knows of how far the graph has gone from the generation being served. It costs no
// request and reads no row: every part is a by-product of other work.
type drift struct {
	mu sync.Mutex
	// rows and nodes are those of the last look at the commit logs (Service.changes); nodes is 0 before it.
	rows, nodes int64
	// base is what was counted when the generation began to be served, fitted the share of its own texts.
	base   tfidf.NGrams
	fitted float64
}

// changed notes a look at the commit logs.
func (d *drift) changed(rows, nodes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows, d.nodes = rows, nodes
}

// serves notes that a generation begins to be served, and what was counted until then.
func (d *drift) serves(doc *generation.Doc, counted *tfidf.NGramCount) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.base = tfidf.NGrams{Total: counted.Total(), Unknown: counted.Unknown()}
	d.fitted = doc.Vectorizer.UnknownShare
}

// drifted returns what is known now, nil before the first generation.
func (s *Service) drifted() *live.Drift {
	if s.Current() == nil {
		return nil
	}
	out := &live.Drift{RefreshAt: s.settings.get().Refresh.MinChanges}
	d := &s.drift
	d.mu.Lock()
	defer d.mu.Unlock()
	out.NGramsUnknownFitted = new(d.fitted)
	counted := &s.metrics.ngrams
	n := tfidf.NGrams{Total: counted.Total() - d.base.Total, Unknown: counted.Unknown() - d.base.Unknown}
	if n.Total > 0 {
		out.NGramsUnknown = new(n.Share())
	}
	if d.nodes > 0 {
		out.Rows, out.RowsShare = new(d.rows), new(float64(d.rows)/float64(d.nodes))
		if out.RefreshAt >= 1 { // a number of rows
			out.RefreshAt /= float64(d.nodes)
		}
	}
	if e, t := s.evidence.Load(), wiring.DriftThresholds(s.settings.get()); e != nil &&
		e.Generation == s.Current().Doc.Generation {
		out.Measures = slices.Collect(e.Findings(t))
		if out.NeedsShare = s.settings.get().Refresh.Drift.MinChanges; out.NeedsShare >= 1 {
			out.NeedsShare /= float64(max(1, d.nodes))
		}
	}
	if s.catalog != nil {
		if e, err := s.catalog.Drift(); err == nil {
			out.Embeddings = &e
		}
	}
	return out
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
type driftCollector struct{ service *Service }

// Describe implements prometheus.Collector.
func (c driftCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descDriftRows, descDriftNGrams, descFittedNGrams, descDriftCosine,
		descDriftMoved, descMeasure, descMeasureAtCut, descMeasureLimit, descMeasureCases} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c driftCollector) Collect(out chan<- prometheus.Metric) {
	d := c.service.drifted()
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
