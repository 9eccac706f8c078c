package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"giantstream/ingest"
	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/schema"
)

const (
	// maxInputs is how many files are looked at. Of more, some are left out evenly.
	maxInputs = 20
	// maxBytes bounds what is read of all of them.
	maxBytes = 64 << 20
)

// Files reads the first records of files or objects.
func (s *Input) Files(ctx context.Context, inputs []backfill.Input) error {
	look := min(len(inputs), maxInputs)
	s.More = s.More || look < len(inputs)
	for i := range look {
		in, o := &inputs[i*len(inputs)/look], s.columns
		left := int64(look - i)
		o.Mapping, o.Limits = s.options.Mapping, s.options.Limits
		o.Records, o.Bytes = (s.options.Records-s.Records+left-1)/left, maxBytes/int64(look)
		sample, err := backfill.ReadSample(ctx, in, o,
			func(r backfill.Sampled) {
				where := fmt.Sprintf("%s:%d", in.Name, r.Line)
				if r.Bad != "" {
					s.Records++
					s.fault(where, r.Bad, r.Message)
					return
				}
				s.add(where, decode.Record{Value: s.decoder.Enclose(r.Value), Time: epoch}, in.Read.SkipWithoutText)
			})
		if err != nil {
			return err
		}
		for _, column := range sample.Columns {
			name := decode.QuoteField(column)
			if _, seen := s.names[name]; !seen && !s.names[name+"[*]"] {
				s.names[name] = false
			}
		}
		s.Sources = append(s.Sources, Source{sample.Name, sample.Records, sample.More, sample.Notes})
		s.More = s.More || sample.More
	}
	return nil
}

// Topics maps the first records of a pipeline's input topics: of the sources, where they are repartitioned. It creates
// nothing.
func Topics(ctx context.Context, from *client.Client, topics ingest.Topics, translators map[string]*schema.Translator,
	o Options) (*Preview, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	inputs := map[string]*Input{topics.Nodes: c.Nodes(), topics.Edges: c.Edges()}
	for topic := range o.Mapping.Attributes {
		inputs[topic] = c.Attributes(topic)
	}
	for _, topic := range topics.OneKind {
		inputs[topic] = c.EdgeTopic(topic)
	}
	if topics.Orders != "" {
		inputs[topics.Orders] = c.Orders()
	}
	for topic, in := range inputs {
		if err := in.Topic(ctx, from, topics.Source(topic), translators[topic]); err != nil {
			return nil, err
		}
	}
	return c.Result(), nil
}

// Topic reads the first records of a topic that are still there; values are translated to JSON unless translator is
// nil.
func (s *Input) Topic(ctx context.Context, from *client.Client, topic string, translator *schema.Translator) error {
	first, err := from.FirstOffsets(ctx, topic)
	if err != nil {
		return err
	}
	ends, err := from.EndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	source := Source{Name: "topic " + topic}
	partitions := len(ends[topic])
	for p, end := range ends[topic] {
		left := int64(partitions - p)
		share := (s.options.Records - s.Records + left - 1) / left
		to := min(end, first[topic][p]+share)
		source.More = source.More || to < end
		for m, err := range from.Range(ctx, topic, p, first[topic][p], to) {
			if err != nil {
				return fmt.Errorf("read topic %s, partition %d: %w", topic, p, err)
			}
			where := fmt.Sprintf("%s/%d/%d", topic, p, m.Offset)
			source.Records++
			value := m.Value
			key, err := translator.Key(ctx, m.Key)
			if err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
			if translator != nil {
				var fault *decode.Fault
				if value, fault, err = translator.JSON(ctx, nil, m.Value); err != nil {
					return fmt.Errorf("%s: %w", where, err)
				}
				if fault != nil {
					s.Records++
					s.fault(where, fault.Code, fault.Message)
					continue
				}
			}
			s.add(where, decode.Record{Key: key, Value: value, Time: m.Time, Offset: m.Offset}, false)
		}
	}
	s.Sources = append(s.Sources, source)
	s.More = s.More || source.More
	return nil
}

// see notes the names of a value's fields: paths to all that is no object or list.
func see(names map[string]bool, value []byte) {
	if len(names) >= 2*maxSeen {
		return
	}
	var v map[string]any
	if json.Unmarshal(value, &v) != nil {
		return // a dead letter
	}
	for name, field := range v {
		seeField(names, decode.QuoteField(name), field, 0)
	}
}

// maxDepth of the names that are noted.
const maxDepth = 4

func seeField(names map[string]bool, path string, v any, depth int) {
	filled := true
	switch v := v.(type) {
	case map[string]any:
		if depth < maxDepth {
			for name, field := range v {
				name = decode.QuoteField(name)
				if name[0] != '[' {
					name = "." + name
				}
				seeField(names, path+name, field, depth+1)
			}
			return
		}
	case []any:
		if len(v) > 0 && depth < maxDepth {
			seeField(names, path+"[*]", v[0], depth+1)
			return
		}
		filled = false
	case string:
		filled = strings.TrimSpace(v) != ""
	case nil:
		filled = false
	}
	names[path] = names[path] || filled
}
