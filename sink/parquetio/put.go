package parquetio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"giantstream/sink"
)

// Info describes a stored file, for the manifest that names it.
type Info struct {
	Rows  int64
	Bytes int64
	sink.Checksum
}

// Ref names the file as an object under key.
func (i Info) Ref(key string) sink.Ref {
	return sink.Ref{Key: key, Bytes: i.Bytes, Checksum: i.Checksum}
}

// writeBatch is how many rows are handed to the Parquet writer at a time.
const writeBatch = 256

// Put writes the rows as a file in memory, or on the disk if it is large, verifies it and stores it
// under key. An error of the sequence ends it, and nothing is stored then.
func Put[T any](
	ctx context.Context, s sink.Store, key string, format Format[T], rows iter.Seq2[T, error],
) (info Info, err error) {
	defer func() {
		if err != nil {
			info, err = Info{}, fmt.Errorf("write %s: %w", key, err)
		}
	}()
	d := newDraft()
	defer func() { err = errors.Join(err, d.Close()) }()
	if info, err = write(ctx, d, format, rows); err != nil {
		return Info{}, err
	}
	file, err := d.finish()
	if err != nil {
		return Info{}, err
	}
	if err := verify(file, info); err != nil {
		return Info{}, err
	}
	stored := sink.Summed{SectionReader: io.NewSectionReader(file, 0, info.Bytes), SHA256: info.SHA256}
	if err := s.Put(ctx, key, stored, info.Bytes); err != nil {
		return Info{}, err
	}
	d.recycle()
	return info, nil
}

func write[T any](ctx context.Context, d *draft, format Format[T], rows iter.Seq2[T, error]) (Info, error) {
	sum := sink.NewHash()
	w := NewWriter(io.MultiWriter(d, sum), format)
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
	} {
		if err := step(); err != nil {
			return Info{}, err
		}
	}
	return Info{Rows: w.Rows(), Bytes: d.size, Checksum: sink.ChecksumFrom(sum)}, nil
}

// verify opens the finished file and compares its row counts with what was written: a writer that
// loses rows must not get past this point.
func verify(f io.ReaderAt, info Info) error {
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
