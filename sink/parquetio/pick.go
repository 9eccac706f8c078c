package parquetio

import (
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"
)

// ReadRows yields some rows of a file: those with the numbers in wanted, which ascend. It reads the pages
// that have them, as far as the file has an index of its pages.
func ReadRows[T any](r io.ReaderAt, size int64, format string, columns []Column[T], wanted []int64) iter.Seq2[T,
	error] {
	return func(yield func(T, error) bool) {
		begin, left := int64(0), wanted
		readGroups(r, size, format, columns, func(g parquet.RowGroup, columns []Column[T], leaves []leaf) iter.Seq2[T,
			error] {
			var rows []int64 // of the group
			for ; len(left) > 0 && left[0] < begin+g.NumRows(); left = left[1:] {
				rows = append(rows, left[0]-begin)
			}
			begin += g.NumRows()
			return pickRows(g, columns, leaves, rows)
		})(yield)
	}
}

func pickRows[T any](group parquet.RowGroup, columns []Column[T], leaves []leaf, wanted []int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if len(wanted) == 0 {
			return
		}
		var zero T
		cursors, err := openCursors(group, leaves)
		defer func() {
			for _, c := range cursors {
				c.close() //nolint:errcheck // read only
			}
		}()
		rows := make([]T, readBatch)
		at := int64(0)
		for err == nil && len(wanted) > 0 {
			if wanted[0]-at >= readBatch {
				at = wanted[0]
				if err = seek(group, leaves, cursors, at); err != nil {
					break
				}
			}
			some := 1
			for some < len(wanted) && wanted[some]-at < readBatch {
				some++
			}
			read := rows[:wanted[some-1]-at+1]
			if err = readRows(cursors, columns, read); err != nil {
				break
			}
			for _, row := range wanted[:some] {
				if !yield(read[row-at], nil) {
					return
				}
			}
			at += int64(len(read))
			wanted = wanted[some:]
		}
		if err != nil {
			yield(zero, err)
		}
	}
}

func seek(group parquet.RowGroup, leaves []leaf, cursors []*cursor, row int64) (err error) {
	defer recoverCorrupt(&err)
	for i, c := range cursors {
		// Cursors use the index of pages once it is read. Without one they pass over the pages before.
		_, _ = group.ColumnChunks()[leaves[i].index].OffsetIndex()
		if err := c.seek(row); err != nil {
			return err
		}
	}
	return nil
}
