package parquetio

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// cursor walks the values of one column of one row group.
type cursor struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    []parquet.Value
	at     int // next in buf
	err    error
	expect int // values in the next batch, guessed from the last
	leaf
}

func newCursor(pages parquet.Pages, l leaf) *cursor {
	return &cursor{leaf: l, pages: pages, buf: make([]parquet.Value, 0, 512)}
}

// more reports whether buf[at] holds the next value. After false, short says why.
func (c *cursor) more() bool { return c.at < len(c.buf) || c.fill() }

// failed reports whether reading has ended in an error, not at the end.
func (c *cursor) failed() bool { return !errors.Is(c.err, io.EOF) }

// short is the error of a column that has no more values though its row group states more rows.
func (c *cursor) short() error {
	if c.failed() {
		return c.err
	}
	return fmt.Errorf("%w: fewer rows than the row group states", ErrCorrupt)
}

// fill reads more values into the empty buf. Values point into the page, so the page is released
// only after they have been used up.
func (c *cursor) fill() bool {
	for c.err == nil {
		if c.values == nil && !c.nextPage() {
			return false
		}
		n, err := c.values.ReadValues(c.buf[:cap(c.buf)])
		if err != nil {
			c.values = nil // io.EOF: of the page
			if !errors.Is(err, io.EOF) {
				c.err = corrupt(err)
			}
		}
		if n > 0 {
			c.buf, c.at = c.buf[:n], 0
			return true
		}
		if err == nil {
			c.err = io.ErrNoProgress
		}
	}
	return false
}

func (c *cursor) nextPage() bool {
	parquet.Release(c.page)
	c.page, c.err = c.pages.ReadPage()
	if c.err != nil {
		c.page = nil
		if !errors.Is(c.err, io.EOF) {
			c.err = corrupt(c.err)
		}
		return false
	}
	c.values = c.page.Values()
	return true
}

// seek continues at a row of the row group.
func (c *cursor) seek(row int64) error {
	parquet.Release(c.page)
	c.page, c.values, c.buf, c.at, c.err = nil, nil, c.buf[:0], 0, nil
	if err := c.pages.SeekToRow(row); err != nil {
		return corrupt(err)
	}
	return nil
}

func (c *cursor) close() error {
	parquet.Release(c.page)
	c.page, c.err = nil, io.EOF
	return c.pages.Close()
}
