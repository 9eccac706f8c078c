package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// standbyFormat is the version of Standby documents. Format page: docs/format/state.md.
const standbyFormat = 1

// Standby says which worker keeps a copy of a shard's newest checkpoint on its disk. It is a hint for workers, so
// that one of them keeps it and not all, and for people. Nothing depends on it being right.
type Standby struct {
	Format int `json:"format"`
	Shard  int `json:"shard"`
	// Worker names the process, and its session.
	Worker string `json:"worker"`
	// Number, Seq and Created are those of the checkpoint that it has whole, 0 before the first.
	Number  int64     `json:"number"`
	Seq     int64     `json:"seq"`
	Created time.Time `json:"created,omitzero"`
	// Moves counts how often the document was written: a worker that lives writes it now and then.
	Moves int64 `json:"moves"`
}

func standbyKey(shard int) string { return fmt.Sprintf("shards/%d/standby.json", shard) }

// StandbyClaim is the document as it was read, for a worker that means to write it.
type StandbyClaim struct {
	Standby
	store  sink.Store
	stored []byte // nil if there was none
}

// ReadStandby reads the document of a shard. One that is missing or does not parse has the zero value.
func ReadStandby(ctx context.Context, store sink.Store, shard int) (StandbyClaim, error) {
	c := StandbyClaim{store: store, Standby: Standby{Shard: shard}}
	data, err := sink.ReadAll(ctx, store, standbyKey(shard))
	if errors.Is(err, sink.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read who keeps shard %d warm: %w", shard, err)
	}
	c.stored = data
	var doc Standby
	sealed, err := seal.Decode(data, sink.PlaceOf(store, standbyKey(shard)), &doc)
	if err != nil || !sealed || doc.Format != standbyFormat || doc.Shard != shard {
		return c, nil //nolint:nilerr // a hint that cannot be read is no hint
	}
	c.Standby = doc
	return c, nil
}

// Write writes the document, unless another worker has since it was read: then the error is sink.ErrChanged. c is
// nobody's, or the worker's own, or that of a worker that has not written it for long.
func (c *StandbyClaim) Write(ctx context.Context, to Standby) error {
	to.Format, to.Shard, to.Moves = standbyFormat, c.Shard, c.Moves+1
	data, err := seal.JSON(to, sink.PlaceOf(c.store, standbyKey(c.Shard)))
	if err == nil {
		err = sink.Swap(ctx, c.store, standbyKey(c.Shard), c.stored, data)
	}
	if err != nil {
		return fmt.Errorf("note that shard %d is kept warm: %w", c.Shard, err)
	}
	c.Standby, c.stored = to, data
	return nil
}
