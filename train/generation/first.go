package generation

import (
	"context"
	"errors"
	"fmt"

	"giantstream/internal/seal"
	"giantstream/sink"
)

// firstKey names the object with the number of a store's first generation. Without it, that is 1.
const firstKey = root + "first.json"

// first is the object at firstKey.
type first struct {
	Format     int   `json:"format"`
	Generation int64 `json:"generation"`
}

const firstFormat = 1

// BeginAt gives the first generation of a store a number, unless it has one: its pipeline goes on where another one has
// published generations, and consumers tell generations apart by their numbers.
func BeginAt(ctx context.Context, store sink.Store, number int64) error {
	data, err := seal.JSON(first{firstFormat, number}, sink.PlaceOf(store, firstKey))
	if err != nil {
		return err
	}
	if err = store.Create(ctx, firstKey, data); errors.Is(err, sink.ErrExists) {
		return nil
	}
	return err
}

// loadFirst returns the number of a store's first generation.
func loadFirst(ctx context.Context, store sink.Store) (int64, error) {
	data, err := sink.ReadAll(ctx, store, firstKey)
	if errors.Is(err, sink.ErrNotFound) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	var f first
	sealed, err := seal.Decode(data, sink.PlaceOf(store, firstKey), &f)
	if err == nil && (!sealed || f.Format != firstFormat || f.Generation < 1) {
		err = fmt.Errorf("format %d and generation %d, this version reads %d, with a checksum", f.Format, f.Generation,
			firstFormat)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %w", firstKey, sink.ErrDamaged, err)
	}
	return f.Generation, nil
}
