package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// ErrPartitions: an existing topic does not have the partitions it needs.
var ErrPartitions = errors.New("wrong number of partitions")

// ErrNoTopic: the topic does not exist.
var ErrNoTopic = errors.New("topic does not exist")

// TopicSpec says what a topic must be.
type TopicSpec struct {
	Name string
	// Partitions is the number the topic is created with.
	Partitions int
	// Flexible accepts an existing topic with any number of partitions.
	Flexible bool
	// Compacted creates the topic with cleanup.policy=compact; others keep
	// their records forever (retention.ms=-1).
	Compacted bool
	// MaxMessageBytes is the largest record the topic is created for; 0 is
	// the broker's default.
	MaxMessageBytes int
}

// EnsureTopics creates the topics that are missing, with the broker's default
// replication, and checks the partitions of those that exist. It reports
// every topic that is wrong, wrapping ErrPartitions. It is idempotent and may
// race with itself in other processes.
func (c *Client) EnsureTopics(ctx context.Context, specs ...TopicSpec) error {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	have, err := c.topics(ctx, nil)
	if err != nil {
		return err
	}
	var create []kafka.TopicConfig
	for _, s := range specs {
		if have[s.Name].partitions > 0 {
			continue
		}
		t := kafka.TopicConfig{Topic: s.Name, NumPartitions: s.Partitions, ReplicationFactor: -1}
		if s.Compacted {
			t.ConfigEntries = []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}
		} else {
			// A backfill carries its own, old timestamps: with the
			// default of seven days the broker would delete it at once.
			t.ConfigEntries = []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}}
		}
		if s.MaxMessageBytes > 0 {
			t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(s.MaxMessageBytes)})
		}
		create = append(create, t)
	}
	if len(create) > 0 {
		if err := c.createTopics(ctx, create); err != nil {
			return err
		}
		if have, err = c.awaitTopics(ctx, specs); err != nil {
			return err
		}
	}
	var errs []error
	for _, s := range specs {
		if n := have[s.Name].partitions; !s.Flexible && n != s.Partitions {
			errs = append(errs, fmt.Errorf("kafka topic %q: %w: has %d, needs %d (the partitions of the input topics are the shards, "+
				"fixed when a pipeline is created: create the topic anew with %d partitions, or a new pipeline with %d shards)",
				s.Name, ErrPartitions, n, s.Partitions, s.Partitions, n))
		}
	}
	return errors.Join(errs...)
}

func (c *Client) createTopics(ctx context.Context, topics []kafka.TopicConfig) error {
	res, err := c.kafka.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	if err != nil {
		return fmt.Errorf("kafka: creating topics: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(res.Errors)) {
		if err := res.Errors[name]; err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			errs = append(errs, fmt.Errorf("kafka: creating topic %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// awaitTopics polls until every topic has partitions with leaders: creation
// is asynchronous in Kafka, and this client caches metadata for some seconds.
func (c *Client) awaitTopics(ctx context.Context, specs []TopicSpec) (map[string]topic, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		have, err := c.topics(ctx, nil)
		missing := slices.IndexFunc(specs, func(s TopicSpec) bool { return !have[s.Name].led })
		if err == nil && missing < 0 {
			return have, nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("kafka topic %q: created, but it has no leaders after %v", specs[missing].Name, requestTimeout)
			}
			return nil, err
		case <-tick.C:
		}
	}
}

// topic is what the brokers say of one.
type topic struct {
	partitions int
	// led: every partition has a leader just now.
	led bool
}

// topics describes the named topics that exist (nil: all topics).
func (c *Client) topics(ctx context.Context, names []string) (map[string]topic, error) {
	res, err := c.kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, fmt.Errorf("kafka: reading metadata from %s: %w", strings.Join(c.brokers, ", "), err)
	}
	out := map[string]topic{}
	for _, t := range res.Topics {
		if t.Error == nil && len(t.Partitions) > 0 {
			led := !slices.ContainsFunc(t.Partitions, func(p kafka.Partition) bool { return p.Error != nil })
			out[t.Name] = topic{len(t.Partitions), led}
		}
	}
	return out, nil
}

// Partitions returns the number of partitions of a topic, or ErrNoTopic.
func (c *Client) Partitions(ctx context.Context, name string) (int, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	have, err := c.topics(ctx, []string{name})
	if err != nil {
		return 0, err
	}
	if have[name].partitions == 0 {
		return 0, noTopic(name)
	}
	return have[name].partitions, nil
}

// EndOffsets returns, per topic and partition, the offset that the next
// record will get.
func (c *Client) EndOffsets(ctx context.Context, topics ...string) (map[string][]int64, error) {
	return c.offsets(ctx, topics, kafka.LastOffset, func(p kafka.PartitionOffsets) int64 { return p.LastOffset })
}

// FirstOffsets returns, per topic and partition, the offset of the oldest
// record that is kept (the end offset when there is none).
func (c *Client) FirstOffsets(ctx context.Context, topics ...string) (map[string][]int64, error) {
	return c.offsets(ctx, topics, kafka.FirstOffset, func(p kafka.PartitionOffsets) int64 { return p.FirstOffset })
}

// offsets asks until every partition has answered: after a topic is created
// or a broker has gone, leaders move, and what is known of them is late.
func (c *Client) offsets(ctx context.Context, topics []string, at int64, get func(kafka.PartitionOffsets) int64) (map[string][]int64, error) {
	return retry(ctx, func(ctx context.Context) (map[string][]int64, error) { return c.listOffsets(ctx, topics, at, get) })
}

func (c *Client) listOffsets(ctx context.Context, topics []string, at int64, get func(kafka.PartitionOffsets) int64) (map[string][]int64, error) {
	have, err := c.topics(ctx, topics)
	if err != nil {
		return nil, err
	}
	req := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}
	out := map[string][]int64{}
	for _, t := range topics {
		n := have[t].partitions
		if n == 0 {
			return nil, noTopic(t)
		}
		out[t] = make([]int64, n)
		for p := range n {
			req.Topics[t] = append(req.Topics[t], kafka.OffsetRequest{Partition: p, Timestamp: at})
		}
	}
	res, err := c.kafka.ListOffsets(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("kafka: listing offsets: %w", err)
	}
	for _, t := range topics {
		for _, p := range res.Topics[t] {
			if p.Error != nil {
				return nil, fmt.Errorf("kafka: listing offsets of %s-%d: %w", t, p.Partition, p.Error)
			}
			if p.Partition < len(out[t]) {
				out[t][p.Partition] = get(p)
			}
		}
	}
	return out, nil
}

func noTopic(name string) error { return fmt.Errorf("kafka topic %q: %w", name, ErrNoTopic) }
