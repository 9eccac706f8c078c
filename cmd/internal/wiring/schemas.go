package wiring

import (
	"fmt"
	"strings"
	"time"

	"giantstream/config"
	"giantstream/ingest/schema"
)

// OpenSchemas connects to the schema registry, and returns a translator for each topic with Avro or
// Protobuf values. Both results are nil when all values are JSON.
func OpenSchemas(cfg *config.Config) (*schema.Registry, map[string]*schema.Translator, error) {
	in := &cfg.Ingest
	if !in.Schemas() {
		return nil, nil, nil
	}
	r := &in.SchemaRegistry
	opts := schema.Options{URL: r.URL, Username: r.Username, Password: string(r.Password), Clock: time.Now}
	if strings.HasPrefix(r.URL, "https:") {
		var err error
		if opts.TLS, err = tlsConfig("ingest.schema_registry", r.CAFile, r.CertFile, r.KeyFile); err != nil {
			return nil, nil, err
		}
	}
	registry, err := schema.NewRegistry(opts)
	if err != nil {
		return nil, nil, err
	}
	translators := map[string]*schema.Translator{}
	topics := TopicsOf(cfg)
	formats := map[string]string{topics.Nodes: in.Nodes.Format, topics.Edges: in.Edges.Format}
	if topics.Orders != "" {
		formats[topics.Orders] = in.Baskets.Format
	}
	for _, topic := range topics.OneKind {
		formats[topic] = in.Edges.Format
	}
	for topic, format := range formats {
		switch format {
		case string(schema.JSON):
			continue
		case config.Debezium: // a value that begins with a brace is JSON on such topics, too
			format = string(schema.Avro)
		}
		if translators[topic], err = schema.NewTranslator(schema.Format(format), registry,
			int(in.Limits.RecordBytes)); err != nil {
			return nil, nil, fmt.Errorf("topic %q: %w", topic, err)
		}
	}
	return registry, translators, nil
}
