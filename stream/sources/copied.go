package sources

import (
	"context"
	"errors"
	"fmt"

	"giantstream/sink"
)

// Copied says how far a partition of a topic is copied. A consumer group says so, too, but people move groups, and
// brokers forget their offsets.
type Copied struct {
	// Into is the topic that has the copies, and Epoch that of the topic that is copied.
	Into  string `json:"into"`
	Epoch int64  `json:"epoch"`
	// Next is the offset below which all is copied.
	Next int64 `json:"next"`
}

func copiedKey(topic string, partition int) string {
	return fmt.Sprintf("%s%s%s%d.json", Prefix, topic, copiedDir, partition)
}

// ReadCopied returns what the store remembers of a partition; false for nothing.
func ReadCopied(ctx context.Context, store sink.Store, topic string, partition int) (c Copied, ok bool, err error) {
	key := copiedKey(topic, partition)
	_, err = readSealed(ctx, store, key, &c)
	switch {
	case errors.Is(err, sink.ErrNotFound):
		return Copied{}, false, nil
	case errors.Is(err, sink.ErrDamaged):
		return Copied{}, false, fmt.Errorf("%w. If the consumer group was not moved forward, remove this object", err)
	}
	return c, err == nil, err
}

// Put replaces what the store remembers of a partition.
func (c Copied) Put(ctx context.Context, store sink.Store, topic string, partition int) error {
	return putSealed(ctx, store, copiedKey(topic, partition), c, sink.PutBytes)
}
