package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"giantstream/sink"
)

// Published says how far the embeddings of a shard were published: every row
// up to manifest Seq, with generation Generation. It is a hint that saves
// work after a restart, never the truth: publishing again is harmless.
type Published struct {
	Generation int64 `json:"generation"`
	Seq        int64 `json:"seq"`
}

func publishedKey(shard int) string { return ShardPrefix(shard) + "published.json" }

// LoadPublished returns the cursor of a shard, the zero value when there is
// none or none that parses.
func LoadPublished(ctx context.Context, store sink.Store, shard int) (Published, error) {
	data, err := sink.ReadAll(ctx, store, publishedKey(shard))
	if errors.Is(err, sink.ErrNotFound) {
		return Published{}, nil
	}
	if err != nil {
		return Published{}, fmt.Errorf("read the published cursor of shard %d: %w", shard, err)
	}
	var p Published
	if json.Unmarshal(data, &p) != nil || p.Seq < 0 || p.Generation < 0 {
		return Published{}, nil //nolint:nilerr // a hint that cannot be read is no hint
	}
	return p, nil
}

// SavePublished replaces the cursor of a shard.
func SavePublished(ctx context.Context, store sink.Store, shard int, p Published) error {
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the published cursor: %w", err)
	}
	if err := sink.PutBytes(ctx, store, publishedKey(shard), data); err != nil {
		return fmt.Errorf("save the published cursor of shard %d: %w", shard, err)
	}
	return nil
}
