package dataset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/train/internal/rng"
)

// ErrEmpty: there is no part under the prefix.
var ErrEmpty = errors.New("no training set; has the generation been fitted?")

// DefaultBuffer is the number of rows of the shuffle buffer, some 100 MB.
const DefaultBuffer = 16384

// Dataset is the training set of one generation.
type Dataset struct {
	// Buffer is the size of the shuffle buffer in rows; it is part of what
	// determines the order of an epoch.
	Buffer int
	// Columns are the columns to read; none means all (see rows.ReadOptions).
	Columns []string

	store sink.Store
	parts []string
}

// Open lists the parts under prefix, in order of key.
func Open(ctx context.Context, store sink.Store, prefix string) (*Dataset, error) {
	d := &Dataset{Buffer: DefaultBuffer, store: store}
	for info, err := range store.List(ctx, prefix+"/part-", "") {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(info.Key, ".parquet") {
			d.parts = append(d.parts, info.Key)
		}
	}
	if len(d.parts) == 0 {
		return nil, fmt.Errorf("dataset %s: %w", prefix, ErrEmpty)
	}
	return d, nil
}

// Parts returns the keys of the parts, in order.
func (d *Dataset) Parts() []string { return d.parts }

// All yields every row, part by part. The sequence ends at the first error.
func (d *Dataset) All(ctx context.Context) iter.Seq2[rows.Row, error] {
	order := make([]int32, len(d.parts))
	for i := range order {
		order[i] = int32(i)
	}
	return d.read(ctx, order)
}

// Epoch yields every row once, in the random order of the given epoch. The
// sequence ends at the first error. To resume, skip the rows already seen.
func (d *Dataset) Epoch(ctx context.Context, seed uint64, epoch int) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		r := rng.New(seed, uint64(epoch))
		order := r.Perm(len(d.parts))
		size := max(d.Buffer, 1)
		buffer := make([]rows.Row, 0, min(size, DefaultBuffer))
		for row, err := range d.read(ctx, order) {
			if err != nil {
				yield(rows.Row{}, err)
				return
			}
			if len(buffer) < size {
				buffer = append(buffer, row)
				continue
			}
			k := r.IntN(size)
			buffer[k], row = row, buffer[k]
			if !yield(row, nil) {
				return
			}
		}
		for _, k := range r.Perm(len(buffer)) {
			if !yield(buffer[k], nil) {
				return
			}
		}
	}
}

func (d *Dataset) read(ctx context.Context, order []int32) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for _, i := range order {
			for row, err := range rows.Read(ctx, d.store, d.parts[i], rows.ReadOptions{Columns: d.Columns}) {
				if err != nil {
					err = fmt.Errorf("dataset: %s: %w", d.parts[i], err)
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}
