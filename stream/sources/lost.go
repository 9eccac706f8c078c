package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// NoteLost notes records that a topic had deleted before they were copied. The shard is a partition of the topic.
func NoteLost(ctx context.Context, store sink.Store, lost commitlog.ShardLost) error {
	return putSealed(ctx, store, lostKey(lost), lost, sink.PutBytes)
}

// Lost returns what a topic has lost before it was copied. The shard is a partition of it.
func Lost(ctx context.Context, store sink.Store, topic string) (out []commitlog.ShardLost, err error) {
	for info, err := range store.List(ctx, lostPrefix(topic), "") {
		if err != nil {
			return nil, fmt.Errorf("list the losses of %s: %w", topic, err)
		}
		var lost commitlog.ShardLost
		_, err := readSealed(ctx, store, info.Key, &lost)
		if errors.Is(err, sink.ErrDamaged) {
			// The object's name says what was lost. What it adds is when that was noticed.
			if named, ok := lostByKey(info.Key); ok {
				lost, err = named, nil
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, lost)
	}
	return out, nil
}

// ForgetLost forgets losses that a person has accepted.
func ForgetLost(ctx context.Context, store sink.Store, topic string) error {
	var keys []string
	for info, err := range store.List(ctx, lostPrefix(topic), "") {
		if err != nil {
			return fmt.Errorf("list the losses of %s: %w", topic, err)
		}
		keys = append(keys, info.Key)
	}
	for _, key := range keys {
		if err := store.Delete(ctx, key); err != nil {
			return fmt.Errorf("forget an accepted loss: %w", err)
		}
	}
	return nil
}

// lostKey names the object that notes a loss.
func lostKey(l commitlog.ShardLost) string {
	return fmt.Sprintf("%s%d-%020d-%020d.json", lostPrefix(l.Topic), l.Shard, l.From, l.To)
}

// lostByKey returns the loss that an object is named after, without the time when it was noticed.
func lostByKey(key string) (l commitlog.ShardLost, ok bool) {
	topic, place, found := strings.Cut(strings.TrimPrefix(key, Prefix), lostDir)
	n, err := fmt.Sscanf(place, "%d-%d-%d.json", &l.Shard, &l.From, &l.To)
	l.Topic, l.Offsets = topic, l.To-l.From
	return l, found && n == 3 && err == nil && lostKey(l) == key
}
