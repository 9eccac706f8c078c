package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/sink/vectordb"
)

// row is a row of a data file; the numbers are those of Schema.
type row struct {
	NodeID     string    `parquet:"node_id,id(1)"`
	Generation int64     `parquet:"generation,id(2)"`
	Space      int64     `parquet:"space,id(3)"`
	Status     string    `parquet:"status,dict,id(4)"`
	EventTime  int64     `parquet:"event_time,timestamp(microsecond),id(5)"`
	Shard      int32     `parquet:"shard,id(6)"`
	Seq        int64     `parquet:"seq,id(7)"`
	Partition  int32     `parquet:"kafka_partition,id(8)"`
	Offset     int64     `parquet:"kafka_offset,id(9)"`
	Embedding  []float32 `parquet:"embedding,list,optional,id(10)" parquet-element:",id(11)"`
}

// deletion is a row of a file of position deletes; the specification gives the numbers. PyIceberg asks for the paths as
// a dictionary, which Arrow cannot make of the encoding that they would have otherwise.
type deletion struct {
	Path string `parquet:"file_path,dict,id(2147483546)"`
	Pos  int64  `parquet:"pos,id(2147483545)"`
}

const deletionBytes = 8 + 16 // of raw data, where the paths are few

var dataFormat = parquetio.Format[row]{Name: "iceberg-embeddings/1",
	Size:       func(r *row) int { return 60 + len(r.NodeID) + 4*len(r.Embedding) },
	Generation: func(r *row) int64 { return r.Generation }}

var deletionFormat = parquetio.Format[deletion]{Name: "iceberg-deletes/1",
	Size:       func(*deletion) int { return deletionBytes },
	Generation: func(*deletion) int64 { return 0 }}

// maxBound is the longest value that is written as a bound of a column.
const maxBound = 256

// change is the newest of a node that is not committed yet.
type change struct {
	vectordb.Record
	partition int
}

func (c *change) bytes() int64 { return int64(len(c.NodeID) + 4*len(c.Vector) + 200) }

// putRows writes the upserts among changes, in the order of their nodes, and returns where they are.
func (x *Index) putRows(ctx context.Context, name string, changes []*change) (iceberg.DataFile, map[string]Place,
	error) {
	path := x.path("data/" + name)
	number := x.number(path)
	places, at := map[string]Place{}, uint32(0)
	var first, last string
	rows := func(yield func(row, error) bool) {
		for _, c := range changes {
			if c.Deleted {
				continue
			}
			if at == 0 {
				first = c.NodeID
			}
			last = c.NodeID
			places[c.NodeID] = Place{File: number, Row: at, Offset: c.Offset}
			at++
			r := row{NodeID: c.NodeID, Embedding: c.Vector, Generation: c.Generation,
				Space: cmp.Or(c.Space, c.Generation), Status: cmp.Or(string(c.Status), "text"), EventTime: c.EventTime,
				Shard: int32(min(c.Shard, math.MaxInt32)), Seq: c.Seq, Partition: int32(c.partition), Offset: c.Offset}
			if !yield(r, nil) {
				return
			}
		}
	}
	info, err := parquetio.Put(ctx, x.store, "data/"+name, dataFormat, rows)
	if err != nil {
		return nil, nil, err
	}
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, path,
		iceberg.ParquetFile, nil, nil, nil, info.Rows, info.Bytes)
	if err != nil {
		return nil, nil, err
	}
	if len(first) <= maxBound && len(last) <= maxBound {
		b.LowerBoundValues(map[int][]byte{fieldNodeID: []byte(first)})
		b.UpperBoundValues(map[int][]byte{fieldNodeID: []byte(last)})
	}
	return b.Build(), places, nil
}

// putDeletions writes the places of rows that are gone.
func (x *Index) putDeletions(ctx context.Context, name string, gone []Place) (iceberg.DataFile, error) {
	all := make([]deletion, len(gone))
	for i, p := range gone {
		all[i] = deletion{x.paths[p.File], int64(p.Row)}
	}
	slices.SortFunc(all, func(a, b deletion) int { // as the specification asks
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Pos, b.Pos))
	})
	info, err := parquetio.Put(ctx, x.store, "data/"+name, deletionFormat, func(yield func(deletion, error) bool) {
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentPosDeletes,
		x.path("data/"+name), iceberg.ParquetFile, nil, nil, nil, info.Rows, info.Bytes)
	if err != nil {
		return nil, err
	}
	fields := iceberg.PositionalDeleteSchema.Fields()
	b.LowerBoundValues(map[int][]byte{fields[0].ID: []byte(all[0].Path)})
	b.UpperBoundValues(map[int][]byte{fields[0].ID: []byte(all[len(all)-1].Path)})
	return b.Build(), nil
}

// readNodes yields the node and the offset of each row of a data file, whoever wrote it.
func (x *Index) readNodes(ctx context.Context, path string) iter.Seq2[row, error] {
	return readFile(ctx, x, path, dataFormat.Name, []parquetio.Column[row]{
		parquetio.Scalar("node_id", parquetio.String(), func(r *row, v string) { r.NodeID = v }),
		parquetio.Scalar("kafka_offset", parquetio.Int64(), func(r *row, v int64) { r.Offset = v })})
}

// readDeletions yields the rows of a file of position deletes.
func (x *Index) readDeletions(ctx context.Context, path string) iter.Seq2[deletion, error] {
	return readFile(ctx, x, path, deletionFormat.Name, []parquetio.Column[deletion]{
		parquetio.Scalar("file_path", parquetio.String(), func(d *deletion, v string) { d.Path = v }),
		parquetio.Scalar("pos", parquetio.Int64(), func(d *deletion, v int64) { d.Pos = v })})
}

func readFile[T any](ctx context.Context, x *Index, path, format string, columns []parquetio.Column[T]) iter.Seq2[T,
	error] {
	return func(yield func(T, error) bool) {
		var zero T
		key, err := x.key(path)
		var o sink.Object
		if err == nil {
			o, err = x.store.Open(ctx, key)
		}
		if err != nil {
			yield(zero, err)
			return
		}
		defer o.Close() //nolint:errcheck // read only
		for r, err := range parquetio.Read(o, o.Size(), format, columns, parquetio.Span{}) {
			if err != nil {
				err = fmt.Errorf("read %s: %w", path, err)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// path is the address of a file of the table.
func (x *Index) path(key string) string { return x.location + "/" + key }

// ErrElsewhere: a file of the table is outside of its location.
var errElsewhere = errors.New("is outside of the table's location; giantstream-iceberg reads what is below it")

// key is the key of a file in the store.
func (x *Index) key(path string) (string, error) {
	if key, ok := strings.CutPrefix(plain(path), plain(x.location)+"/"); ok {
		return key, nil
	}
	return "", fmt.Errorf("%w: %s %w (%s)", vectordb.ErrRefused, path, errElsewhere, x.location)
}

// plain returns an address in the one of its forms that others are compared in: engines write file:/a, file:///a and /a
// for one file, and s3a:// for s3://.
func plain(path string) string {
	scheme, rest, ok := strings.Cut(path, ":")
	switch {
	case !ok:
		return path
	case scheme == "file":
		return "/" + strings.TrimLeft(rest, "/")
	case scheme == "s3a" || scheme == "s3n":
		return "s3:" + rest
	}
	return path
}

// number returns the number of a data file.
func (x *Index) number(path string) uint32 {
	n, ok := x.numbers[plain(path)]
	if !ok {
		n = uint32(len(x.paths))
		x.paths = append(x.paths, path)
		x.numbers[plain(path)] = n
	}
	return n
}
