package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"giantstream/internal/retry"
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
	// Compacted creates the topic with cleanup.policy=compact; others keep their records forever
	// (retention.ms=-1).
	Compacted bool
	// Retention is how long records are kept, 0 for ever. A compacted topic has none.
	Retention time.Duration
	// MaxMessageBytes is the largest record the topic is created for; 0 is the broker's default.
	MaxMessageBytes int
	// CreateTime creates the topic so that records keep their timestamps, whatever the brokers' default is.
	CreateTime bool
}

// EnsureTopics creates the topics that are missing, with the broker's default replication, waits until the brokers
// know them, and checks the partitions of those that exist. Its error names every topic that is wrong and wraps
// ErrPartitions. It is idempotent, and several processes may call it at once.
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
			// A backfill's records have old timestamps: with the default of seven days the broker
			// would delete them at once.
			retention := int64(-1)
			if s.Retention > 0 {
				retention = s.Retention.Milliseconds()
			}
			t.ConfigEntries = []kafka.ConfigEntry{{ConfigName: "retention.ms",
				ConfigValue: strconv.FormatInt(retention, 10)}}
		}
		if s.MaxMessageBytes > 0 {
			t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: "max.message.bytes",
				ConfigValue: strconv.Itoa(s.MaxMessageBytes)})
		}
		if s.CreateTime {
			t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: "message.timestamp.type",
				ConfigValue: "CreateTime"})
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
	names := make([]string, len(specs))
	for i := range specs {
		names[i] = specs[i].Name
	}
	if err := c.awaitBrokers(ctx, names); err != nil {
		return err
	}
	var errs []error
	for _, s := range specs {
		if n := have[s.Name].partitions; !s.Flexible && n != s.Partitions {
			errs = append(errs, fmt.Errorf("kafka topic %q: %w: has %d, needs %d, one for each shard: name a topic "+
				"with %d partitions, or set shards: %d; 'giantstream reshard' moves a store to another number", s.Name,
				ErrPartitions, n, s.Partitions, s.Partitions, n))
		}
	}
	return errors.Join(errs...)
}

func (c *Client) createTopics(ctx context.Context, topics []kafka.TopicConfig) error {
	res, err := c.kafka.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	if err != nil {
		return fmt.Errorf("kafka: creating topics: %w", cause(err))
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(res.Errors)) {
		switch err := res.Errors[name]; {
		case errors.Is(err, kafka.TopicAuthorizationFailed): // brokers hide topics from users without the right
			errs = append(errs, fmt.Errorf("kafka topic %q: the user may not describe it, or there is none, and the "+
				"user may not create it: %w; see 'Rights in Kafka' in docs/OPERATIONS.md", name, err))
		case err != nil && !errors.Is(err, kafka.TopicAlreadyExists):
			errs = append(errs, fmt.Errorf("kafka: creating topic %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// awaitTopics polls until every topic has partitions with leaders: Kafka creates topics
// asynchronously, and this client caches metadata for some seconds.
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
				err = fmt.Errorf("kafka topic %q: created, but it has no leaders after %v",
					specs[missing].Name, requestTimeout)
			}
			return nil, err
		case <-tick.C:
		}
	}
}

// topic is what the brokers report about a topic.
type topic struct {
	partitions int
	// led: every partition has a leader at present.
	led bool
}

// topics describes the named topics that exist (nil: all topics).
func (c *Client) topics(ctx context.Context, names []string) (map[string]topic, error) {
	res, err := c.metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, c.unread(err)
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

// metadata asks once more after a timeout: a broker that is frozen takes connections and answers none, and kafka-go
// draws anew which of the brokers it connects to. Other failures are returned at once.
func (c *Client) metadata(ctx context.Context, req *kafka.MetadataRequest) (*kafka.MetadataResponse, error) {
	pause := retry.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second}
	for {
		res, err := c.kafka.Metadata(ctx, req)
		if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || pause.Wait(ctx) != nil {
			return res, err
		}
	}
}

// EndOffsets returns, per topic and partition, where what can be read now ends: at the first record of
// an open transaction, or where LogEndOffsets says.
func (c *Client) EndOffsets(ctx context.Context, topics ...string) (map[string][]int64, error) {
	return c.offsets(ctx, topics, c.isolation, kafka.LastOffset, lastOffset)
}

// LogEndOffsets returns, per topic and partition, the offset that the next record will get.
func (c *Client) LogEndOffsets(ctx context.Context, topics ...string) (map[string][]int64, error) {
	return c.offsets(ctx, topics, kafka.ReadUncommitted, kafka.LastOffset, lastOffset)
}

func lastOffset(p kafka.PartitionOffsets) int64 { return p.LastOffset }

// FirstOffsets returns, per topic and partition, the offset of the oldest record that is kept (the
// end offset when there is none).
func (c *Client) FirstOffsets(ctx context.Context, topics ...string) (map[string][]int64, error) {
	return c.offsets(ctx, topics, c.isolation, kafka.FirstOffset,
		func(p kafka.PartitionOffsets) int64 { return p.FirstOffset })
}

// offsets asks until every partition has answered: after a topic is created or a broker stops,
// leaders move, and metadata about them lags behind.
func (c *Client) offsets(
	ctx context.Context, topics []string, isolation kafka.IsolationLevel, at int64,
	get func(kafka.PartitionOffsets) int64,
) (map[string][]int64, error) {
	return retryUntilTimeout(ctx, func(ctx context.Context) (map[string][]int64, error) {
		return c.listOffsets(ctx, topics, isolation, at, get)
	})
}

func (c *Client) listOffsets(
	ctx context.Context, topics []string, isolation kafka.IsolationLevel, at int64,
	get func(kafka.PartitionOffsets) int64,
) (map[string][]int64, error) {
	have, err := c.topics(ctx, topics)
	if err != nil {
		return nil, err
	}
	out := map[string][]int64{}
	var asking errgroup.Group
	for _, t := range topics {
		n := have[t].partitions
		if n == 0 {
			// kafka-go keeps metadata for some seconds. Is the topic newer than these? It asks for others when it
			// connects again.
			if _, err := c.identify(ctx, []string{t}); err != nil {
				return nil, err
			}
			c.transport.CloseIdleConnections()
			return nil, fmt.Errorf("kafka topic %q: its metadata have not arrived yet", t)
		}
		out[t] = make([]int64, n)
	}
	for t, ends := range out {
		for p := range ends {
			asking.Go(func() error {
				got, err := c.listOffset(ctx, t, p, isolation, at)
				ends[p] = get(got)
				return err
			})
		}
	}
	return out, asking.Wait()
}

// listOffset asks for one partition: where some of several fail, kafka-go does not keep why. It sends a request for
// each partition in either case.
func (c *Client) listOffset(
	ctx context.Context, topic string, partition int, isolation kafka.IsolationLevel, at int64,
) (got kafka.PartitionOffsets, err error) {
	res, err := c.kafka.ListOffsets(ctx, &kafka.ListOffsetsRequest{IsolationLevel: isolation,
		Topics: map[string][]kafka.OffsetRequest{topic: {{Partition: partition, Timestamp: at}}}})
	if err == nil && len(res.Topics[topic]) == 1 {
		got = res.Topics[topic][0]
		err = got.Error
	} else if err == nil {
		err = errors.New("no answer")
	}
	if err != nil {
		return got, c.advise(fmt.Errorf("kafka: listing offsets of %s-%d: %w", topic, partition, cause(err)))
	}
	return got, nil
}

func noTopic(name string) error { return fmt.Errorf("kafka topic %q: %w", name, ErrNoTopic) }

// Commit is what a consumer group has of a partition.
type Commit struct {
	// Offset is the next to read, -1 for none.
	Offset int64
	// Own: CommitOffsets has written it. Tools that move a group leave no note, or keep that of another offset.
	Own bool
}

// ownCommit is the note beside an offset that CommitOffsets writes.
func ownCommit(offset int64) string { return fmt.Sprint("giantstream ", offset) }

// Committed returns what a consumer group has committed, per partition of a topic.
func (c *Client) Committed(ctx context.Context, group, topic string, partitions int) ([]Commit, error) {
	return retryUntilTimeout(ctx, func(ctx context.Context) ([]Commit, error) {
		return c.committed(ctx, group, topic, partitions)
	})
}

func (c *Client) committed(ctx context.Context, group, topic string, partitions int) ([]Commit, error) {
	ids := make([]int, partitions)
	out := make([]Commit, partitions)
	for p := range ids {
		ids[p], out[p].Offset = p, -1
	}
	res, err := c.kafka.OffsetFetch(ctx,
		&kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: ids}})
	if err == nil {
		err = res.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) {
		return out, nil // nobody has joined it yet
	}
	if err != nil {
		return nil, fmt.Errorf("kafka group %q: reading its offsets: %w", group, cause(err))
	}
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("kafka group %q: reading its offset of %s-%d: %w",
				group, topic, p.Partition, p.Error)
		}
		if p.Partition < partitions {
			out[p.Partition] = Commit{Offset: p.CommittedOffset, Own: p.Metadata == ownCommit(p.CommittedOffset)}
		}
	}
	return out, nil
}

// CommitOffsets commits to a consumer group, as a member of one of its generations, the offset of the next record of a
// partition, per topic.
func (c *Client) CommitOffsets(
	ctx context.Context, group, member string, generation int32, partition int, next map[string]int64,
) error {
	req := &kafka.OffsetCommitRequest{GroupID: group, MemberID: member, GenerationID: int(generation),
		Topics: map[string][]kafka.OffsetCommit{}}
	for topic, at := range next {
		req.Topics[topic] = []kafka.OffsetCommit{{Partition: partition, Offset: at, Metadata: ownCommit(at)}}
	}
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	res, err := c.kafka.OffsetCommit(ctx, req)
	if err != nil {
		return fmt.Errorf("kafka group %q: committing offsets of partition %d: %w", group, partition, cause(err))
	}
	for topic, partitions := range res.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return fmt.Errorf("kafka group %q: committing the offset of %s-%d: %w",
					group, topic, p.Partition, p.Error)
			}
		}
	}
	return nil
}

// GroupProtocol returns the protocol that the members of a consumer group have agreed on, "" if the
// group has no members.
func (c *Client) GroupProtocol(ctx context.Context, group string) (string, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	franz, err := c.franz.get()
	if err != nil {
		return "", err
	}
	req := kmsg.NewPtrDescribeGroupsRequest() // kafka-go's answer lacks the protocol
	req.Groups = []string{group}
	res, err := req.RequestWith(ctx, franz)
	if err == nil && len(res.Groups) == 1 {
		return res.Groups[0].Protocol, kerr.ErrorForCode(res.Groups[0].ErrorCode)
	}
	if err == nil {
		err = errors.New("no answer")
	}
	return "", fmt.Errorf("kafka group %q: describing it: %w", group, err)
}

// Members returns how many members a consumer group has at present.
func (c *Client) Members(ctx context.Context, group string) (int, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	franz, err := c.franz.get()
	if err != nil {
		return 0, err
	}
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	res, err := req.RequestWith(ctx, franz)
	if err == nil && len(res.Groups) != 1 {
		err = errors.New("no answer")
	}
	if err == nil {
		err = kerr.ErrorForCode(res.Groups[0].ErrorCode)
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0, nil // nobody has ever joined it
	}
	if err != nil {
		return 0, fmt.Errorf("kafka group %q: describing it: %w", group, err)
	}
	return len(res.Groups[0].Members), nil
}
