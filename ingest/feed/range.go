package feed

import (
	"context"
	"fmt"
	"time"

	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/ingest/mirror"
	"giantstream/stream/mutation"
)

// Range decodes the records of a stretch of one partition of an input topic, as a Feed does, and hands their
// mutations to each. It returns how many records it has read, and how many of them are dead letters. from and to are
// offsets of the brokers. Nothing is written.
func (c *Config) Range(ctx context.Context, topic string, partition int, from, to int64,
	each func(mutation.Mutation)) (records, refused int64, err error) {
	s := &source{translator: c.Translators[topic], base: c.Bases[topic],
		copies: c.Topics.HasOrigins(topic)}
	if s.decoder, err = c.decoder(topic); err != nil {
		return 0, 0, err
	}
	var ahead map[deadletter.Origin]time.Time
	if c.Ahead != nil {
		if ahead, err = c.Ahead(ctx); err != nil {
			return 0, 0, fmt.Errorf("read the dead letters: %w", err)
		}
	}
	for m, err := range c.Client.Range(ctx, topic, partition, from, to) {
		if err != nil {
			return records, refused, fmt.Errorf("read topic %s, partition %d: %w", topic, partition, err)
		}
		at, is := ahead[deadletter.Origin{Topic: topic, Partition: partition, Offset: m.Offset}]
		if is && at.Equal(m.Time) { // and not a record of a topic that was created again
			records++
			refused++
			continue
		}
		var got chunk
		if err := s.decode(ctx, m, &got, nil); err != nil {
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

// decoder returns the decoder of an input topic.
func (c *Config) decoder(topic string) (decoder, error) {
	if topic == c.Topics.Mirror {
		return mirror.NewDecoder(c.Shards, c.Pipeline), nil
	}
	d, err := c.Decoder(topic, c.Shards)
	if err != nil {
		return nil, err
	}
	d.LimitFuture(c.MaxFuture, c.Clock)
	return d, nil
}

// Decoder returns a decoder of what producers state in a topic, for a number of shards.
func (c *Config) Decoder(topic string, shards int) (*decode.Decoder, error) {
	limits := c.DecoderLimits(topic)
	switch topic {
	case c.Topics.Nodes:
		return decode.Nodes(c.Mapping.Nodes, limits, shards)
	case c.Topics.Edges:
		return decode.Edges(c.Mapping.Edges, limits, shards)
	}
	return decode.Further(&c.Mapping, topic, c.Topics.NumberOf(topic), limits, shards)
}
