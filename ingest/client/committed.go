package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// Committed returns, per partition of a topic, the offset that a consumer group
// has committed, -1 where it has none.
func (c *Client) Committed(ctx context.Context, group, topic string, partitions int) ([]int64, error) {
	return retry(ctx, func(ctx context.Context) ([]int64, error) { return c.committed(ctx, group, topic, partitions) })
}

func (c *Client) committed(ctx context.Context, group, topic string, partitions int) ([]int64, error) {
	ids := make([]int, partitions)
	out := make([]int64, partitions)
	for p := range ids {
		ids[p], out[p] = p, -1
	}
	res, err := c.kafka.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: ids}})
	if err == nil {
		err = res.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) {
		return out, nil // nobody has joined it yet
	}
	if err != nil {
		return nil, fmt.Errorf("kafka group %q: reading its offsets: %w", group, err)
	}
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("kafka group %q: reading its offset of %s-%d: %w", group, topic, p.Partition, p.Error)
		}
		if p.Partition < partitions {
			out[p.Partition] = p.CommittedOffset
		}
	}
	return out, nil
}
