package wiring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"giantstream/config"
	"giantstream/ingest/decode"
	"giantstream/sink/vectordb"
	"giantstream/train/answer/filter"
)

// topicAttribute is an attribute that a topic of attributes has.
type topicAttribute struct {
	topic string
	decode.Attribute
}

// attributeFields returns what the topics of attributes have, without what attributeFaults finds.
func attributeFields(cfg *config.Config) (fields []topicAttribute) {
	for _, text := range cfg.Ingest.Attributes.Fields {
		topic, attribute, _ := strings.Cut(text, "/")
		if a, err := decode.ParseAttribute(attribute); err == nil && topic != "" {
			fields = append(fields, topicAttribute{topic, a})
		}
	}
	return fields
}

// AttributesOf returns the attributes that nodes can have, whichever input they come from.
func AttributesOf(cfg *config.Config) (all []filter.Attribute) {
	add := func(a decode.Attribute) { all = append(all, filter.Attribute{Name: a.Name, Type: filter.Type(a.Type)}) }
	for _, text := range cfg.Ingest.Nodes.Attributes {
		if a, err := decode.ParseAttribute(text); err == nil { // else attributeFaults has it
			add(a)
		}
	}
	for _, f := range attributeFields(cfg) {
		add(f.Attribute)
	}
	return all
}

// sinkColumns are what the tables of sinks have beside attributes.
var sinkColumns = []string{"attributes_offset", "deleted", "embedding", "event_time", "generation", "id",
	"kafka_offset", "kafka_partition", "node_id", "seq", "shard", "space", "status", "topic_offset"}

// maxSinkColumn is how long a name may be in PostgreSQL.
const maxSinkColumn = 63

// SinkAttributes returns the attributes that travel with the embeddings, in the order in which they are configured.
func SinkAttributes(cfg *config.Config) (all []vectordb.Attribute) {
	known := AttributesOf(cfg)
	for _, name := range cfg.Sinks.Attributes {
		for _, a := range known {
			if a.Name == name {
				all = append(all, vectordb.Attribute{Name: name, Type: vectordb.AttributeType(a.Type)})
				break
			}
		}
	}
	return all
}

// sinkAttributeFaults returns what is wrong with the attributes that travel with the embeddings.
func sinkAttributeFaults(cfg *config.Config) (faults []config.Fault) {
	var names []string
	for _, a := range AttributesOf(cfg) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	for i, name := range cfg.Sinks.Attributes {
		var message string
		switch {
		case !slices.Contains(names, name):
			message = fmt.Sprintf("no attribute is called %q; ingest.nodes.attributes and ingest.attributes.fields "+
				"name %s", name, cmp.Or(strings.Join(names, ", "), "none"))
		case slices.Contains(sinkColumns, strings.ToLower(name)):
			message = fmt.Sprintf("%s is a column of the sinks' own: give the attribute another name, as in "+
				"item_%s=%s", name, name, name)
		case len(name) > maxSinkColumn:
			message = fmt.Sprintf("the name has %d bytes; a column's takes %d", len(name), maxSinkColumn)
		case slices.Contains(cfg.Sinks.Attributes[:i], name):
			message = fmt.Sprintf("attribute %s is given twice", name)
		default:
			continue
		}
		faults = append(faults, config.Fault{Path: fmt.Sprintf("sinks.attributes[%d]", i), Message: message})
	}
	return faults
}

// attributeFaults returns what is wrong with the attributes of nodes and of topics. An attribute belongs to one input.
func attributeFaults(cfg *config.Config) (faults []config.Fault) {
	fault := func(path string, i int, format string, args ...any) {
		faults = append(faults, config.Fault{Path: fmt.Sprintf("%s[%d]", path, i),
			Message: fmt.Sprintf(format, args...)})
	}
	const ofNodes, ofTopics = "ingest.nodes.attributes", "ingest.attributes.fields"
	var names []string
	parse := func(path string, i int, text string) {
		a, err := decode.ParseAttribute(text)
		switch {
		case err != nil:
			fault(path, i, "%v", err)
		case slices.Contains(names, a.Name):
			fault(path, i, "attribute %s is given twice: it belongs to one input", a.Name)
		}
		names = append(names, a.Name)
	}
	for i, text := range cfg.Ingest.Nodes.Attributes {
		parse(ofNodes, i, text)
	}
	topics := map[string]int{}
	for _, f := range vectorFields(cfg) {
		topics[f.topic] = 0
	}
	for i, text := range cfg.Ingest.Attributes.Fields {
		topic, attribute, ok := strings.Cut(text, "/")
		if !ok || topic == "" {
			fault(ofTopics, i, "must be TOPIC/NAME[:TYPE][=PATH], as in prices/price:number")
			continue
		}
		parse(ofTopics, i, attribute)
		if topics[topic]++; topics[topic] == decode.MaxAttributes+1 {
			fault(ofTopics, i, "topic %s has more than %d attributes", topic, decode.MaxAttributes)
		}
	}
	if n := len(cfg.Ingest.Nodes.Attributes); n > decode.MaxAttributes {
		fault(ofNodes, decode.MaxAttributes, "the %d attributes are more than %d", n, decode.MaxAttributes)
	}
	if len(topics) > 0 && cfg.Ingest.Attributes.ID == "" {
		faults = append(faults, config.Fault{Path: "ingest.attributes.id", Message: "must be given"})
	}
	return faults
}
