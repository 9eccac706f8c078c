package ingesting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
	"giantstream/stream/sources"
)

// openSources compares the topics that are repartitioned with those that the store remembers, and
// notes their epochs.
func (in *Ingest) openSources(ctx context.Context) error {
	ids, err := in.Groups.Client.Identify(ctx, in.Topics.Sources()...)
	if err != nil {
		return err
	}
	in.sources = map[string]sources.Topic{}
	for _, topic := range in.Topics.Sources() {
		now := sources.Topic{ID: ids[topic].ID}
		was, err := sources.Remember(ctx, in.Store, topic, now)
		if err != nil {
			return err
		}
		if was.ID != now.ID && was.ID != "" && now.ID != "" {
			if !in.accepted.replaced[topic] {
				return sourceReplaced(topic, was.ID, now.ID)
			}
			now.Epoch = was.Epoch + 1
			in.Log.Warn("copying a topic from its start that is not the one that was copied before, as accepted",
				"topic", topic, "id", now.ID, "before", was.ID)
			if err := now.Put(ctx, in.Store, topic); err != nil {
				return err
			}
			was = now
		}
		in.sources[topic] = was
		if in.accepted.lost[topic] {
			if err := sources.ForgetLost(ctx, in.Store, topic); err != nil {
				return err
			}
		}
	}
	return nil
}

func sourceReplaced(topic, was, now string) error {
	return fmt.Errorf("kafka topic %q: %w: it was deleted and created again (its id was %s and is %s). "+
		"Its records may not be copied from here on. Accept this with 'giantstream run --accept-loss %s', "+
		"which copies the topic from its start, or start a new pipeline (another store and state)",
		topic, shard.ErrInputReplaced, was, now, topic)
}

// checkSources returns an error if a topic that is copied is not the one that was opened.
func (in *Ingest) checkSources(ctx context.Context) error {
	if len(in.sources) == 0 {
		return nil
	}
	ids, err := in.Groups.Client.Identify(ctx, in.Topics.Sources()...)
	if err != nil {
		return err
	}
	for topic, was := range in.sources {
		if now := ids[topic].ID; now != "" && was.ID != "" && now != was.ID {
			return sourceReplaced(topic, was.ID, now)
		}
	}
	return nil
}

// sourceCheckEvery is how often a running service compares the topics that it copies.
const sourceCheckEvery = 5 * time.Second

// watchSources returns when a topic that is copied is not the one that was opened, or ctx ends.
func (in *Ingest) watchSources(ctx context.Context) error {
	tick := time.NewTicker(sourceCheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := in.checkSources(ctx); errors.Is(err, shard.ErrInputReplaced) {
			return err
		}
	}
}

// loseSource notes records that a topic has deleted before they were copied.
func (in *Ingest) loseSource(topic string, partition int, from, to int64) {
	in.metrics.feed.Lost.Add(to - from)
	lost := commitlog.ShardLost{Shard: partition, Lost: commitlog.Lost{Topic: topic, From: from, To: to, Offsets: to - from,
		Noticed: time.Now().UTC()}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := sources.NoteLost(ctx, in.Store, lost); err != nil {
		in.Log.Error("a loss of records could not be noted in the store", "lost", lost.String(), "error", err)
	}
}

// lostSources returns what the topics that are copied have lost.
func (in *Ingest) lostSources(ctx context.Context) (out []commitlog.ShardLost, err error) {
	for _, topic := range in.Topics.Sources() {
		lost, err := sources.Lost(ctx, in.Store, topic)
		if err != nil {
			return nil, err
		}
		out = append(out, lost...)
	}
	return out, nil
}
