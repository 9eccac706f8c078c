package parquetio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"

	"giantstream/internal/tempfile"
	"giantstream/sink"
)

// Info describes a stored file, for the manifest that names it.
type Info struct {
	Rows   int64
	Bytes  int64
	CRC32C uint32 // of the whole file, Castagnoli polynomial
}

// Ref names the file as an object under key.
func (i Info) Ref(key string) sink.Ref { return sink.Ref{Key: key, Bytes: i.Bytes, CRC32C: i.CRC32C} }

// writeBatch is how many rows are handed to the Parquet writer at a time.
const writeBatch = 256

// Put writes the rows to a temporary file, verifies it and stores it under key. An error of the
// sequence ends it, and nothing is stored then.
func Put[T any](
	ctx context.Context, s sink.Store, key string, format Format[T], rows iter.Seq2[T, error],
) (info Info, err error) {
	defer func() {
		if err != nil {
			info, err = Info{}, fmt.Errorf("write %s: %w", key, err)
		}
	}()
	f, err := tempfile.Create("giantstream-*.parquet")
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = write(ctx, f.File, format, rows); err != nil {
		return Info{}, err
	}
	if err := verify(f.File, info); err != nil {
		return Info{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Info{}, err
	}
	return info, s.Put(ctx, key, f.File, info.Bytes)
}

func write[T any](ctx context.Context, f *os.File, format Format[T], rows iter.Seq2[T, error]) (Info, error) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	buffered := bufio.NewWriterSize(f, 256<<10)
	w := NewWriter(io.MultiWriter(buffered, sum), format)
	batch := make([]T, 0, writeBatch)
	for row, err := range rows {
		if err != nil {
			return Info{}, err
		}
		if batch = append(batch, row); len(batch) < writeBatch {
			continue
		}
		if err := errors.Join(ctx.Err(), w.Write(batch)); err != nil {
			return Info{}, err
		}
		batch = batch[:0]
	}
	for _, step := range []func() error{
		ctx.Err,
		func() error { return w.Write(batch) },
		w.Close,
		buffered.Flush,
	} {
		if err := step(); err != nil {
			return Info{}, err
		}
	}
	size, err := f.Seek(0, io.SeekCurrent)
	return Info{Rows: w.Rows(), Bytes: size, CRC32C: sum.Sum32()}, err
}

// verify opens the finished file and compares its row counts with what was written: a writer that
// loses rows must not get past this point.
func verify(f *os.File, info Info) error {
	file, err := openFile(f, info.Bytes)
	if err != nil {
		return fmt.Errorf("verify the finished file: %w", err)
	}
	var groups int64
	for _, g := range file.RowGroups() {
		groups += g.NumRows()
	}
	if file.NumRows() != info.Rows || groups != info.Rows {
		return fmt.Errorf("verify the finished file: %d rows were written, "+
			"its footer says %d and its row groups hold %d",
			info.Rows, file.NumRows(), groups)
	}
	return nil
}
