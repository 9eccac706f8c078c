// Package sources is what the store remembers of topics that are repartitioned. No manifest names them: the shards read
// copies. A topic has a document with its identity, an object for each range of records that it had deleted before they
// were copied, and one for each partition with how far it is copied. Format page: docs/format/store.md, "Sources".
package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// Topic is the document of a topic.
type Topic struct {
	// ID is the id that the brokers gave the topic, "" where they give none.
	ID string `json:"id"`
	// Epoch counts how often a person has accepted that the topic was created again.
	Epoch int64 `json:"epoch"`
}

const (
	// Prefix is that of all keys.
	Prefix = "sources/"
	// Between the topic's name and the place of a loss, or a partition.
	lostDir   = "/lost/"
	copiedDir = "/copied/"
)

func topicKey(topic string) string   { return Prefix + topic + ".json" }
func lostPrefix(topic string) string { return Prefix + topic + lostDir }

// Remember returns what the store remembers of a topic. The first caller makes it remember now.
func Remember(ctx context.Context, store sink.Store, topic string, now Topic) (was Topic, err error) {
	create := func(ctx context.Context, store sink.Store, key string, data []byte) error {
		return store.Create(ctx, key, data)
	}
	if err := putSealed(ctx, store, topicKey(topic), now, create); err == nil {
		return now, nil
	} else if !errors.Is(err, sink.ErrExists) {
		return was, err
	}
	_, err = readSealed(ctx, store, topicKey(topic), &was)
	if errors.Is(err, sink.ErrDamaged) {
		err = fmt.Errorf("%w. %s", err, restoreSource)
	}
	return was, err
}

// Put replaces what the store remembers of a topic.
func (t Topic) Put(ctx context.Context, store sink.Store, topic string) error {
	return putSealed(ctx, store, topicKey(topic), t, sink.PutBytes)
}

// Copy copies all that a store remembers to the store of another pipeline.
func Copy(ctx context.Context, from, into sink.Store) error {
	for info, err := range from.List(ctx, Prefix, "") {
		if err != nil {
			return err
		}
		var document json.RawMessage
		if _, err := readSealed(ctx, from, info.Key, &document); err != nil {
			return err
		}
		if err := putSealed(ctx, into, info.Key, document, sink.PutBytes); err != nil {
			return err
		}
	}
	return nil
}

// restoreSource says what to do about a damaged object of a source topic.
const restoreSource = "Restore this object from a backup, or write it by hand (docs/format/store.md, \"Sources\"); " +
	"its epoch ends the name of the consumer group that copies the topic."

// putSealed writes a JSON document with its checksum.
func putSealed(ctx context.Context, store sink.Store, key string, v any,
	put func(context.Context, sink.Store, string, []byte) error) error {
	data, err := seal.JSON(v, sink.PlaceOf(store, key))
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
	body, sealed, err := seal.Open(data, sink.PlaceOf(store, key))
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
