package service

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
func (s *Service) openSources(ctx context.Context) error {
	ids, err := s.client.Identify(ctx, s.topics.Sources()...)
	if err != nil {
		return err
	}
	s.sources = map[string]sources.Topic{}
	for _, topic := range s.topics.Sources() {
		now := sources.Topic{ID: ids[topic].ID}
		was, err := sources.Remember(ctx, s.store, topic, now)
		if err != nil {
			return err
		}
		if was.ID != now.ID && was.ID != "" && now.ID != "" {
			if !s.accepted.replaced[topic] {
				return sourceReplaced(topic, was.ID, now.ID)
			}
			now.Epoch = was.Epoch + 1
			s.log.Warn("copying a topic from its start that is not the one that was copied before, as accepted",
				"topic", topic, "id", now.ID, "before", was.ID)
			if err := now.Put(ctx, s.store, topic); err != nil {
				return err
			}
			was = now
		}
		s.sources[topic] = was
		if s.accepted.lost[topic] {
			if err := sources.ForgetLost(ctx, s.store, topic); err != nil {
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
func (s *Service) checkSources(ctx context.Context) error {
	if len(s.sources) == 0 {
		return nil
	}
	ids, err := s.client.Identify(ctx, s.topics.Sources()...)
	if err != nil {
		return err
	}
	for topic, was := range s.sources {
		if now := ids[topic].ID; now != "" && was.ID != "" && now != was.ID {
			return sourceReplaced(topic, was.ID, now)
		}
	}
	return nil
}

// sourceCheckEvery is how often a running service compares the topics that it copies.
const sourceCheckEvery = 5 * time.Second

// watchSources returns when a topic that is copied is not the one that was opened, or ctx ends.
func (s *Service) watchSources(ctx context.Context) error {
	tick := time.NewTicker(sourceCheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := s.checkSources(ctx); errors.Is(err, shard.ErrInputReplaced) {
			return err
		}
	}
}

// loseSource notes records that a topic has deleted before they were copied.
func (s *Service) loseSource(topic string, partition int, from, to int64) {
	s.metrics.feed.Lost.Add(to - from)
	lost := commitlog.ShardLost{Shard: partition, Lost: commitlog.Lost{Topic: topic, From: from, To: to, Offsets: to - from,
		Noticed: time.Now().UTC()}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := sources.NoteLost(ctx, s.store, lost); err != nil {
		s.log.Error("a loss of records could not be noted in the store", "lost", lost.String(), "error", err)
	}
}

// lostSources returns what the topics that are copied have lost.
func (s *Service) lostSources(ctx context.Context) (out []commitlog.ShardLost, err error) {
	for _, topic := range s.topics.Sources() {
		lost, err := sources.Lost(ctx, s.store, topic)
		if err != nil {
			return nil, err
		}
		out = append(out, lost...)
	}
	return out, nil
}
