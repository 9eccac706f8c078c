package ingesting

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
)

// fieldCounts count in how many records that this process has read each mapped field has a value.
type fieldCounts struct {
	topics   []string
	decoders map[string]*decode.Decoder // for the names of the fields
	byTopic  map[string]*decode.Tally
}

// newFieldCounts counts what producers send, not what the pipeline itself does.
func newFieldCounts(c *feed.Config) (*fieldCounts, error) {
	f := &fieldCounts{decoders: map[string]*decode.Decoder{}, byTopic: map[string]*decode.Tally{}}
	for _, topic := range c.Topics.Given() {
		if topic == c.Topics.External {
			continue
		}
		d, err := c.Decoder(topic, 1)
		if err != nil {
			return nil, err
		}
		f.topics = append(f.topics, topic)
		f.decoders[topic], f.byTopic[topic] = d, d.NewTally()
	}
	return f, nil
}

// tallies adds up those of topics that are mapped alike.
func (f *fieldCounts) tallies() (all []decode.Filled) {
	for _, topic := range f.topics {
		for _, of := range f.byTopic[topic].Fields(f.decoders[topic]) {
			at := slices.IndexFunc(all, func(o decode.Filled) bool { return o.Field == of.Field && o.Path == of.Path })
			if at < 0 {
				all = append(all, of)
				continue
			}
			all[at].Records += of.Records
			all[at].Filled += of.Filled
		}
	}
	return all
}

var (
	descFilled = prometheus.NewDesc("giantstream_mapped_field_filled_total",
		"Records read in which a mapped field has a value.", []string{"field", "path"}, nil)
	descMapped = prometheus.NewDesc("giantstream_mapped_field_records_total",
		"Records read that could have a value of a mapped field.", []string{"field", "path"}, nil)
)

// Describe implements prometheus.Collector.
func (f *fieldCounts) Describe(out chan<- *prometheus.Desc) { out <- descFilled; out <- descMapped }

// Collect implements prometheus.Collector.
func (f *fieldCounts) Collect(out chan<- prometheus.Metric) {
	for _, c := range f.tallies() {
		out <- prometheus.MustNewConstMetric(descFilled, prometheus.CounterValue, float64(c.Filled), c.Field, c.Path)
		out <- prometheus.MustNewConstMetric(descMapped, prometheus.CounterValue, float64(c.Records), c.Field, c.Path)
	}
}

const (
	// fieldCheckEvery is how often a running service looks at the mapped fields.
	fieldCheckEvery = 10 * time.Second
	// fieldCheckRecords is how many records must have come before a field counts as missing.
	fieldCheckRecords = 1000
)

// watchFields warns of mapped fields that hardly any record has. It warns again only after the share has
// risen over the threshold in between.
func (in *Ingest) watchFields(ctx context.Context) error {
	tick := time.NewTicker(fieldCheckEvery)
	defer tick.Stop()
	watch := fieldWatch{last: map[string]decode.Filled{}, low: map[string]bool{}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		watch.threshold = in.Settings.Get().Ingest.MinFilled
		for _, f := range watch.check(in.fields.tallies()) {
			in.Log.Warn("a field of the mapping is missing in most records; see 'giantstream preview'",
				"field", f.Field, "path", f.Path, "records", f.Records, "with_value", f.Filled,
				"threshold", watch.threshold)
		}
	}
}

// fieldWatch finds fields that are filled too seldom in the records since it looked last.
type fieldWatch struct {
	threshold float64
	last      map[string]decode.Filled
	low       map[string]bool
}

// check returns the fields that have become too seldom: at most the threshold of at least
// fieldCheckRecords records. Attributes, vectors and quantities may rightly be rare, so of these it returns
// what none of the records has. Class, deletion marks and event times are not looked at.
func (w *fieldWatch) check(now []decode.Filled) (low []decode.Filled) {
	for _, f := range now {
		threshold := w.threshold
		switch f.Field {
		case "nodes.id", "nodes.text", "nodes.edges", "edges.src", "edges.dst", "attributes.id", "baskets.id",
			"baskets.items":
		case "nodes.attributes", "nodes.vectors", "attributes.fields", "attributes.vectors", "baskets.quantity":
			threshold = 0
		default:
			continue
		}
		key := f.Field + " " + f.Path
		before := w.last[key]
		since := f
		since.Records -= before.Records
		since.Filled -= before.Filled
		if since.Records < fieldCheckRecords {
			continue
		}
		w.last[key] = f
		was := w.low[key]
		w.low[key] = float64(since.Filled) <= threshold*float64(since.Records)
		if w.low[key] && !was {
			low = append(low, since)
		}
	}
	return low
}
