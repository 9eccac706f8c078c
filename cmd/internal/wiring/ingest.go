package wiring

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"giantstream/config"
	"giantstream/ingest"
	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/external"
	"giantstream/ingest/ordered"
	"giantstream/ingest/preview"
	"giantstream/internal/ambient"
	"giantstream/stream/mutation"
)

// TopicsOf returns the names of a pipeline's topics.
func TopicsOf(cfg *config.Config) ingest.Topics {
	t := ingest.Topics{Nodes: cfg.Kafka.Topics.Nodes, Edges: cfg.Kafka.Topics.Edges,
		Embeddings: cfg.Kafka.Topics.Embeddings, Canary: cfg.Sink.CanaryTopic,
		DeadLetters: cfg.DeadLetters()}
	for _, topic := range attributeTopics(cfg) {
		if !slices.Contains(t.Further, topic) {
			t.Further = append(t.Further, topic)
		}
	}
	if t.Orders = cfg.Ingest.Baskets.Topic; t.Orders != "" {
		t.Further = append(t.Further, t.Orders)
	}
	for _, e := range edgeTopics(cfg) {
		t.Further = append(t.Further, e.Topic)
		t.OneKind = append(t.OneKind, e.Topic)
	}
	if cfg.Ingest.Undirected {
		t.Mirror = cfg.Mirror()
	}
	t.External = cfg.ExternalVectors()
	if cfg.Ingest.Repartition {
		repartition(cfg, &t)
	}
	if t.External != "" {
		t.Further = append(t.Further, t.External)
	}
	if t.Ordered = cfg.OrderedRows(); t.Ordered != "" {
		t.Further = append(t.Further, t.Ordered)
	}
	return t
}

// repartition lets shards read copies of the topics.
func repartition(cfg *config.Config, t *ingest.Topics) {
	t.Origins = map[string]string{}
	keyed := func(topic *string) {
		source := *topic
		*topic = cfg.Keyed(source)
		t.Origins[*topic] = source
	}
	keyed(&t.Nodes)
	keyed(&t.Edges)
	for i := range t.Further {
		keyed(&t.Further[i])
	}
	for i, source := range t.OneKind {
		t.OneKind[i] = cfg.Keyed(source)
	}
	if t.Orders != "" {
		t.Orders = cfg.Keyed(t.Orders)
	}
}

// ReadTopic returns the topic in which shards read what a producer sends to a topic.
func ReadTopic(cfg *config.Config, topic string) string {
	if cfg.Ingest.Repartition {
		return cfg.Keyed(topic)
	}
	return topic
}

// MappingOf returns how records become nodes and edges, and their limits.
func MappingOf(cfg *config.Config) (decode.Mapping, decode.Limits) {
	in := cfg.Ingest
	var ofNodes []decode.Attribute
	ofTopics := map[string]decode.AttributesMapping{}
	for _, topic := range attributeTopics(cfg) {
		ofTopics[ReadTopic(cfg, topic)] = decode.AttributesMapping{ID: in.Attributes.ID,
			EventTime: in.Attributes.EventTime}
	}
	for _, f := range attributeFields(cfg) {
		topic := ReadTopic(cfg, f.topic)
		m := ofTopics[topic]
		m.Attributes = append(m.Attributes, f.Attribute)
		ofTopics[topic] = m
	}
	for _, f := range vectorFields(cfg) {
		topic := ReadTopic(cfg, f.topic)
		m := ofTopics[topic]
		m.Vectors = append(m.Vectors, f.Vector)
		ofTopics[topic] = m
	}
	if topic := cfg.ExternalVectors(); topic != "" {
		ofTopics[topic] = external.Mapping(in.External.Dimensions)
	}
	if topic := cfg.OrderedRows(); topic != "" {
		ofTopics[topic] = ordered.Mapping()
	}
	for _, text := range in.Nodes.Attributes {
		if a, err := decode.ParseAttribute(text); err == nil { // else mappingFaults has it
			ofNodes = append(ofNodes, a)
		}
	}
	edges := decode.EdgeMapping{Debezium: in.Edges.Format == config.Debezium, Src: in.Edges.Src,
		Dst: in.Edges.Dst, EventTime: in.Edges.EventTime, Mode: decode.Mode(in.Edges.Mode), Deleted: in.Edges.Deleted,
		Weight: in.Edges.Weight, Kind: in.Edges.Kind, Directed: in.Edges.Directed}
	return decode.Mapping{
			Attributes: ofTopics, Orders: ordersOf(cfg), Edges: edges, EdgeTopics: edgesByTopic(cfg, edges),
			Nodes: decode.NodeMapping{Debezium: in.Nodes.Format == config.Debezium, ID: in.Nodes.ID,
				Text: in.Nodes.Text, StripHTML: in.Nodes.StripHTML, Class: in.Nodes.Class,
				UsualClass: in.Nodes.Class == config.Default().Ingest.Nodes.Class,
				EventTime:  in.Nodes.EventTime, Edges: edgesOfNodes(cfg), Deleted: in.Nodes.Deleted,
				Directed: in.Edges.Directed, Attributes: ofNodes, Vectors: vectorsOfNodes(cfg)},
		}, decode.Limits{RecordBytes: int(in.Limits.RecordBytes), TextBytes: int(in.Limits.TextBytes),
			EdgesPerRecord: in.Limits.EdgesPerRecord}
}

// edgesOfNodes returns where node records carry edges, without what mappingFaults finds.
func edgesOfNodes(cfg *config.Config) (all []decode.EdgePath) {
	for _, text := range cfg.Ingest.Nodes.Edges {
		if e, err := decode.ParseEdgePath(text); err == nil {
			all = append(all, e)
		}
	}
	return all
}

// ordersOf returns the mapping of orders by topic, nil for none.
func ordersOf(cfg *config.Config) map[string]decode.OrderMapping {
	b := &cfg.Ingest.Baskets
	if b.Topic == "" {
		return nil
	}
	return map[string]decode.OrderMapping{ReadTopic(cfg, b.Topic): {Debezium: b.Format == config.Debezium,
		ID: b.ID, Items: b.Items, Quantity: b.Quantity, Time: b.Time, EventTime: b.EventTime, Kind: b.Kind,
		Customer: b.Customer, Deleted: b.Deleted, Mode: decode.Mode(b.Mode), MaxItems: b.MaxItems}}
}

// PreviewOf returns the options of a preview of records of the nodes, and as many of the edges, that
// keeps rows of them. A field that the configuration names, where the default is another, is expected.
func PreviewOf(cfg *config.Config, records int64, rows int) preview.Options {
	mapping, limits := MappingOf(cfg)
	delete(mapping.Attributes, cfg.ExternalVectors()) // the pipeline itself fills these topics
	delete(mapping.Attributes, cfg.OrderedRows())
	o := preview.Options{Mapping: mapping, Limits: limits, Records: records, Rows: rows}
	standard, _ := MappingOf(new(config.Default()))
	in, usual := &cfg.Ingest, config.Default().Ingest
	for name, differ := range map[string]bool{
		"nodes.class":      mapping.Nodes.Class != standard.Nodes.Class,
		"nodes.event_time": mapping.Nodes.EventTime != standard.Nodes.EventTime,
		"nodes.edges":      len(mapping.Nodes.Edges) > 0,
		"edges.event_time": mapping.Edges.EventTime != standard.Edges.EventTime,
		"edges.kind":       mapping.Edges.Kind != standard.Edges.Kind,
		"edges.weight":     mapping.Edges.Weight != standard.Edges.Weight,

		"nodes.attributes":   len(in.Nodes.Attributes) > 0,
		"nodes.vectors":      len(in.Nodes.Vectors) > 0,
		"attributes.fields":  len(in.Attributes.Fields) > 0,
		"attributes.vectors": len(in.Attributes.Vectors) > 0,

		"baskets.quantity":   in.Baskets.Quantity != usual.Baskets.Quantity,
		"baskets.time":       in.Baskets.Time != usual.Baskets.Time,
		"baskets.event_time": in.Baskets.EventTime != usual.Baskets.EventTime,
		"baskets.kind":       in.Baskets.Kind != usual.Baskets.Kind,
		"baskets.customer":   in.Baskets.Customer != usual.Baskets.Customer,

		"nodes.deleted":   in.Nodes.Deleted != usual.Nodes.Deleted,
		"edges.deleted":   in.Edges.Deleted != usual.Edges.Deleted,
		"baskets.deleted": in.Baskets.Deleted != usual.Baskets.Deleted,
	} {
		if differ {
			o.Expected = append(o.Expected, name)
		}
	}
	return o
}

// Load reads a configuration file and reports all of its faults at once, those of the mapping among
// them.
func Load(path string, assignments ...string) (config.Config, error) {
	return LoadOver(config.Default(), true, path, assignments...)
}

// LoadOver is Load with other defaults. Without withSinks, variables of the environment that only sinks need may be
// unset.
func LoadOver(defaults config.Config, withSinks bool, path string, assignments ...string) (config.Config, error) {
	also := []func(*config.Config) []config.Fault{mappingFaults, proxyFaults}
	if withSinks {
		also = append(also, (*config.Config).UnsetOfSinks)
	}
	return defaults.Load(path, assignments, also...)
}

// proxyFaults returns what is wrong with the environment's proxies. The libraries that dial would say it with the
// value, which may hold a password.
func proxyFaults(*config.Config) (faults []config.Fault) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		if !strings.Contains(value, "://") {
			value = "http://" + value
		}
		if u, err := url.Parse(value); err != nil || u.Host == "" {
			faults = append(faults, config.Fault{Message: "environment variable " + name +
				" must be http://host:port, with %-escapes in user and password"})
		}
	}
	return faults
}

// mappingFaults returns what is wrong with the paths of the mapping.
func mappingFaults(cfg *config.Config) (faults []config.Fault) {
	mapping, limits := MappingOf(cfg)
	_, nodes := decode.Nodes(mapping.Nodes, limits, 1)
	_, edges := decode.Edges(mapping.Edges, limits, 1)
	faults = listFaults(cfg)
	for _, err := range append([]error{nodes, edges}, orderErrors(mapping, limits)...) {
		all, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // what errors.Join returns
		if !ok {
			continue
		}
		for _, one := range all.Unwrap() {
			if f, ok := errors.AsType[*decode.FieldError](one); ok {
				faults = append(faults, config.Fault{Path: "ingest." + f.Field, Message: f.Err.Error()})
			}
		}
	}
	return faults
}

// listFaults returns what is wrong with the entries of lists, each by its place.
func listFaults(cfg *config.Config) []config.Fault {
	faults := slices.Concat(attributeFaults(cfg), vectorFaults(cfg), sinkAttributeFaults(cfg), edgeTopicFaults(cfg))
	for i, text := range cfg.Ingest.Nodes.Edges {
		if _, err := decode.ParseEdgePath(text); err != nil {
			faults = append(faults, config.Fault{Path: fmt.Sprintf("ingest.nodes.edges[%d]", i), Message: err.Error()})
		}
	}
	return faults
}

// orderErrors returns what is wrong with the mapping of orders.
func orderErrors(m decode.Mapping, l decode.Limits) (errs []error) {
	for _, of := range m.Orders {
		_, err := decode.Orders(of, mutation.Further, l, 1)
		errs = append(errs, err)
	}
	return errs
}

// Check reports faults that only the packages below can find: in the field paths of the mapping and
// in the names of the topics. It reports those of the environment, too.
func Check(cfg *config.Config) error {
	mapping, limits := MappingOf(cfg)
	_, nodes := decode.Nodes(mapping.Nodes, limits, cfg.Shards)
	_, edges := decode.Edges(mapping.Edges, limits, cfg.Shards)
	var environment error
	if faults := proxyFaults(cfg); len(faults) > 0 {
		environment = &config.Error{Faults: faults}
	}
	var attributes error
	if faults := listFaults(cfg); len(faults) > 0 {
		attributes = &config.Error{Faults: faults}
	}
	return errors.Join(environment, nodes, edges, attributes,
		errors.Join(orderErrors(mapping, limits)...), TopicsOf(cfg).Validate())
}

// Backfill sends files or objects to the pipeline's input topics, and continues where an
// interrupted backfill stopped.
func Backfill(ctx context.Context, cfg *config.Config, c *client.Client, files backfill.Sources,
	p ambient.Progress) (backfill.Stats, error) {
	mapping, limits := MappingOf(cfg)
	// With the embedded broker the checkpoint lies beside the broker's log, so that both are lost
	// or kept together.
	dir := cfg.StateDir
	if cfg.Kafka.Embedded() {
		dir = cfg.Kafka.DataDir
	}
	topics := TopicsOf(cfg)
	ids, err := c.Identify(ctx, topics.Given()...)
	if err != nil {
		return backfill.Stats{}, err
	}
	snapshot, err := snapshotOf(ctx, cfg, files)
	if err != nil {
		return backfill.Stats{}, err
	}
	var epoch []string
	for _, topic := range topics.Given() {
		epoch = append(epoch, ids[topic].ID)
	}
	return backfill.Run(ctx, backfill.Options{
		Client: c, Topics: topics, Epoch: strings.Join(epoch, " "),
		Sources: files, Snapshot: snapshot, Mapping: mapping, Limits: limits,
		Checkpoint: filepath.Join(dir, "backfill.checkpoint"), Clock: time.Now, Progress: p,
	})
}
