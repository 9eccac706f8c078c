package wiring

import (
	"fmt"
	"slices"

	"giantstream/config"
	"giantstream/ingest/decode"
)

// edgeTopics returns the topics of edges of one kind, without what edgeTopicFaults finds.
func edgeTopics(cfg *config.Config) (all []decode.EdgeTopic) {
	for _, text := range cfg.Ingest.Edges.Topics {
		if e, err := decode.ParseEdgeTopic(text); err == nil {
			all = append(all, e)
		}
	}
	return all
}

// edgesByTopic returns the mappings of the topics of edges of one kind: that of the topic of all kinds, but for the
// kind and the far ends.
func edgesByTopic(cfg *config.Config, of decode.EdgeMapping) map[string]decode.EdgeMapping {
	all := map[string]decode.EdgeMapping{}
	for _, e := range edgeTopics(cfg) {
		m := of
		m.Kind = fmt.Sprintf("%q", e.Kind)
		if e.Src != "" {
			m.Src, m.Dst = e.Src, e.Dst
		}
		all[ReadTopic(cfg, e.Topic)] = m
	}
	return all
}

// EdgesOf returns the topic whose records state the links of a kind, and their mapping.
func EdgesOf(cfg *config.Config, kind string) (topic string, m decode.EdgeMapping) {
	mapping, _ := MappingOf(cfg)
	for _, e := range edgeTopics(cfg) {
		if e.Kind == kind {
			topic = ReadTopic(cfg, e.Topic)
			return topic, mapping.EdgeTopics[topic]
		}
	}
	return TopicsOf(cfg).Edges, mapping.Edges
}

// edgeTopicFaults returns what is wrong with the topics of edges of one kind. Statements about a link compare by their
// offsets, so that those of a kind come from one topic.
func edgeTopicFaults(cfg *config.Config) (faults []config.Fault) {
	const path = "ingest.edges.topics"
	in := &cfg.Ingest.Edges
	fault := func(path, format string, args ...any) {
		faults = append(faults, config.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if len(in.Topics) == 0 {
		return nil
	}
	if in.Kind != "" && in.Kind[0] != '"' {
		fault("ingest.edges.kind", "must be a constant in double quotes, or empty, beside topics of one kind each "+
			"(%s)", path)
	}
	if in.Mode == string(decode.Replace) {
		fault("ingest.edges.mode", "must be add beside topics of one kind each (%s)", path)
	}
	var kinds, topics []string
	for i, text := range in.Topics {
		at := fmt.Sprintf("%s[%d]", path, i)
		e, err := decode.ParseEdgeTopic(text)
		switch {
		case err != nil:
			fault(at, "%v", err)
		case fmt.Sprintf("%q", e.Kind) == in.Kind:
			fault(at, "edges of kind %s come from %s already (ingest.edges.kind)", e.Kind, cfg.Kafka.Topics.Edges)
		case slices.Contains(kinds, e.Kind):
			fault(at, "edges of kind %s come from another topic already", e.Kind)
		case slices.Contains(topics, e.Topic):
			fault(at, "topic %s is given twice", e.Topic)
		}
		kinds, topics = append(kinds, e.Kind), append(topics, e.Topic)
	}
	return faults
}
