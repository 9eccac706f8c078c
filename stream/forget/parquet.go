package forget

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"

	"giantstream/sink"
	"giantstream/sink/parquetio"
)

// parquet searches all values of all columns of bytes, dictionaries included, and then what lies behind the pages:
// the footer, and the indexes with the least and the greatest value of each page.
func (s *Scanner) parquet(o sink.Object) error {
	f, err := parquetio.OpenFile(o, o.Size())
	if err != nil {
		return err
	}
	end := int64(0)
	for _, group := range f.Metadata().RowGroups {
		for i := range group.Columns {
			m := &group.Columns[i].MetaData
			if err := parquetio.CheckPages(o, m); err != nil {
				return err
			}
			start := m.DataPageOffset
			if m.DictionaryPageOffset > 0 {
				start = min(start, m.DictionaryPageOffset)
			}
			end = max(end, start+m.TotalCompressedSize)
		}
	}
	for _, group := range f.RowGroups() {
		for _, chunk := range group.ColumnChunks() {
			if kind := chunk.Type().Kind(); kind != parquet.ByteArray && kind != parquet.FixedLenByteArray {
				continue
			}
			name := strings.Join(f.Schema().Columns()[chunk.Column()], ".")
			if err := s.column(chunk, name); err != nil {
				return fmt.Errorf("column %s: %w", name, err)
			}
		}
	}
	return s.bytesOf(io.NewSectionReader(o, end, o.Size()-end), apart, "the footer and the indexes")
}

// column searches the values of a column.
func (s *Scanner) column(chunk parquet.ColumnChunk, name string) (err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics at pages that are damaged
			err = errors.Join(err, fmt.Errorf("%w: %v", parquetio.ErrCorrupt, r))
		}
	}()
	pages := chunk.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	where := "column " + name
	values := make([]parquet.Value, 1024)
	var dictionary parquet.Dictionary
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if d := page.Dictionary(); d != nil {
			// Rows need not refer to all of it.
			for i := 0; d != dictionary && i < d.Len(); i++ {
				s.found(d.Index(int32(i)).ByteArray(), whole, where)
			}
			dictionary = d
			parquet.Release(page)
			continue
		}
		err = s.values(page, values, where)
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

func (s *Scanner) values(page parquet.Page, values []parquet.Value, where string) error {
	for r := page.Values(); ; {
		n, err := r.ReadValues(values)
		for _, v := range values[:n] {
			if !v.IsNull() {
				s.found(v.ByteArray(), whole, where)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
