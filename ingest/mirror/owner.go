package mirror

import (
	"context"
	"errors"
	"fmt"

	"giantstream/ingest/client"
)

// ErrForeign: another pipeline writes to the mirror topic.
var ErrForeign = errors.New("the mirror topic belongs to another pipeline")

// CheckOwner looks at the newest record of each partition, and returns ErrForeign if another
// pipeline wrote one of them.
func CheckOwner(ctx context.Context, c *client.Client, topic string, mine Pipeline) error {
	first, err := c.FirstOffsets(ctx, topic)
	if err != nil {
		return err
	}
	ends, err := c.EndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	for p, end := range ends[topic] {
		if p >= len(first[topic]) || end <= first[topic][p] {
			continue
		}
		for m, err := range c.Range(ctx, topic, p, end-1, end) {
			if err != nil {
				return err
			}
			_, from, err := parse(m.Key, m.Value)
			if err != nil || from == nil || *from == mine {
				continue // what does not parse is a dead letter later
			}
			return fmt.Errorf("kafka topic %q: %w: pipeline %s wrote to partition %d at offset %d, "+
				"and this store is of pipeline %s. Give each a topic of its own (kafka.topics.mirror), or, if the "+
				"other is gone, delete the topic",
				topic, ErrForeign, from, p, m.Offset, mine)
		}
	}
	return nil
}
