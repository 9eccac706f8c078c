package parquetio

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Keys of the file's metadata.
const (
	// formatKey holds the artifact and its version: "rows/1".
	formatKey = "giantstream.format"
	// generationKey holds the highest generation among the rows.
	generationKey = "giantstream.generation"
)

// rowGroupBytes is the raw size at which a row group is closed, unless the format has another.
const rowGroupBytes = 16 << 20

// Format describes one kind of file. T is a struct with parquet tags.
type Format[T any] struct {
	// Name and version, "rows/1", kept under formatKey.
	Name string
	// Size estimates the raw bytes of a row in its columns.
	Size func(*T) int
	// Generation returns the generation of a row.
	Generation func(*T) int64
	// GroupBytes is the raw size at which a row group is closed, 0 for 16 MiB. Small groups are for
	// readers that want some of the rows.
	GroupBytes  int
	Compression Compression
	// Unbounded are columns of long texts or binary, as dotted paths, whose least and greatest values in a
	// page say nothing to any reader, and are not written.
	Unbounded []string
	// Further are columns behind those of T.
	Further []Further[T]
}

func (f Format[T]) groupBytes() int {
	if f.GroupBytes > 0 {
		return f.GroupBytes
	}
	return rowGroupBytes
}

// Writer writes one file, which is complete after Close. It is not safe for concurrent use.
type Writer[T any] struct {
	format     Format[T]
	w          *parquet.GenericWriter[T]
	own        *parquet.Schema // of T alone, for a format with further columns
	rows       int64
	groupBytes int
	generation int64
}

// NewWriter starts a file on w.
func NewWriter[T any](w io.Writer, format Format[T]) *Writer[T] {
	options := []parquet.WriterOption{
		parquet.Compression(format.Compression.codec()),
		parquet.CreatedBy("giantstream", format.Name, ""),
		parquet.KeyValueMetadata(formatKey, format.Name),
	}
	for _, column := range format.Unbounded {
		options = append(options, parquet.SkipPageBounds(strings.Split(column, ".")...))
	}
	out := &Writer[T]{format: format}
	if len(format.Further) > 0 {
		out.own = parquet.SchemaOf(new(T))
		options = append(options, format.schema())
	}
	out.w = parquet.NewGenericWriter[T](w, options...)
	return out
}

// Write appends rows.
func (w *Writer[T]) Write(rows []T) error {
	for len(rows) > 0 {
		n := w.fill(rows)
		if err := w.write(rows[:n]); err != nil {
			return fmt.Errorf("write parquet rows: %w", err)
		}
		w.rows += int64(n)
		rows = rows[n:]
		if w.groupBytes >= w.format.groupBytes() {
			if err := w.w.Flush(); err != nil {
				return fmt.Errorf("write parquet row group: %w", err)
			}
			w.groupBytes = 0
		}
	}
	return nil
}

func (w *Writer[T]) write(rows []T) error {
	if w.own == nil {
		_, err := w.w.Write(rows)
		return err
	}
	all := make([]parquet.Row, len(rows))
	for i := range rows {
		all[i] = w.format.row(w.own, &rows[i])
	}
	_, err := w.w.WriteRows(all)
	return err
}

// fill returns how many of rows complete the row group, at least one.
func (w *Writer[T]) fill(rows []T) int {
	for i := range rows {
		w.groupBytes += w.format.Size(&rows[i])
		w.generation = max(w.generation, w.format.Generation(&rows[i]))
		if w.groupBytes >= w.format.groupBytes() {
			return i + 1
		}
	}
	return len(rows)
}

// Close writes the footer.
func (w *Writer[T]) Close() error {
	w.w.SetKeyValueMetadata(generationKey, strconv.FormatInt(w.generation, 10))
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("finish parquet file: %w", err)
	}
	return nil
}

// Rows returns the number of rows written.
func (w *Writer[T]) Rows() int64 { return w.rows }
