package parquetio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"

	"giantstream/sink"
)

// readBatch is how many rows are decoded at a time.
const readBatch = 256

// Get yields the rows of the object under key, with the given columns filled
// in. The sequence ends at the first error.
func Get[T any](ctx context.Context, s sink.Store, key, format string, columns []Column[T]) iter.Seq2[T, error] {
	return get(ctx, s, key, format, columns, allGroups)
}

// GetGroup is Get for the rows of one row group, counted from 0.
func GetGroup[T any](ctx context.Context, s sink.Store, key, format string, columns []Column[T], group int) iter.Seq2[T, error] {
	return get(ctx, s, key, format, columns, group)
}

// Groups returns how many rows each row group of the object under key has.
func Groups(ctx context.Context, s sink.Store, key, format string) (_ []int64, err error) {
	obj, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer obj.Close() //nolint:errcheck // read only
	f, err := openFormat(obj, obj.Size(), format)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	var rows []int64
	for _, g := range f.RowGroups() {
		rows = append(rows, g.NumRows())
	}
	return rows, nil
}

// Read yields the rows of a file of size bytes.
func Read[T any](r io.ReaderAt, size int64, format string, columns []Column[T]) iter.Seq2[T, error] {
	return read(r, size, format, columns, allGroups)
}

// allGroups stands for every row group.
const allGroups = -1

func get[T any](ctx context.Context, s sink.Store, key, format string, columns []Column[T], group int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		obj, err := s.Open(ctx, key)
		if err != nil {
			yield(zero, err)
			return
		}
		defer obj.Close() //nolint:errcheck // read only
		for row, err := range read(obj, obj.Size(), format, columns, group) {
			if err != nil {
				err = fmt.Errorf("read %s: %w", key, err)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

func read[T any](r io.ReaderAt, size int64, format string, columns []Column[T], group int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		f, err := openFormat(r, size, format)
		var leaves []leaf
		if err == nil {
			leaves, err = findLeaves(f, columns)
		}
		if err == nil && (group < allGroups || group >= len(f.RowGroups())) {
			err = fmt.Errorf("%w: row group %d of %d", ErrCorrupt, group, len(f.RowGroups()))
		}
		if err != nil {
			yield(zero, err)
			return
		}
		groups := f.RowGroups()
		if group != allGroups {
			groups = groups[group : group+1]
		}
		for _, g := range groups {
			for row, err := range readGroup(g, columns, leaves) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

func readGroup[T any](group parquet.RowGroup, columns []Column[T], leaves []leaf) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		cursors, err := openCursors(group, leaves)
		defer func() {
			for _, c := range cursors {
				c.close() //nolint:errcheck // read only
			}
		}()
		rows := make([]T, readBatch)
		for left := group.NumRows(); err == nil && left > 0; left -= int64(len(rows)) {
			rows = rows[:min(left, readBatch)]
			if err = readRows(cursors, columns, rows); err != nil {
				break
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(zero, err)
		}
	}
}

func openCursors(group parquet.RowGroup, leaves []leaf) (cursors []*cursor, err error) {
	defer recoverCorrupt(&err)
	chunks := group.ColumnChunks()
	for _, l := range leaves {
		if l.index >= len(chunks) {
			return cursors, fmt.Errorf("%w: row group with %d columns", ErrCorrupt, len(chunks))
		}
		cursors = append(cursors, newCursor(chunks[l.index].Pages(), l))
	}
	return cursors, nil
}

// readRows fills rows column by column.
func readRows[T any](cursors []*cursor, columns []Column[T], rows []T) (err error) {
	defer recoverCorrupt(&err)
	clear(rows)
	for i, col := range columns {
		if err := col.read(cursors[i], rows); err != nil {
			return fmt.Errorf("column %s: %w", col.Name, err)
		}
	}
	return nil
}

// Select returns the columns with the given names, all of them if there are
// none, in the order of all.
func Select[T any](all []Column[T], names []string) ([]Column[T], error) {
	if len(names) == 0 {
		return all, nil
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	var some []Column[T]
	for _, col := range all {
		if wanted[col.Name] {
			some = append(some, col)
			delete(wanted, col.Name)
		}
	}
	var unknown []error
	for name := range wanted {
		unknown = append(unknown, fmt.Errorf("there is no column %q", name))
	}
	return some, errors.Join(unknown...)
}
