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

// FormatName returns the name and version of the format of a file of size bytes, "" if it names none.
func FormatName(r io.ReaderAt, size int64) (string, error) {
	f, err := openFile(r, size)
	if err != nil {
		return "", err
	}
	name, _ := f.Lookup(formatKey)
	return name, nil
}

// Get yields the rows of an object, with the columns that choose returns filled in. It reads the object
// through first: sink.ErrDamaged if it is not what ref says, before any row. The sequence ends at the
// first error.
func Get[T any](ctx context.Context, s sink.Store, ref sink.Ref,
	choose func(sink.Object) (format string, columns []Column[T], err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		obj, err := sink.OpenVerified(ctx, s, ref)
		if err != nil {
			yield(zero, err)
			return
		}
		defer obj.Close() //nolint:errcheck // read only
		format, columns, err := choose(obj)
		if err != nil {
			yield(zero, fmt.Errorf("read %s: %w", ref.Key, err))
			return
		}
		for row, err := range Read(obj, obj.Size(), format, columns) {
			if err != nil {
				err = fmt.Errorf("read %s: %w", ref.Key, err)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// Read yields the rows of a file of size bytes.
func Read[T any](r io.ReaderAt, size int64, format string, columns []Column[T]) iter.Seq2[T, error] {
	return readGroups(r, size, format, columns, readGroup[T])
}

// readGroups yields what read does of each row group.
func readGroups[T any](r io.ReaderAt, size int64, format string, columns []Column[T],
	read func(parquet.RowGroup, []Column[T], []leaf) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		f, err := openFormat(r, size, format)
		var found []Column[T]
		var leaves []leaf
		if err == nil {
			found, leaves, err = findLeaves(f, columns)
		}
		if err != nil {
			yield(zero, err)
			return
		}
		for _, g := range f.RowGroups() {
			for row, err := range read(g, found, leaves) {
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

// Select returns the columns with the given names, all of them if there are none, in the order of
// all.
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
