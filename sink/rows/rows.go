package rows

import (
	"context"
	"io"
	"iter"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// formatName and version of the files.
const formatName = "rows/1"

// NewWriter starts a file on w; Close finishes it.
func NewWriter(w io.Writer) *parquetio.Writer[Row] { return parquetio.NewWriter(w, format()) }

// WriteOptions choose how a file is laid out; the rows in it are the same.
type WriteOptions struct {
	// GroupBytes is the raw size at which a row group is closed; 0 is 16 MiB.
	GroupBytes  int
	Compression parquetio.Compression
}

// Write stores the rows under key, after it has verified the row count of the finished file. An
// error of the sequence ends it, and nothing is stored then.
func Write(
	ctx context.Context, s sink.Store, key string, opts WriteOptions, rows iter.Seq2[Row, error],
) (parquetio.Info, error) {
	f := format()
	f.GroupBytes, f.Compression = opts.GroupBytes, opts.Compression
	return parquetio.Put(ctx, s, key, f, rows)
}

func format() parquetio.Format[Row] {
	return parquetio.Format[Row]{Name: formatName, Size: size, Generation: func(r *Row) int64 { return r.Generation },
		Unbounded: []string{ColText}}
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
	// Columns to read, by name; the fields of the others stay zero. None means all.
	Columns []string
}

// Read yields the rows of an object, in order, with bounded memory. The object is verified before the first
// row: sink.ErrDamaged if it is not what ref says. The sequence ends at the first error. Rows may be kept;
// neighbouring rows share memory.
func Read(ctx context.Context, s sink.Store, ref sink.Ref, opts ReadOptions) iter.Seq2[Row, error] {
	return parquetio.Get(ctx, s, ref, func(sink.Object) (string, []parquetio.Column[Row], error) {
		columns, err := parquetio.Select(columns(), opts.Columns)
		return formatName, columns, err
	})
}

// ReadFrom is Read for a file of size bytes.
func ReadFrom(r io.ReaderAt, size int64, opts ReadOptions) iter.Seq2[Row, error] {
	columns, err := parquetio.Select(columns(), opts.Columns)
	if err != nil {
		return failed(err)
	}
	return parquetio.Read(r, size, formatName, columns)
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
