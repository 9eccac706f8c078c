package backfill

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// csvReader turns CSV records (RFC 4180, with a header row) into JSON objects
// of strings, empty cells left out. A record that does not parse, or has another
// number of cells than the header, is passed on as it is, to be dead-lettered
// as bad JSON with its own bytes.
type csvReader struct {
	lines  *lineReader
	header []string
	// typed names the columns that are not strings in the mapping.
	typed typedColumns
}

// typedColumns are the columns that hold an event time, of which integers
// become JSON numbers, and the deletion mark, of which true and false become
// booleans.
type typedColumns struct{ eventTime, deleted string }

func newCSVReader(r io.Reader, limit int, typed typedColumns) (*csvReader, error) {
	c := &csvReader{lines: newLineReader(r, limit, true), typed: typed}
	first, err := c.lines.next()
	switch {
	case errors.Is(err, io.EOF):
		return c, nil // empty: no records either
	case err != nil:
		return nil, err
	case first.over != nil:
		return nil, errors.New("the header row is over the record limit")
	}
	c.header, err = cells(first.value)
	if err != nil {
		return nil, fmt.Errorf("header row: %w", err)
	}
	return c, nil
}

func (c *csvReader) next() (record, error) {
	rec, err := c.lines.next()
	if err != nil || rec.over != nil {
		return rec, err
	}
	row, err := cells(rec.value)
	if err == nil && len(row) == len(c.header) {
		rec.value = c.object(row)
	}
	return rec, nil
}

func cells(raw []byte) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(raw))
	r.FieldsPerRecord = -1
	row, err := r.Read()
	if err != nil {
		return nil, err
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one record")
	}
	return row, nil
}

func (c *csvReader) object(row []string) []byte {
	b := []byte{'{'}
	for i, cell := range row {
		if cell == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = appendString(b, c.header[i])
		b = append(b, ':')
		_, err := strconv.ParseInt(cell, 10, 64)
		switch {
		case c.header[i] == c.typed.eventTime && err == nil && json.Valid([]byte(cell)):
			b = append(b, cell...)
		case c.header[i] == c.typed.deleted && (cell == "true" || cell == "false"):
			b = append(b, cell...)
		default:
			b = appendString(b, cell)
		}
	}
	return append(b, '}')
}
