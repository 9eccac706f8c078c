package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"giantstream/sink"
)

// awaitRows returns once the Parquet objects of a run have that many rows.
func (p *place) awaitRows(ctx context.Context, run string, rows int64) error {
	store, err := p.store(ctx, folder(run))
	if err != nil {
		return err
	}
	counted := map[string]int64{}
	have := int64(0)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		for o, err := range store.List(ctx, "", "") {
			if err != nil {
				return err
			}
			if _, known := counted[o.Key]; known || !strings.HasSuffix(o.Key, ".parquet") {
				continue
			}
			n, err := parquetRows(ctx, store, o.Key)
			if err != nil {
				return err
			}
			counted[o.Key] = n
			have += n
		}
		if have >= rows {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d rows in %d objects: %w", have, rows, len(counted), ctx.Err())
		case <-tick.C:
		}
	}
}

// parquetRows reads an object's footer.
func parquetRows(ctx context.Context, store sink.Store, key string) (int64, error) {
	o, err := store.Open(ctx, key)
	if err != nil {
		return 0, err
	}
	defer o.Close() //nolint:errcheck // it was only read
	f, err := parquet.OpenFile(o, o.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, err
	}
	return f.NumRows(), nil
}
