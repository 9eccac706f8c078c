package backfill

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"giantstream/sink"

	"github.com/klauspost/compress/zstd"
)

// recordReader gives the records of one input in order, then io.EOF. A
// record's value may be overwritten by the next call.
type recordReader interface {
	next() (record, error)
}

// readAhead is how much is asked of a file or object store at a time.
const readAhead = 4 << 20

// maxWindow bounds the memory that a .zst file can ask for.
const maxWindow = 128 << 20

// open starts to read an input. read is told how many bytes of the input have
// been consumed since the last call.
func (in *Input) open(ctx context.Context, limit int, typed typedColumns, read func(int64)) (recordReader, io.Closer, error) {
	format, compression, err := in.format()
	if err != nil {
		return nil, nil, err
	}
	obj, err := in.Open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	r, closer, err := reader(obj, format, compression, limit, typed, read)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", in.Name, err), obj.Close())
	}
	return r, closers{closer, obj}, nil
}

func reader(obj sink.Object, format Format, compression string, limit int, typed typedColumns, read func(int64)) (recordReader, io.Closer, error) {
	if format == Parquet {
		if compression != "" {
			return nil, nil, fmt.Errorf("a Parquet file cannot be read through %s; unpack it first", compression)
		}
		p, err := newParquetReader(counted{obj, read}, limit)
		if err != nil {
			return nil, nil, err
		}
		return p, p.rows, nil
	}
	raw := bufio.NewReaderSize(io.NewSectionReader(counted{obj, read}, 0, obj.Size()), int(min(readAhead, obj.Size()+1)))
	text, closer, err := decompress(raw, compression)
	if err != nil {
		return nil, nil, err
	}
	if format == CSV {
		c, err := newCSVReader(text, limit, typed)
		return c, closer, err
	}
	return newLineReader(text, limit, false), closer, nil
}

func decompress(r io.Reader, compression string) (io.Reader, io.Closer, error) {
	switch compression {
	case ".gz":
		z, err := gzip.NewReader(r)
		return z, z, err
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.IOReadCloser(), nil
	}
	return r, nil, nil
}

// counted tells how much of an object is read.
type counted struct {
	sink.Object
	read func(int64)
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Object.ReadAt(p, off)
	c.read(int64(n))
	return n, err
}

type closers []io.Closer

func (cs closers) Close() error {
	var errs []error
	for _, c := range cs {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
