package iceberg

import (
	"context"
	"iter"

	"github.com/apache/iceberg-go"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// kind is what a table holds: embeddings or rows.
type kind struct {
	schema  func() *iceberg.Schema
	added   int    // how many columns, the last ones, a new table gets after it was made
	comment string // of a new table
	source  string // what the table is kept equal to, for people
	version string // the column with the version of a row
	format  string // of the data files
	// summary is what a snapshot says of the state, besides the state itself.
	summary func(state) iceberg.Properties
	// put writes a data file.
	put func(ctx context.Context, s sink.Store, key string, changes iter.Seq[*change]) (parquetio.Info, error)
}

// change is the newest of a node that is not committed yet.
type change struct {
	node    string
	version int64 // of a node, a higher one replaces a lower one
	deleted bool
	bytes   int64 // in memory
	row     any   // a pointer to a row of the kind; nil if the node is deleted, or for attributes alone
	// attributes are in the order of Index.Attributes; nil for those of the row that is there.
	attributes []any
}

// putter returns kind.put for rows of a type.
func putter[T any](format parquetio.Format[T]) func(context.Context, sink.Store, string, iter.Seq[*change]) (
	parquetio.Info, error) {
	return func(ctx context.Context, s sink.Store, key string, changes iter.Seq[*change]) (parquetio.Info, error) {
		return parquetio.Put(ctx, s, key, format, func(yield func(T, error) bool) {
			for c := range changes {
				if !yield(*c.row.(*T), nil) {
					return
				}
			}
		})
	}
}
