package parquetio

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// Bounds of a page, which the library decompresses and decodes whole. Other writers' pages have about
// 1 MiB; run-length encoding lets a page of a few bytes have any number of values.
const (
	maxPageBytes  = 64 << 20
	maxPageValues = 8 << 20
	// maxPageHeader bounds a page's header, which may hold its least and greatest value.
	maxPageHeader = 1 << 20
)

// pageHeader is what matters of Parquet's PageHeader.
type pageHeader struct{ compressed, uncompressed, values int64 }

// set takes a field of the structure.
func (h *pageHeader) set(path []int16, v int64) {
	switch {
	case len(path) == 1 && path[0] == 2:
		h.uncompressed = v
	case len(path) == 1 && path[0] == 3:
		h.compressed = v
	case len(path) == 2 && path[1] == 1 && (path[0] == 5 || path[0] == 7 || path[0] == 8):
		h.values = v // of a data page, dictionary, data page of version 2
	}
}

// CheckPages reads the headers of a column's pages, and returns an error if the library would need
// more memory for one than the bounds allow.
func CheckPages(r io.ReaderAt, column *format.ColumnMetaData) error {
	at := column.DataPageOffset
	if d := column.DictionaryPageOffset; d != 0 {
		at = d
	}
	for end := at + column.TotalCompressedSize; at < end; {
		h, size, err := readPageHeader(r, at, end)
		if err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		switch {
		case h.compressed < 0 || h.uncompressed < 0 || h.values < 0:
			return fmt.Errorf("%w: page at byte %d has a negative size", ErrCorrupt, at)
		case h.compressed > maxPageBytes || h.uncompressed > maxPageBytes || h.values > maxPageValues:
			return fmt.Errorf("page at byte %d has %d values in %d bytes, at most %d in %d are read: "+
				"write the file with smaller pages or row groups", at, h.values, max(h.compressed, h.uncompressed),
				maxPageValues, maxPageBytes)
		}
		at += size + h.compressed
	}
	return nil
}

func readPageHeader(r io.ReaderAt, at, end int64) (h pageHeader, size int64, err error) {
	for window := int64(256); ; window *= 8 {
		b := make([]byte, min(window, maxPageHeader, end-at))
		n, err := r.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return h, 0, err
		}
		w := thriftWalk{b: b[:n], integer: h.set}
		err = w.structure()
		if errors.Is(err, errShort) && n == len(b) && int64(n) == window {
			continue
		}
		if errors.Is(err, errShort) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return h, int64(w.at), err
	}
}
