package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"giantstream/ingest/client"
	"giantstream/ingest/decode"
)

// ErrCompacted: a topic is compacted although its records do not replace one another.
var ErrCompacted = errors.New("topic must not be compacted")

// settings checks how long the topics keep their records.
func settings(ctx context.Context, o Options) (warnings []string, err error) {
	t := o.Topics
	names := append(t.Inputs(), t.Embeddings, t.DeadLetters)
	names = append(names, t.Sources()...)
	if t.Canary != "" {
		names = append(names, t.Canary)
	}
	have, err := o.Client.Settings(ctx, names...)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return []string{fmt.Sprintf("whether the topics keep their records was not checked (DescribeConfigs on "+
			"them allows it): %v", err)}, nil
	}
	return retentionWarnings(o, have), compacted(o, have)
}

// compacted returns ErrCompacted for topics that compaction takes facts from.
func compacted(o Options, have map[string]client.TopicSettings) error {
	var errs []error
	check := func(topic, why string) {
		if have[topic].Compact {
			errs = append(errs, fmt.Errorf("kafka topic %q: %w: %s; set cleanup.policy=delete and retention.ms=-1, "+
				"and send again what compaction has removed", topic, ErrCompacted, why))
		}
	}
	t := o.Topics
	if o.Mapping.Edges.Mode != decode.Replace {
		check(t.Edges, "with ingest.edges.mode add, an edge's record does not replace the one before it of "+
			"the same source")
	}
	for _, topic := range t.OneKind {
		check(topic, "an edge's record does not replace the one before it of the same source")
	}
	if t.Mirror != "" {
		check(t.Mirror, "it carries many facts per key")
	}
	return errors.Join(errs...)
}

// retentionWarnings warns of topics that lose what somebody needs, or keep what nobody does.
func retentionWarnings(o Options, have map[string]client.TopicSettings) (warnings []string) {
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	t := o.Topics
	for _, topic := range t.Inputs() {
		if s := have[topic]; !s.Keeps() {
			warn("kafka topic %q deletes its records (%s): a shard that has to be built again would lack what is "+
				"gone; set retention.ms=-1 and retention.bytes=-1", topic, retention(s))
		}
	}
	// Compaction takes only what loses to later records, but a fact of two records is whole only once both were read.
	early := func(topic string) bool { return have[topic].Compact && have[topic].CompactionLagMillis <= 0 }
	for _, in := range []struct {
		topic   string
		changes bool
	}{{t.Source(t.Nodes), o.Mapping.Nodes.Debezium},
		{t.Source(t.Edges), o.Mapping.Edges.Debezium}} {
		if in.changes && early(in.topic) {
			warn("kafka topic %q is compacted: compaction may leave the tombstone of a deleted row alone, which says "+
				"nothing without the deletion before it; set cleanup.policy=delete, or min.compaction.lag.ms above "+
				"the longest time that the pipeline may be away", in.topic)
		}
	}
	for _, in := range []struct {
		topic string
		lists bool
	}{{t.Nodes, len(o.Mapping.Nodes.Edges) > 0},
		{t.Edges, o.Mapping.Edges.Mode == decode.Replace}} {
		if in.lists && t.Mirror != "" && early(in.topic) {
			warn("kafka topic %q is compacted, and its records replace lists of links: after a crash or an absence, a "+
				"link of a list that compaction has removed may stay at its far end, though no record states it; set "+
				"min.compaction.lag.ms above the longest time that the pipeline may be away, or cleanup.policy=delete "+
				"and retention.ms=-1", in.topic)
		}
	}
	for _, topic := range []string{t.Embeddings, t.Canary} {
		if s, ok := have[topic]; ok && !s.Compact {
			warn("kafka topic %q is not compacted: it keeps every embedding ever published, or deletes current ones "+
				"by age; set cleanup.policy=compact", topic)
		}
	}
	if have[t.DeadLetters].Compact {
		warn("kafka topic %q is compacted: of a key's dead letters only the last is kept; set cleanup.policy=delete",
			t.DeadLetters)
	}
	return warnings
}

func retention(s client.TopicSettings) string {
	var bounds []string
	if s.RetentionMillis >= 0 {
		bounds = append(bounds, fmt.Sprintf("retention.ms=%d", s.RetentionMillis))
	}
	if s.RetentionBytes >= 0 {
		bounds = append(bounds, fmt.Sprintf("retention.bytes=%d", s.RetentionBytes))
	}
	return strings.Join(bounds, ", ")
}
