package dataset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"golang.org/x/sync/errgroup"

	"giantstream/sink"
	"giantstream/sink/rows"
)

// ErrEmpty: there is no part under the prefix.
var ErrEmpty = errors.New("no training set; has the generation been fitted?")

const (
	// GroupBytes is the raw size of the row groups that a training set should
	// be written with: small enough that a window of them is well mixed.
	GroupBytes = 2 << 20
	// DefaultWindow is how many row groups are mixed at a time, some 32 MiB.
	DefaultWindow = 16
	// parallelReads is how many parts are read at a time, for stores that
	// answer slowly.
	parallelReads = 8
)

// Dataset is the training set of one generation.
type Dataset struct {
	// Window is how many row groups are mixed at a time. It is part of what
	// determines the order of an epoch, and bounds memory: two windows.
	Window int
	// Columns are the columns to read; none means all (see rows.ReadOptions).
	Columns []string

	store  sink.Store
	parts  []string
	groups []group
	rows   int64
}

// group is a row group: what is read at a time.
type group struct {
	key   string
	index int
	rows  int64
}

// Open reads the footers of the parts under prefix, in order of key.
func Open(ctx context.Context, store sink.Store, prefix string) (*Dataset, error) {
	d := &Dataset{Window: DefaultWindow, store: store}
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
	sizes := make([][]int64, len(d.parts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, key := range d.parts {
		g.Go(func() (err error) {
			sizes[i], err = rows.Groups(ctx, store, key)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	for i, key := range d.parts {
		for k, n := range sizes[i] {
			if n == 0 {
				continue
			}
			d.groups = append(d.groups, group{key, k, n})
			d.rows += n
		}
	}
	return d, nil
}

// Parts returns the keys of the parts, in order.
func (d *Dataset) Parts() []string { return d.parts }

// Rows returns the number of instances.
func (d *Dataset) Rows() int64 { return d.rows }

// All yields every row, part by part. The sequence ends at the first error.
func (d *Dataset) All(ctx context.Context) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for _, key := range d.parts {
			for row, err := range rows.Read(ctx, d.store, key, rows.ReadOptions{Columns: d.Columns}) {
				if err != nil {
					err = fmt.Errorf("dataset: %w", err)
				}
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}
