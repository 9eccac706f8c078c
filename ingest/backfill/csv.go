package backfill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"giantstream/ingest/jsonvalue"
)

// csvReader turns CSV rows (RFC 4180, with a header row) into JSON objects of strings, without
// empty cells. What is no row, see rowScanner, is given with the reason, one line at a time, and
// becomes a dead letter with its own bytes. Reading continues at the line after it.
//
// The header row says what separates the cells: a comma, a semicolon, a tab or a bar. Rows that are
// not UTF-8 are read as Windows-1252, unless the file has UTF-8 before them, see script.
type csvReader struct {
	lines   *lineReader
	rows    rowScanner
	header  []string
	columns columns
	script  script
	notes   []string
	cell    []byte // scratch
}

// separators of cells, the usual one first.
const separators = ",;\t|"

func newCSVReader(r io.Reader, limit int, columns columns) (*csvReader, error) {
	// The buffer holds a row of limit bytes and its end, \r\n.
	c := &csvReader{lines: newLineReaderSize(r, limit, limit+2), columns: columns}
	c.rows = rowScanner{r: c.lines.r, limit: limit, separator: separators[0]}
	c.lines.skipBlank()
	sample, err := c.lines.r.Peek(lineBuffer)
	c.script = scriptOf(sample, err != nil)
	size, err := c.findHeader(limit)
	switch {
	case errors.Is(err, io.EOF):
		return c, nil // empty: no records either
	case errors.Is(err, errNoRow):
		return nil, fmt.Errorf("header row: %w", err)
	case err != nil:
		return nil, err
	}
	c.rows.columns = len(c.header)
	for i, name := range c.header {
		if slices.Contains(c.columns.mapped, name) && slices.Contains(c.header[:i], name) {
			return nil, fmt.Errorf("header row: the column %q is there twice, and a field is read from it: rename "+
				"or remove one of the two", name)
		}
	}
	c.pass(size)
	if c.rows.separator != ',' {
		c.notes = append(c.notes, fmt.Sprintf("%q between cells", c.rows.separator))
	}
	return c, nil
}

// findHeader reads the header row with each separator, and keeps the one with which it has most of
// the mapped columns, or else most columns.
func (c *csvReader) findHeader(limit int) (size int, err error) {
	best := [2]int{-1, -1}
	for i := range len(separators) {
		rows := rowScanner{r: c.lines.r, limit: limit, separator: separators[i]}
		n, scanErr := rows.scan()
		if scanErr != nil {
			if err == nil {
				err = scanErr
			}
			continue
		}
		var names []string
		mapped := 0
		for k := range rows.cells() {
			name := strings.TrimSpace(string(c.utf8(rows.cell(k))))
			names = append(names, name)
			if slices.Contains(c.columns.mapped, name) {
				mapped++
			}
		}
		if score := [2]int{mapped, len(names)}; slices.Compare(score[:], best[:]) > 0 {
			best, size, c.header, c.rows = score, n, names, rows
		}
	}
	if c.header != nil {
		return size, nil
	}
	return 0, err
}

// describe implements recordReader.
func (c *csvReader) describe() description {
	notes := c.notes
	if c.script == windows1252 {
		notes = append(notes[:len(notes):len(notes)], "not UTF-8, read as Windows-1252")
	}
	return description{notes: notes, fields: c.header}
}

// utf8 returns a cell as UTF-8, valid until the next call.
func (c *csvReader) utf8(cell []byte) []byte {
	if c.script == ascii {
		c.script = scriptOf(cell, true)
	}
	if c.script != windows1252 {
		return cell
	}
	c.cell = appendWindows1252(c.cell[:0], cell)
	return c.cell
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
	for {
		c.lines.skipBlank()
		size, err := c.rows.scan()
		switch {
		case errors.Is(err, errNoRow):
			rec, err := c.lines.read() // also what is over the limit
			rec.bad = c.rows.why
			return rec, err
		case err != nil:
			return record{}, err
		}
		rec := record{line: c.lines.line + 1, value: c.object()}
		c.pass(size)
		if rec.value != nil { // spreadsheets end in rows of empty cells
			return rec, nil
		}
	}
}

// object makes JSON of the scanned row, nil if all of its cells are empty.
func (c *csvReader) object() []byte {
	b := c.lines.buf[:0]
	b = append(b, '{')
	filled := false
	for i, name := range c.header {
		cell := c.utf8(c.rows.cell(i))
		filled = filled || len(cell) > 0
		if len(cell) == 0 && (c.columns.separator == "" || !slices.Contains(c.columns.lists, name)) {
			continue // an empty list is one, and no missing field
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = jsonvalue.AppendString(b, name)
		b = append(b, ':')
		b = c.value(b, name, cell)
	}
	b = append(b, '}')
	c.lines.buf = b
	if !filled {
		return nil
	}
	return b
}

// value appends a cell as the mapping needs it.
func (c *csvReader) value(b []byte, name string, cell []byte) []byte {
	switch {
	case name == c.columns.eventTime && isNumber(cell):
		return append(b, cell...)
	case slices.Contains(c.columns.lists, name):
		return appendCellList(b, cell, c.columns.separator)
	case slices.Contains(c.columns.nested, name) && json.Valid(cell):
		return append(b, cell...)
	}
	return jsonvalue.AppendString(b, cell)
}

// appendCellList appends a cell with a list as a JSON list: a JSON list as it is, a list as Python
// prints it (pandas writes those), or what the separator makes of the cell, which may be one element.
func appendCellList(b, cell []byte, separator string) []byte {
	cell = bytes.TrimSpace(cell)
	if bytes.HasPrefix(cell, []byte{'['}) && bytes.HasSuffix(cell, []byte{']'}) {
		if json.Valid(cell) {
			return append(b, cell...)
		}
		if list, ok := appendPythonList(b, cell[1:len(cell)-1]); ok {
			return list
		}
	}
	elements := [][]byte{cell}
	if separator != "" {
		elements = bytes.Split(cell, []byte(separator))
	}
	b = append(b, '[')
	from := len(b)
	for _, e := range elements {
		if e = bytes.TrimSpace(e); len(e) == 0 {
			continue
		}
		if len(b) > from {
			b = append(b, ',')
		}
		b = jsonvalue.AppendString(b, e)
	}
	return append(b, ']')
}

// appendPythonList appends what is between the brackets of a Python list of strings and numbers, as
// ['a', "b's", 3], as a JSON list; ok is false if it is none.
func appendPythonList(b, list []byte) (out []byte, ok bool) {
	out = b
	out = append(out, '[')
	for i := 0; ; {
		for i < len(list) && list[i] == ' ' {
			i++
		}
		if i == len(list) {
			return append(out, ']'), true
		}
		if i > 0 {
			out = append(out, ',')
		}
		if quote := list[i]; quote == '\'' || quote == '"' {
			var text []byte
			for i++; i < len(list) && list[i] != quote; i++ {
				if list[i] == '\\' && i+1 < len(list) && strings.IndexByte(`\'"`, list[i+1]) >= 0 {
					i++
				}
				text = append(text, list[i])
			}
			if i == len(list) {
				return b, false
			}
			i++
			out = jsonvalue.AppendString(out, text)
		} else {
			end := i
			for end < len(list) && list[end] != ',' {
				end++
			}
			number := bytes.TrimSpace(list[i:end])
			if _, err := strconv.ParseFloat(string(number), 64); err != nil || !json.Valid(number) {
				return b, false
			}
			out = append(out, number...)
			i = end
		}
		for i < len(list) && list[i] == ' ' {
			i++
		}
		if i < len(list) {
			if list[i] != ',' {
				return b, false
			}
			i++
		}
	}
}

func isNumber(cell []byte) bool {
	return json.Valid(cell) && (cell[0] == '-' || '0' <= cell[0] && cell[0] <= '9')
}
