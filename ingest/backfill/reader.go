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

// recordReader gives the records of one input in order, then io.EOF. A record's value may be
// overwritten by the next call.
type recordReader interface {
	next() (record, error)
	// about says how the input is read, as far as it was not told to be: encoding and separators.
	describe() description
}

// about describes an input.
type description struct {
	// notes are for people: what is read in another way than they may expect.
	notes []string
	// fields are the names of a table's columns, nil for JSON.
	fields []string
}

// readAhead is how much is requested from a file or object store at a time.
const readAhead = 4 << 20

// maxWindow bounds the memory that a .zst file can ask for.
const maxWindow = 128 << 20

// open starts to read an input. It calls read with the number of bytes consumed since the last
// call.
func (in *Input) open(
	ctx context.Context, limit int, columns columns, read func(int64),
) (recordReader, io.Closer, error) {
	as, compression, err := in.format()
	if err != nil {
		return nil, nil, err
	}
	obj, err := in.Open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	columns.separator = in.Read.ListSeparator
	r, closer, err := reader(obj, as, compression, limit, columns, read)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", in.Name, err), obj.Close())
	}
	return r, closers{closer, obj}, nil
}

func reader(
	obj sink.Object, as format, compression string, limit int, columns columns, read func(int64),
) (recordReader, io.Closer, error) {
	if as == parquetRows {
		if compression != "" {
			return nil, nil, fmt.Errorf("a Parquet file cannot be read through %s; unpack it first", compression)
		}
		p, err := newParquetReader(obj, limit, columns.mapped, columns.any, read)
		if err != nil {
			return nil, nil, err
		}
		return p, p, nil
	}
	raw := bufio.NewReaderSize(io.NewSectionReader(counted{obj, read}, 0, obj.Size()),
		int(min(readAhead, obj.Size()+1)))
	text, closer, err := decompress(raw, compression)
	if err != nil {
		return nil, nil, err
	}
	text, encoding := utf8Text(text)
	if text, err = textOf(text, as); err != nil {
		return nil, nil, err
	}
	if as == csvRows {
		c, err := newCSVReader(text, limit, columns)
		if err == nil && encoding != "" {
			c.notes = append(c.notes, encoding)
		}
		return c, closer, err
	}
	lines := newLineReader(text, limit)
	if encoding != "" {
		lines.notes = []string{encoding}
	}
	if lines.isList() {
		return &listReader{lines: lines}, closer, nil
	}
	return lines, closer, nil
}

func decompress(r io.Reader, compression string) (io.Reader, io.Closer, error) {
	switch compression {
	case ".gz":
		z, err := gzip.NewReader(r)
		if errors.Is(err, gzip.ErrHeader) {
			return nil, nil, errors.New("it is not compressed by gzip, though its name ends in .gz")
		}
		if err != nil {
			return nil, nil, explainEOF(err)
		}
		return wholeReader{z}, z, nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return wholeReader{z}, z.IOReadCloser(), nil
	}
	return r, nil, nil
}

// errCutOff: a compressed file ends in the middle of its data.
var errCutOff = errors.New("the compressed data is cut off: the file is not whole, or still being written; " +
	"what it has before is sent; run again with the whole file")

// wholeReader says what a reader's io.ErrUnexpectedEOF means.
type wholeReader struct{ io.Reader }

func (r wholeReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	return n, explainEOF(err)
}

func explainEOF(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return err
}

// counted reports how much of an object is read.
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
