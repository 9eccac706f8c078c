package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

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

// Files reads the first records of files or objects with nodes, or with edges.
func (c *Collector) Files(ctx context.Context, edges bool, inputs []backfill.Input) error {
	s := c.sideOf(edges)
	return c.files(ctx, s, backfill.SampleOptions{Edges: edges}, inputs,
		func(where string, r decode.Record, in *backfill.Input) {
			c.add(edges, where, r, in.Read.SkipWithoutText)
		})
}

// OrderFiles reads the first records of files or objects with orders.
func (c *Collector) OrderFiles(ctx context.Context, inputs []backfill.Input) error {
	o := c.orders
	return c.files(ctx, &o.side, backfill.SampleOptions{Orders: &o.mapping}, inputs,
		func(where string, r decode.Record, _ *backfill.Input) { o.add(where, r) })
}

// files gives the first records of inputs to each.
func (c *Collector) files(ctx context.Context, s *side, o backfill.SampleOptions, inputs []backfill.Input,
	each func(where string, r decode.Record, in *backfill.Input)) error {
	o.Mapping, o.Limits = c.options.Mapping, c.options.Limits
	look := min(len(inputs), maxInputs)
	s.More = s.More || look < len(inputs)
	for i := range look {
		in := &inputs[i*len(inputs)/look]
		left := int64(look - i)
		o.Records, o.Bytes = (c.options.Records-s.Records+left-1)/left, maxBytes/int64(look)
		sample, err := backfill.ReadSample(ctx, in, o,
			func(r backfill.Sampled) {
				where := fmt.Sprintf("%s:%d", in.Name, r.Line)
				if r.Bad != "" {
					s.Records++
					s.fault(where, r.Bad, r.Message)
					return
				}
				record := decode.Record{Value: s.decoder.Enclose(r.Value), Time: epoch}
				each(where, record, in)
			})
		if err != nil {
			return err
		}
		for _, name := range sample.Columns {
			if _, seen := s.names[name]; !seen && !s.names[name+"[*]"] {
				s.names[name] = false
			}
		}
		s.Sources = append(s.Sources, Source{sample.Name, sample.Records, sample.More, sample.Notes})
		s.More = s.More || sample.More
	}
	return nil
}

// Topic reads the first records of a topic that are still there, with nodes or with edges; values are
// translated to JSON unless translator is nil.
func (c *Collector) Topic(ctx context.Context, edges bool, from *client.Client, topic string,
	translator *schema.Translator) error {
	return c.topic(ctx, c.sideOf(edges), from, topic, translator,
		func(where string, r decode.Record) { c.add(edges, where, r, false) })
}

// OrderTopic is Topic for orders.
func (c *Collector) OrderTopic(ctx context.Context, from *client.Client, topic string,
	translator *schema.Translator) error {
	return c.topic(ctx, &c.orders.side, from, topic, translator, c.orders.add)
}

func (c *Collector) topic(ctx context.Context, s *side, from *client.Client, topic string,
	translator *schema.Translator, each func(where string, r decode.Record)) error {
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
		share := (c.options.Records - s.Records + left - 1) / left
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
			each(where, decode.Record{Key: key, Value: value, Time: m.Time, Offset: m.Offset})
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
		seeField(names, name, field, 0)
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
				seeField(names, path+"."+name, field, depth+1)
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
