package wiring

import (
	"fmt"
	"slices"
	"strings"

	"giantstream/config"
	"giantstream/ingest/decode"
	"giantstream/ingest/external"
	"giantstream/sink/rows"
)

// topicVector is a vector that a topic of attributes has.
type topicVector struct {
	topic string
	decode.Vector
}

// vectorFields returns the vectors of the topics of attributes, without what vectorFaults finds.
func vectorFields(cfg *config.Config) (fields []topicVector) {
	for _, text := range cfg.Ingest.Attributes.Vectors {
		topic, field, _ := strings.Cut(text, "/")
		if v, err := decode.ParseVector(field); err == nil && topic != "" {
			fields = append(fields, topicVector{topic, v})
		}
	}
	return fields
}

// vectorsOfNodes returns the vectors of node records, without what vectorFaults finds.
func vectorsOfNodes(cfg *config.Config) (all []decode.Vector) {
	for _, text := range cfg.Ingest.Nodes.Vectors {
		if v, err := decode.ParseVector(text); err == nil {
			all = append(all, v)
		}
	}
	return all
}

// attributeTopics returns the topics of the attributes, and then those of the vectors, as often as they are named.
func attributeTopics(cfg *config.Config) (topics []string) {
	for _, f := range attributeFields(cfg) {
		topics = append(topics, f.topic)
	}
	for _, f := range vectorFields(cfg) {
		topics = append(topics, f.topic)
	}
	return topics
}

// vectorFaults returns what is wrong with the vectors of nodes and of topics. A vector belongs to one input.
func vectorFaults(cfg *config.Config) (faults []config.Fault) {
	const ofNodes, ofTopics = "ingest.nodes.vectors", "ingest.attributes.vectors"
	var names []string
	count := map[string]int{}
	parse := func(path string, i int, topic, text string) {
		v, err := decode.ParseVector(text)
		count[topic]++
		what := ""
		switch {
		case err != nil:
			what = err.Error()
		case v.Name == external.Name && cfg.Ingest.External.Model != "":
			what = fmt.Sprintf("vector %s is that of the model of ingest.external; give this one another name", v.Name)
		case v.Name == rows.OrderedName && cfg.OrderedRows() != "":
			what = fmt.Sprintf("vector %s is what nodes are ordered with; give this one another name", v.Name)
		case slices.Contains(names, v.Name):
			what = fmt.Sprintf("vector %s is given twice: it belongs to one input", v.Name)
		case count[topic] > decode.MaxVectors:
			what = fmt.Sprintf("vector %s is one more than the %d that an input may have", v.Name, decode.MaxVectors)
		}
		if names = append(names, v.Name); what != "" {
			faults = append(faults, config.Fault{Path: fmt.Sprintf("%s[%d]", path, i), Message: what})
		}
	}
	for i, text := range cfg.Ingest.Nodes.Vectors {
		parse(ofNodes, i, "", text)
	}
	for i, text := range cfg.Ingest.Attributes.Vectors {
		topic, vector, ok := strings.Cut(text, "/")
		if !ok || topic == "" {
			faults = append(faults, config.Fault{Path: fmt.Sprintf("%s[%d]", ofTopics, i),
				Message: "must be TOPIC/NAME=PATH:LENGTH, as in pictures/image=vector:512"})
			continue
		}
		parse(ofTopics, i, topic, vector)
	}
	return faults
}
