package backfill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"giantstream/ingest/deadletter"
	"giantstream/sink"
	"giantstream/sink/parquetio"

	"github.com/parquet-go/parquet-go"
)

// parquetReader turns the rows of a Parquet file of any schema into JSON objects, a field per mapped
// column. It reads no other columns, and holds a page of each.
type parquetReader struct {
	file   *parquet.File
	at     io.ReaderAt // for page headers
	names  []string    // of the file's columns
	fields []parquetField
	leaves []parquetLeaf
	limit  int
	line   int64

	groups  []parquet.RowGroup // not begun
	columns []*parquetColumn   // of the open one, one for each leaf
	row     parquetRow
	json    []byte
}

// newParquetReader opens a file. Of its columns, those with the given names are read; without says that
// there may be none, and then no rows are.
func newParquetReader(f sink.Object, limit int, mapped []string, without bool, read func(int64)) (
	p *parquetReader, err error) {
	defer recovered(&err)
	file, err := parquetio.OpenFile(counted{f, read}, f.Size())
	if err != nil {
		return nil, err
	}
	p = &parquetReader{file: file, at: f, limit: limit, groups: file.RowGroups()}
	for _, column := range file.Root().Columns() {
		p.names = append(p.names, column.Name())
	}
	if p.fields, p.leaves, err = parquetFields(file, mapped); err != nil {
		return nil, err
	}
	if len(p.fields) == 0 && without {
		p.groups = nil
		return p, nil
	}
	if len(p.fields) == 0 {
		return nil, fmt.Errorf("none of the mapped fields (%s) is a column of the file; it has %s",
			strings.Join(mapped, ", "), strings.Join(p.names, ", "))
	}
	return p, nil
}

// describe implements recordReader.
func (p *parquetReader) describe() description { return description{fields: p.names} }

// Close ends the reading.
func (p *parquetReader) Close() (err error) {
	defer recovered(&err)
	var errs []error
	for _, c := range p.columns {
		errs = append(errs, c.pages.Close())
	}
	p.columns = nil
	return errors.Join(errs...)
}

func (p *parquetReader) next() (rec record, err error) {
	defer recovered(&err)
	for {
		over, err := p.read()
		if errors.Is(err, io.EOF) {
			if err := p.nextGroup(); err != nil {
				return record{}, err
			}
			continue
		}
		if err != nil {
			return record{}, err
		}
		p.line++
		if over > 0 {
			return record{line: p.line, over: &oversize{size: over}}, nil
		}
		if p.json, err = p.row.appendObject(p.json[:0], p.fields); err != nil {
			return record{}, err
		}
		rec = record{line: p.line, value: p.json}
		if len(rec.value) > p.limit {
			rec = cut(rec)
		}
		return rec, nil
	}
}

// nextGroup opens the next row group, or returns io.EOF.
func (p *parquetReader) nextGroup() error {
	if err := p.Close(); err != nil {
		return err
	}
	if len(p.groups) == 0 {
		return io.EOF
	}
	number := len(p.file.RowGroups()) - len(p.groups)
	chunks := p.groups[0].ColumnChunks()
	p.groups = p.groups[1:]
	for _, leaf := range p.leaves {
		meta := p.file.Metadata().RowGroups[number].Columns
		if leaf.index >= len(chunks) || leaf.index >= len(meta) {
			return fmt.Errorf("%w: row group %d has %d columns", parquetio.ErrCorrupt, number, len(chunks))
		}
		if err := parquetio.CheckPages(p.at, &meta[leaf.index].MetaData); err != nil {
			return fmt.Errorf("column %s: %w", leaf.path, err)
		}
		p.columns = append(p.columns, &parquetColumn{pages: chunks[leaf.index].Pages()})
	}
	return nil
}

// read reads the values of the next row. If they are over the limit, it keeps none, and over is about
// how many bytes they have. The error is io.EOF at the end of the row group.
func (p *parquetReader) read() (over int64, err error) {
	if len(p.columns) == 0 {
		return 0, io.EOF
	}
	p.row.reset()
	left := int64(p.limit)
	for i, c := range p.columns {
		err := c.row(&p.row.values, &left)
		if errors.Is(err, io.EOF) && i == 0 {
			return 0, p.ended()
		}
		if err != nil {
			return 0, fmt.Errorf("column %s: %w", p.leaves[i].path, corruptEOF(err))
		}
		p.row.endColumn()
	}
	if left < 0 {
		return int64(p.limit) - left, nil
	}
	return 0, nil
}

// ended checks that no column has more rows than the first.
func (p *parquetReader) ended() error {
	for _, c := range p.columns[1:] {
		if ok, err := c.more(); err != nil {
			return err
		} else if ok {
			return fmt.Errorf("%w: columns of different lengths", parquetio.ErrCorrupt)
		}
	}
	return io.EOF
}

func corruptEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: columns of different lengths", parquetio.ErrCorrupt)
	}
	return err
}

// parquetColumn reads the values of a leaf column of a row group. It leaves the pages that values
// point into to the garbage collector.
type parquetColumn struct {
	pages  parquet.Pages
	values parquet.ValueReader
	buf    [256]parquet.Value
	ready  []parquet.Value // in buf
}

// row appends the values of the next row. It takes their sizes from left, a value's own and a byte for
// its comma; when left is used up, it appends no more.
func (c *parquetColumn) row(row *[]parquet.Value, left *int64) error {
	for first := true; ; first = false {
		ok, err := c.more()
		if err != nil || !ok && first {
			return errors.Join(err, eof(first && err == nil))
		}
		if !ok || !first && c.ready[0].RepetitionLevel() == 0 {
			return nil
		}
		v := c.ready[0]
		c.ready = c.ready[1:]
		*left--
		if k := v.Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
			*left -= int64(len(v.ByteArray()))
		}
		if *left >= 0 {
			*row = append(*row, v)
		}
	}
}

func eof(ended bool) error {
	if ended {
		return io.EOF
	}
	return nil
}

// more reports whether there is another value.
func (c *parquetColumn) more() (bool, error) {
	for len(c.ready) == 0 {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if errors.Is(err, io.EOF) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			c.values = page.Values()
		}
		n, err := c.values.ReadValues(c.buf[:])
		c.ready = c.buf[:n]
		switch {
		case errors.Is(err, io.EOF):
			c.values = nil
		case err != nil:
			return false, err
		case n == 0:
			return false, io.ErrNoProgress
		}
	}
	return true, nil
}

// recovered turns a panic of the Parquet library, which trusts its input in places, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the Parquet file is damaged: %v", r)
	}
}

// cut keeps the beginning of a record that is over the limit.
func cut(rec record) record {
	sum := sha256.Sum256(rec.value)
	rec.over = &oversize{size: int64(len(rec.value)), sha256: hex.EncodeToString(sum[:])}
	rec.value = rec.value[:min(len(rec.value), deadletter.CutBytes)]
	return rec
}
