package feed

import (
	"context"
	"fmt"

	"giantstream/ingest/decode"
	"giantstream/stream/mutation"
)

// Range decodes the records of a stretch of one partition of the nodes or the edges topic, as a Feed does, and
// hands their mutations to each. It returns how many records it has read, and how many of them are dead
// letters. Nothing is written. A record that lay too far in the future when a Feed read it may not do so now.
func (c *Config) Range(ctx context.Context, topic string, partition int, from, to int64,
	each func(mutation.Mutation)) (records, refused int64, err error) {
	decoder, err := decode.Nodes(c.Mapping.Nodes, c.DecoderLimits(topic), c.Shards)
	if topic == c.Topics.Edges {
		decoder, err = decode.Edges(c.Mapping.Edges, c.DecoderLimits(topic), c.Shards)
	}
	if err != nil {
		return 0, 0, err
	}
	decoder.LimitFuture(c.MaxFuture, c.Clock)
	s := &source{decoder: decoder, translator: c.Translators[topic], copies: c.Topics.Repartitioned()}
	for m, err := range c.Client.Range(ctx, topic, partition, from, to) {
		if err != nil {
			return records, refused, fmt.Errorf("read topic %s, partition %d: %w", topic, partition, err)
		}
		var got chunk
		if err := s.decode(ctx, m, &got); err != nil {
			return records, refused, fmt.Errorf("topic %s, partition %d: %w", topic, partition, err)
		}
		for _, mutation := range got.mutations {
			each(mutation)
		}
		records++
		refused += int64(len(got.letters))
	}
	return records, refused, nil
}
