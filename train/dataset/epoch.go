package dataset

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"

	"giantstream/sink/rows"
)

// Epoch yields every row once, in the order of the given epoch, beginning at
// position skip: a trainer that stopped after k rows goes on with skip k, and
// nothing before that position's window is read. The next window is read
// while one is being used. The sequence ends at the first error.
func (d *Dataset) Epoch(ctx context.Context, seed uint64, epoch int, skip int64) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for w, err := range d.load(ctx, d.windows(seed, epoch), skip) {
			if err != nil {
				yield(rows.Row{}, err)
				return
			}
			for k, i := range w.order() {
				if w.first+int64(k) < skip {
					continue
				}
				if !yield(w.data[i], nil) {
					return
				}
			}
		}
	}
}

// ErrShare: the division of the batches does not work out.
var ErrShare = errors.New("batches cannot be divided")

// Share is one trainer's part of every batch.
type Share struct {
	// Batch is the number of rows of a whole batch, over all trainers.
	Batch int
	// World is the number of trainers, Rank this one's number from 0. World
	// divides Batch.
	Rank, World int
	// Step is the first batch wanted, counted from 0 in this epoch.
	Step int64
}

func (s Share) check(rows int64) error {
	switch {
	case s.World < 1 || s.Rank < 0 || s.Rank >= s.World:
		return fmt.Errorf("%w: rank %d of %d trainers does not exist", ErrShare, s.Rank, s.World)
	case s.Batch < 1 || s.Batch%s.World != 0:
		return fmt.Errorf("%w: a batch of %d rows among %d trainers; choose a multiple", ErrShare, s.Batch, s.World)
	case int64(s.Batch) > rows:
		return fmt.Errorf("%w: a batch of %d rows from a training set of %d; choose a smaller batch", ErrShare, s.Batch, rows)
	case s.Step < 0:
		return fmt.Errorf("%w: step %d", ErrShare, s.Step)
	}
	return nil
}

// Steps returns the number of batches in an epoch. What is left of the rows is
// too few for a batch and left out of this epoch; it is other rows in the next.
func (d *Dataset) Steps(batch int) int64 { return d.rows / int64(max(batch, 1)) }

// Batches yields a trainer's rows of every batch from s.Step on. Batch k is the
// rows at positions k·Batch to (k+1)·Batch of the epoch, whatever the number
// of trainers; the trainer of rank r has the r-th of World equal slices. So
// training may go on with another number of trainers after any step. The
// slice is the caller's; its rows share memory with their window.
func (d *Dataset) Batches(ctx context.Context, seed uint64, epoch int, s Share) iter.Seq2[[]rows.Row, error] {
	return func(yield func([]rows.Row, error) bool) {
		if err := s.check(d.rows); err != nil {
			yield(nil, fmt.Errorf("dataset: %w", err))
			return
		}
		size, share := int64(s.Batch), s.Batch/s.World
		position, end := s.Step*size, d.Steps(s.Batch)*size
		if position >= end {
			return
		}
		batch := make([]rows.Row, 0, share)
		for row, err := range d.Epoch(ctx, seed, epoch, position) {
			if err != nil {
				yield(nil, err)
				return
			}
			if at := int(position % size); at/share == s.Rank {
				batch = append(batch, row)
			}
			position++
			if position%size != 0 {
				continue
			}
			if !yield(batch, nil) || position == end {
				return
			}
			batch = make([]rows.Row, 0, share)
		}
	}
}

// loaded is a window with its rows, group after group.
type loaded struct {
	window
	data []rows.Row
}

// load yields the windows from position skip on, reading one ahead.
func (d *Dataset) load(ctx context.Context, plan []window, skip int64) iter.Seq2[*loaded, error] {
	return func(yield func(*loaded, error) bool) {
		for len(plan) > 0 && plan[0].first+plan[0].rows <= skip {
			plan = plan[1:]
		}
		ctx, cancel := context.WithCancel(ctx)
		ready := make(chan *loaded)
		var failed error
		go func() {
			defer close(ready)
			for _, w := range plan {
				l, err := d.read(ctx, w)
				if err != nil {
					failed = err
					return
				}
				select {
				case ready <- l:
				case <-ctx.Done():
					failed = ctx.Err()
					return
				}
			}
		}()
		defer func() {
			cancel()
			for range ready {
				continue // until the reader has ended
			}
		}()
		for l := range ready {
			if !yield(l, nil) {
				return
			}
		}
		if failed != nil {
			yield(nil, fmt.Errorf("dataset: %w", failed))
		}
	}
}

// read reads the row groups of a window side by side.
func (d *Dataset) read(ctx context.Context, w window) (*loaded, error) {
	l := &loaded{w, make([]rows.Row, w.rows)}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	at := int64(0)
	for _, c := range w.groups {
		into := l.data[at : at+c.rows]
		at += c.rows
		g.Go(func() error {
			n := 0
			for row, err := range rows.ReadGroup(ctx, d.store, c.key, c.index, rows.ReadOptions{Columns: d.Columns}) {
				if err != nil {
					return err
				}
				if n == len(into) {
					return fmt.Errorf("%s changed while it was read", c.key)
				}
				into[n] = row
				n++
			}
			if n < len(into) {
				return fmt.Errorf("%s changed while it was read", c.key)
			}
			return nil
		})
	}
	return l, g.Wait()
}
