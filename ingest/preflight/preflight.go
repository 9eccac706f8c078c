package preflight

import (
	"context"
	"errors"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/schema"
)

// Options say what to check.
type Options struct {
	Client      *client.Client
	Topics      ingest.Topics
	Mapping     decode.Mapping
	Limits      decode.Limits
	Translators map[string]*schema.Translator // as of feed.Config
	Shards      int
	// Former are the numbers of shards that the pipeline had before: records that were placed by them are
	// no sign of another partitioner.
	Former []int
}

// Check checks the topics, which must exist. The error names everything that is wrong; the warnings
// say what may be wrong.
func Check(ctx context.Context, o Options) (warnings []string, err error) {
	warnings, err = settings(ctx, o)
	errs := []error{err}
	decoders := map[string]func() (*decode.Decoder, error){
		o.Topics.Nodes: func() (*decode.Decoder, error) { return decode.Nodes(o.Mapping.Nodes, o.Limits, 1) },
		o.Topics.Edges: func() (*decode.Decoder, error) { return decode.Edges(o.Mapping.Edges, o.Limits, 1) },
	}
	for _, topic := range o.Topics.Further {
		decoders[topic] = func() (*decode.Decoder, error) {
			return decode.Further(&o.Mapping, topic, o.Topics.NumberOf(topic), o.Limits, 1)
		}
	}
	for _, topic := range o.Topics.Given() {
		warning, err := keys(ctx, o, topic, decoders[topic])
		if warning != "" {
			warnings = append(warnings, warning)
		}
		errs = append(errs, err)
	}
	return warnings, errors.Join(errs...)
}
