package rows

import (
	"context"
	"io"
	"iter"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// FormatName and version of the files.
const FormatName = "rows/1"

// Info describes a written object, for the manifest that names it.
type Info = parquetio.Info

// Writer writes one Parquet file of rows; Close finishes it.
type Writer = parquetio.Writer[Row]

// NewWriter starts a file on w.
func NewWriter(w io.Writer) *Writer {
	return parquetio.NewWriter(w, format())
}

// Write stores the rows under key, after it has verified the row count of the
// finished file. An error of the sequence ends it, and nothing is stored then.
func Write(ctx context.Context, s sink.Store, key string, rows iter.Seq2[Row, error]) (Info, error) {
	return WriteWith(ctx, s, key, WriteOptions{}, rows)
}

// WriteOptions choose how a file is laid out; the rows in it are the same.
type WriteOptions struct {
	// GroupBytes is the raw size at which a row group is closed; 0 is 16 MiB.
	// Small groups are for readers that want some of the rows (ReadGroup).
	GroupBytes  int
	Compression parquetio.Compression
}

// WriteWith is Write with options.
func WriteWith(ctx context.Context, s sink.Store, key string, opts WriteOptions, rows iter.Seq2[Row, error]) (Info, error) {
	f := format()
	f.GroupBytes, f.Compression = opts.GroupBytes, opts.Compression
	return parquetio.Put(ctx, s, key, f, rows)
}

// WriteSlice is Write for rows that are in memory.
func WriteSlice(ctx context.Context, s sink.Store, key string, rows []Row) (Info, error) {
	return Write(ctx, s, key, func(yield func(Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	})
}

func format() parquetio.Format[Row] {
	return parquetio.Format[Row]{Name: FormatName, Size: size, Generation: func(r *Row) int64 { return r.Generation }}
}

// size estimates the raw bytes of a row in its columns.
func size(r *Row) int {
	n := 24 + len(r.NodeID) + len(r.Text) + len(r.Class) + 8*len(r.FeatureIndices)
	for _, l := range r.Labels {
		n += 4 + len(l)
	}
	for _, t := range r.Targets {
		n += 8 * len(t) // and as many counts
	}
	return n
}

// The columns.
const (
	ColNodeID         = "node_id"
	ColText           = "text"
	ColClass          = "class"
	ColLabels         = "labels"
	ColFeatureIndices = "feature_indices"
	ColFeatureValues  = "feature_values"
	ColTargets        = "targets"
	ColTargetCounts   = "target_counts"
	ColGeneration     = "generation"
	ColEventTime      = "event_time"
	ColDeleted        = "deleted"
)

// ReadOptions choose what is read.
type ReadOptions struct {
	// Columns to read, by name; the fields of the others stay zero.
	// None means all.
	Columns []string
}

// Read yields the rows of the object under key, in order, with bounded memory.
// The sequence ends at the first error. Rows may be kept; neighbouring rows
// share memory.
func Read(ctx context.Context, s sink.Store, key string, opts ReadOptions) iter.Seq2[Row, error] {
	columns, err := parquetio.Select(columns(), opts.Columns)
	if err != nil {
		return failed(err)
	}
	return parquetio.Get(ctx, s, key, FormatName, columns)
}

// Groups returns how many rows each row group of the object under key has.
func Groups(ctx context.Context, s sink.Store, key string) ([]int64, error) {
	return parquetio.Groups(ctx, s, key, FormatName)
}

// ReadGroup is Read for the rows of one row group, counted from 0.
func ReadGroup(ctx context.Context, s sink.Store, key string, group int, opts ReadOptions) iter.Seq2[Row, error] {
	columns, err := parquetio.Select(columns(), opts.Columns)
	if err != nil {
		return failed(err)
	}
	return parquetio.GetGroup(ctx, s, key, FormatName, columns, group)
}

// ReadFrom is Read for a file of size bytes.
func ReadFrom(r io.ReaderAt, size int64, opts ReadOptions) iter.Seq2[Row, error] {
	columns, err := parquetio.Select(columns(), opts.Columns)
	if err != nil {
		return failed(err)
	}
	return parquetio.Read(r, size, FormatName, columns)
}

func failed(err error) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) { yield(Row{}, err) }
}

func columns() []parquetio.Column[Row] {
	str, i32, i64 := parquetio.String(), parquetio.Int32(), parquetio.Int64()
	return []parquetio.Column[Row]{
		parquetio.Scalar(ColNodeID, str, func(r *Row, v string) { r.NodeID = v }),
		parquetio.Scalar(ColText, str, func(r *Row, v string) { r.Text = v }),
		parquetio.Scalar(ColClass, str, func(r *Row, v string) { r.Class = v }),
		parquetio.List(ColLabels, str, func(r *Row, v []string) { r.Labels = v }),
		parquetio.List(ColFeatureIndices, i32, func(r *Row, v []int32) { r.FeatureIndices = v }),
		parquetio.List(ColFeatureValues, parquetio.Float(), func(r *Row, v []float32) { r.FeatureValues = v }),
		parquetio.Lists(ColTargets, i32, func(r *Row, v [][]int32) { r.Targets = v }),
		parquetio.Lists(ColTargetCounts, i32, func(r *Row, v [][]int32) { r.TargetCounts = v }),
		parquetio.Scalar(ColGeneration, i64, func(r *Row, v int64) { r.Generation = v }),
		parquetio.Scalar(ColEventTime, i64, func(r *Row, v int64) { r.EventTime = v }),
		parquetio.Scalar(ColDeleted, parquetio.Bool(), func(r *Row, v bool) { r.Deleted = v }),
	}
}
