package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"giantstream/sink"
	"giantstream/sink/parquetio"
	"giantstream/sink/vectordb"
)

// deletion is a row of a file of position deletes; the specification gives the numbers. PyIceberg asks for the paths as
// a dictionary, which Arrow cannot make of the encoding that they would have otherwise.
type deletion struct {
	Path string `parquet:"file_path,dict,id(2147483546)"`
	Pos  int64  `parquet:"pos,id(2147483545)"`
}

const deletionBytes = 8 + 16 // of raw data, where the paths are few

var deletionFormat = parquetio.Format[deletion]{Name: "iceberg-deletes/1",
	Size:       func(*deletion) int { return deletionBytes },
	Generation: func(*deletion) int64 { return 0 }}

// maxBound is the longest value that is written as a bound of a column.
const maxBound = 256

// putRows writes changes that are no deletions, in the order of their nodes, and returns where they are.
func (x *Index) putRows(ctx context.Context, name string, changes []*change) (iceberg.DataFile, map[string]Place,
	error) {
	path := x.path("data/" + name)
	number := x.number(path)
	places := make(map[string]Place, len(changes))
	for at, c := range changes {
		places[c.node] = Place{File: number, Row: uint32(at), Version: c.version}
	}
	info, err := x.kind.put(ctx, x.store, "data/"+name, slices.Values(changes))
	if err != nil {
		return nil, nil, err
	}
	first, last := changes[0].node, changes[len(changes)-1].node
	if len(first) > maxBound || len(last) > maxBound {
		first, last = "", ""
	}
	f, err := x.describe(iceberg.EntryContentData, name, info, fieldNodeID, first, last)
	return f, places, err
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
	return x.describe(iceberg.EntryContentPosDeletes, name, info, iceberg.PositionalDeleteSchema.Fields()[0].ID,
		all[0].Path, all[len(all)-1].Path)
}

// describe returns a file as an entry of a manifest, with the least and the greatest value of a column; "" for unknown.
func (x *Index) describe(content iceberg.ManifestEntryContent, name string, info parquetio.Info, field int,
	first, last string) (iceberg.DataFile, error) {
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, content, x.path("data/"+name),
		iceberg.ParquetFile, nil, nil, nil, info.Rows, info.Bytes)
	if err != nil {
		return nil, err
	}
	if first != "" {
		b.LowerBoundValues(map[int][]byte{field: []byte(first)})
		b.UpperBoundValues(map[int][]byte{field: []byte(last)})
	}
	return b.Build(), nil
}

// version is what Places need of a row.
type version struct {
	node    string
	version int64
}

// readVersions yields the node and the version of each row of a data file, whichever program wrote it.
func (x *Index) readVersions(ctx context.Context, path string) iter.Seq2[version, error] {
	return readFile(ctx, x, path, x.kind.format, []parquetio.Column[version]{
		parquetio.Scalar("node_id", parquetio.String(), func(r *version, v string) { r.node = v }),
		parquetio.Scalar(x.kind.version, parquetio.Int64(), func(r *version, v int64) { r.version = v })})
}

// readDeletions yields the rows of a file of position deletes.
func (x *Index) readDeletions(ctx context.Context, path string) iter.Seq2[deletion, error] {
	return readFile(ctx, x, path, deletionFormat.Name, []parquetio.Column[deletion]{
		parquetio.Scalar("file_path", parquetio.String(), func(d *deletion, v string) { d.Path = v }),
		parquetio.Scalar("pos", parquetio.Int64(), func(d *deletion, v int64) { d.Pos = v })})
}

func readFile[T any](ctx context.Context, x *Index, path, format string, columns []parquetio.Column[T]) iter.Seq2[T,
	error] {
	return readObject(ctx, x, path, func(o sink.Object) iter.Seq2[T, error] {
		return parquetio.Read(o, o.Size(), format, columns)
	})
}

// readObject yields what read does of a file.
func readObject[T any](ctx context.Context, x *Index, path string, read func(sink.Object) iter.Seq2[T, error],
) iter.Seq2[T, error] {
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
		for r, err := range read(o) {
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
