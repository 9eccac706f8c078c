package copying

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
	"giantstream/stream/sources"
)

// Open compares the topics that are repartitioned with those that the store remembers, and
// notes their epochs.
func (c *Copies) Open(ctx context.Context) error {
	ids, err := c.Groups.Client.Identify(ctx, c.Topics.Sources()...)
	if err != nil {
		return err
	}
	c.sources = map[string]sources.Topic{}
	for _, topic := range c.Topics.Sources() {
		now := sources.Topic{ID: ids[topic].ID}
		was, err := sources.Remember(ctx, c.Store, topic, now)
		if err != nil {
			return err
		}
		if was.ID != now.ID && was.ID != "" && now.ID != "" {
			if !c.Replaced[topic] {
				return sourceReplaced(topic, was.ID, now.ID)
			}
			now.Epoch = was.Epoch + 1
			c.Log.Warn("copying a topic from its start that is not the one that was copied before, as accepted",
				"topic", topic, "id", now.ID, "before", was.ID)
			if err := now.Put(ctx, c.Store, topic); err != nil {
				return err
			}
			was = now
		}
		c.sources[topic] = was
		if c.Forgiven[topic] {
			if err := sources.ForgetLost(ctx, c.Store, topic); err != nil {
				return err
			}
		}
	}
	return c.readLost(ctx)
}

func sourceReplaced(topic, was, now string) error {
	return fmt.Errorf("kafka topic %q: %w: it was deleted and created again (its id was %s and is %s). "+
		"Have it copied from its start by 'giantstream run --accept-loss %s', or start a new pipeline",
		topic, shard.ErrInputReplaced, was, now, topic)
}

// Check returns an error if a topic that is copied is not the one that was opened.
func (c *Copies) Check(ctx context.Context) error {
	if len(c.sources) == 0 {
		return nil
	}
	ids, err := c.Groups.Client.Identify(ctx, c.Topics.Sources()...)
	if err != nil {
		return err
	}
	for topic, was := range c.sources {
		if now := ids[topic].ID; now != "" && was.ID != "" && now != was.ID {
			return sourceReplaced(topic, was.ID, now)
		}
	}
	return nil
}

const (
	// sourceCheckEvery is how often a running service compares the topics that it copies.
	sourceCheckEvery = 5 * time.Second
	// lookEvery is how often it looks in the store for losses that other processes have noted.
	lookEvery = time.Minute
)

// watch returns when a topic that is copied is not the one that was opened, or ctx ends.
func (c *Copies) watch(ctx context.Context) error {
	tick := time.NewTicker(sourceCheckEvery)
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			if err := c.readLost(ctx); err != nil && ctx.Err() == nil {
				c.Log.Warn("cannot look for losses of the topics that are copied, trying again", "in", lookEvery,
					"error", err)
			}
			continue
		case <-tick.C:
		}
		if err := c.Check(ctx); errors.Is(err, shard.ErrInputReplaced) {
			return err
		}
	}
}

// lose notes records that a topic has deleted before they were copied.
func (c *Copies) lose(topic string, partition int, from, to int64) {
	c.Feeds.Metrics.Lost.Add(to - from)
	lost := commitlog.ShardLost{Shard: partition, Lost: commitlog.Lost{Topic: topic, From: from, To: to,
		Offsets: to - from, Noticed: time.Now().UTC()}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := sources.NoteLost(ctx, c.Store, lost); err != nil {
		c.Log.Error("a loss of records was not noted in the store", "lost", lost.String(), "error", err)
	}
	_ = c.readLost(ctx) // a later read finds it, too
}

// readLost reads what Known returns.
func (c *Copies) readLost(ctx context.Context) error {
	lost, err := c.Lost(ctx)
	if err == nil {
		c.lost.Store(&lost)
	}
	return err
}

// Known returns what Lost has returned within the last minute. It asks nobody.
func (c *Copies) Known() []commitlog.ShardLost {
	if lost := c.lost.Load(); lost != nil {
		return *lost
	}
	return nil
}

// Lost returns what the topics that are copied have lost.
func (c *Copies) Lost(ctx context.Context) (out []commitlog.ShardLost, err error) {
	for _, topic := range c.Topics.Sources() {
		lost, err := sources.Lost(ctx, c.Store, topic)
		if err != nil {
			return nil, err
		}
		out = append(out, lost...)
	}
	return out, nil
}
