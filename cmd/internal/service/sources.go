package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// sourceTopic is what the store remembers of a topic that is repartitioned. No manifest names it:
// the shards read copies.
type sourceTopic struct {
	// ID is the id that the brokers gave the topic, "" where they give none.
	ID string `json:"id"`
	// Epoch counts how often a person has accepted that the topic was created again.
	Epoch int64 `json:"epoch"`
}

const (
	sourcesPrefix = "sources/"
	lostDir       = "/lost/" // between the topic's name and the place of a loss
)

func sourceKey(topic string) string     { return sourcesPrefix + topic + ".json" }
func sourceLostKey(topic string) string { return sourcesPrefix + topic + lostDir }

// openSources compares the topics that are repartitioned with those that the store remembers, and
// notes their epochs.
func (s *Service) openSources(ctx context.Context) error {
	ids, err := s.client.Identify(ctx, s.topics.Sources()...)
	if err != nil {
		return err
	}
	s.sources = map[string]sourceTopic{}
	for _, topic := range s.topics.Sources() {
		now := sourceTopic{ID: ids[topic].ID}
		was, err := s.loadSource(ctx, topic, now)
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
			if err := putSealed(ctx, s.store, sourceKey(topic), now, sink.PutBytes); err != nil {
				return err
			}
			was = now
		}
		s.sources[topic] = was
		if s.accepted.lost[topic] {
			if err := s.forgetLost(ctx, topic); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadSource returns what the store remembers of a topic. The first caller makes it remember now.
func (s *Service) loadSource(ctx context.Context, topic string, now sourceTopic) (was sourceTopic, err error) {
	create := func(ctx context.Context, store sink.Store, key string, data []byte) error {
		return store.Create(ctx, key, data)
	}
	if err := putSealed(ctx, s.store, sourceKey(topic), now, create); err == nil {
		return now, nil
	} else if !errors.Is(err, sink.ErrExists) {
		return was, err
	}
	_, err = readSealed(ctx, s.store, sourceKey(topic), &was)
	if errors.Is(err, sink.ErrDamaged) {
		err = fmt.Errorf("%w. %s", err, restoreSource)
	}
	return was, err
}

// restoreSource says what to do about a damaged object of a source topic.
const restoreSource = "Restore this object from a backup, or write it by hand (docs/format/store.md, \"Sources\"); " +
	"its epoch ends the name of the consumer group that copies the topic."

// putSealed writes a JSON document with its checksum.
func putSealed(ctx context.Context, store sink.Store, key string, v any,
	put func(context.Context, sink.Store, string, []byte) error) error {
	data, err := seal.JSON(v)
	if err == nil {
		err = put(ctx, store, key, data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// readSealed reads a JSON document; sink.ErrDamaged if it is not what was written. Older releases
// have written some without a checksum: then sealed is false.
func readSealed(ctx context.Context, store sink.Store, key string, v any) (sealed bool, err error) {
	data, err := sink.ReadAll(ctx, store, key)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", key, err)
	}
	body, sealed, err := seal.Open(data)
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields() // a document whose seal is damaged has one member too many
		err = dec.Decode(v)
	}
	if err != nil {
		return sealed, fmt.Errorf("read %s: %w: %w", key, sink.ErrDamaged, err)
	}
	return sealed, nil
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
	lost := Lost{partition, commitlog.Lost{Topic: topic, From: from, To: to, Offsets: to - from,
		Noticed: time.Now().UTC()}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := putSealed(ctx, s.store, lost.key(), lost, sink.PutBytes); err != nil {
		s.log.Error("a loss of records could not be noted in the store", "lost", lost.String(), "error", err)
	}
}

// key names the object that notes a loss of a source topic.
func (l Lost) key() string {
	return fmt.Sprintf("%s%d-%020d-%020d.json", sourceLostKey(l.Topic), l.Shard, l.From, l.To)
}

// lostByKey returns the loss that an object is named after, without the time when it was noticed.
func lostByKey(key string) (l Lost, ok bool) {
	topic, place, found := strings.Cut(strings.TrimPrefix(key, sourcesPrefix), lostDir)
	n, err := fmt.Sscanf(place, "%d-%d-%d.json", &l.Shard, &l.From, &l.To)
	l.Topic, l.Offsets = topic, l.To-l.From
	return l, found && n == 3 && err == nil && l.key() == key
}

// AuditSources checks what the store remembers of topics that are repartitioned.
func AuditSources(ctx context.Context, a *audit.Audit) error {
	for _, key := range a.Keys(sourcesPrefix) {
		var err error
		if strings.Contains(key, lostDir) {
			err = auditLost(ctx, a, key)
		} else {
			err = auditSource(ctx, a, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func auditSource(ctx context.Context, a *audit.Audit, key string) error {
	sealed, err := readSealed(ctx, a.Store, key, &sourceTopic{})
	if err == nil {
		a.Document(key, sealed)
		return nil
	}
	if !audit.IsDamage(err) {
		return err
	}
	a.Claim(key)
	return a.Found(ctx, audit.Finding{Kind: audit.Lost, Object: key, What: err.Error(),
		Lost: "no worker that copies the topic can start; committed rows are not affected", Do: restoreSource}, "", nil)
}

func auditLost(ctx context.Context, a *audit.Audit, key string) error {
	var lost Lost
	sealed, err := readSealed(ctx, a.Store, key, &lost)
	if err == nil && lost.key() != key {
		err = fmt.Errorf("it says that %s was lost", lost)
	} else if err != nil && !audit.IsDamage(err) {
		return err
	}
	if err == nil {
		a.Document(key, sealed)
		return nil
	}
	a.Claim(key)
	named, ok := lostByKey(key)
	if !ok {
		return a.Found(ctx, audit.Finding{Kind: audit.Orphan, Object: key,
			What: "no worker writes objects of such a name"}, "", nil)
	}
	return a.Found(ctx, audit.Finding{Kind: audit.Derived, Object: key, What: err.Error(),
		Lost: "when the loss was noticed"}, "write the object again from its name", func(ctx context.Context) error {
		return putSealed(ctx, a.Store, key, named, sink.PutBytes)
	})
}

// lostSources returns what the topics that are copied have lost.
func (s *Service) lostSources(ctx context.Context) (out []Lost, err error) {
	for _, topic := range s.topics.Sources() {
		lost, err := LostSource(ctx, s.store, topic)
		if err != nil {
			return nil, err
		}
		out = append(out, lost...)
	}
	return out, nil
}

// LostSource returns what a topic has lost before it was copied. The shard is a partition of it.
func LostSource(ctx context.Context, store sink.Store, topic string) (out []Lost, err error) {
	for info, err := range store.List(ctx, sourceLostKey(topic), "") {
		if err != nil {
			return nil, fmt.Errorf("list the losses of %s: %w", topic, err)
		}
		var lost Lost
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

// forgetLost forgets losses that a person has accepted.
func (s *Service) forgetLost(ctx context.Context, topic string) error {
	var keys []string
	for info, err := range s.store.List(ctx, sourceLostKey(topic), "") {
		if err != nil {
			return fmt.Errorf("list the losses of %s: %w", topic, err)
		}
		keys = append(keys, info.Key)
	}
	for _, key := range keys {
		if err := s.store.Delete(ctx, key); err != nil {
			return fmt.Errorf("forget an accepted loss: %w", err)
		}
	}
	return nil
}
