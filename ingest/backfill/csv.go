package backfill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// csvReader turns CSV rows (RFC 4180, with a header row) into JSON objects of strings, without
// empty cells. What is no row, see rowScanner, passes unchanged, one line at a time, and becomes a
// dead letter (bad JSON) with its own bytes. Reading continues at the line after it.
type csvReader struct {
	lines  *lineReader
	rows   rowScanner
	header []string
	// typed names the columns that are not strings in the mapping.
	typed typedColumns
}

// typedColumns names the column of the event time, in which integers become JSON numbers, and the
// column of the deletion mark, in which true and false become booleans.
type typedColumns struct{ eventTime, deleted string }

func newCSVReader(r io.Reader, limit int, typed typedColumns) (*csvReader, error) {
	// The buffer holds a row of limit bytes and its end, \r\n.
	c := &csvReader{lines: newLineReaderSize(r, limit, limit+2), typed: typed}
	c.rows = rowScanner{r: c.lines.r, limit: limit}
	c.lines.skipBlank()
	size, err := c.rows.scan()
	switch {
	case errors.Is(err, io.EOF):
		return c, nil // empty: no records either
	case errors.Is(err, errNoRow):
		return nil, fmt.Errorf("header row: %w", err)
	case err != nil:
		return nil, err
	}
	for i := range c.rows.cells() {
		c.header = append(c.header, string(c.rows.cell(i)))
	}
	c.rows.columns = len(c.header)
	c.pass(size)
	return c, nil
}

// pass consumes a row of size bytes.
func (c *csvReader) pass(size int) {
	row, _ := c.lines.r.Peek(size)
	for _, b := range row {
		if b == '\n' {
			c.lines.line++
		}
	}
	_, _ = c.lines.r.Discard(size) // buffered
}

func (c *csvReader) next() (record, error) {
	c.lines.skipBlank()
	size, err := c.rows.scan()
	switch {
	case errors.Is(err, errNoRow):
		return c.lines.read() // also what is over the limit
	case err != nil:
		return record{}, err
	}
	rec := record{line: c.lines.line + 1, value: c.object()}
	c.pass(size)
	return rec, nil
}

// object makes JSON of the scanned row.
func (c *csvReader) object() []byte {
	b := c.lines.buf[:0]
	b = append(b, '{')
	for i, name := range c.header {
		cell := c.rows.cell(i)
		if len(cell) == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		switch {
		case name == c.typed.eventTime && isInteger(cell):
			b = append(b, cell...)
		case name == c.typed.deleted && (string(cell) == "true" || string(cell) == "false"):
			b = append(b, cell...)
		default:
			b = appendString(b, string(cell))
		}
	}
	b = append(b, '}')
	c.lines.buf = b
	return b
}

func isInteger(cell []byte) bool {
	_, err := strconv.ParseInt(string(cell), 10, 64)
	return err == nil && json.Valid(cell)
}
