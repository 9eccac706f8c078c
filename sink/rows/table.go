package rows

import (
	"context"
	"io"
	"iter"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// Table describes one kind of rows that a window commits: their key, and their files. In each table the row of a
// key under the highest manifest wins. What cuts, merges and follows the commit log takes a Table, and knows no more
// of its rows than the Table says.
type Table[R any] struct {
	// Name is the table's in manifests: "" for the nodes, whose objects name none.
	Name string
	// Key is what a row is about. A window has a key at most once.
	Key func(*R) string
	// EventTime of a row, in microseconds since the Unix epoch.
	EventTime func(*R) int64
	// KeyColumns are the columns that Key and EventTime need.
	KeyColumns []string
	// MemoryBytes estimates a row's size in memory.
	MemoryBytes func(*R) int64

	format  parquetio.Format[R] // earlier versions of it are read, too
	columns []parquetio.Column[R]
}

// WriteOptions choose how a file is laid out; the rows in it are the same.
type WriteOptions struct {
	// GroupBytes is the raw size at which a row group is closed; 0 is 16 MiB.
	GroupBytes  int
	Compression parquetio.Compression
}

// ReadOptions choose what is read.
type ReadOptions struct {
	// Columns to read, by name; the fields of the others stay zero. None means all.
	Columns []string
}

// NewWriter starts a file on w; Close finishes it.
func (t *Table[R]) NewWriter(w io.Writer) *parquetio.Writer[R] {
	return parquetio.NewWriter(w, t.format)
}

// Write stores the rows under key, after it has verified the row count of the finished file. An
// error of the sequence ends it, and nothing is stored then.
func (t *Table[R]) Write(
	ctx context.Context, s sink.Store, key string, opts WriteOptions, rows iter.Seq2[R, error],
) (parquetio.Info, error) {
	f := t.format
	f.GroupBytes, f.Compression = opts.GroupBytes, opts.Compression
	return parquetio.Put(ctx, s, key, f, rows)
}

// Read yields the rows of an object, in order, with bounded memory. The object is verified before the first
// row: sink.ErrDamaged if it is not what ref says. The sequence ends at the first error. Rows may be kept;
// neighbouring rows share memory.
func (t *Table[R]) Read(ctx context.Context, s sink.Store, ref sink.Ref, opts ReadOptions) iter.Seq2[R, error] {
	return parquetio.Get(ctx, s, ref, func(sink.Object) (string, []parquetio.Column[R], error) {
		columns, err := parquetio.Select(t.columns, opts.Columns)
		return t.format.Name, columns, err
	})
}

// ReadFrom is Read for a file of size bytes.
func (t *Table[R]) ReadFrom(r io.ReaderAt, size int64, opts ReadOptions) iter.Seq2[R, error] {
	columns, err := parquetio.Select(t.columns, opts.Columns)
	if err != nil {
		return func(yield func(R, error) bool) {
			var none R
			yield(none, err)
		}
	}
	return parquetio.Read(r, size, t.format.Name, columns)
}
