package backfill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"giantstream/ingest/deadletter"
)

// isList reports whether the text begins with [ and an object, so that it is one JSON list of records.
func (l *lineReader) isList() bool {
	l.skipBlank()
	opened := false
	for n := 1; n <= l.r.Size(); n++ {
		b, err := l.r.Peek(n)
		if err != nil {
			return false
		}
		switch c := b[n-1]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case opened || c != '[':
			return opened && c == '{'
		default:
			opened = true
		}
	}
	return false
}

// listReader gives the elements of one JSON list, as exports write them: [{…}, {…}]. It finds where an
// element ends, and checks nothing else of it. The line of a record is its number in the list. What
// follows the list is given line by line.
type listReader struct {
	lines         *lineReader
	count         int64
	opened, ended bool
}

// describe implements recordReader.
func (l *listReader) describe() description {
	return description{notes: append(l.lines.notes, "one JSON list: numbers in dead letters count its elements")}
}

func (l *listReader) next() (record, error) {
	for !l.ended {
		c, err := l.lines.r.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return record{}, errListEnd
		case err != nil:
			return record{}, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',':
		case c == '[' && !l.opened:
			l.opened = true
		case c == ']':
			l.ended = true
		default:
			return l.element(c)
		}
	}
	rec, err := l.lines.next()
	l.count++
	rec.line = l.count
	return rec, err
}

// errListEnd: a JSON list has no end.
var errListEnd = errors.New("the JSON list has no closing bracket: the file is not whole, or still being written; " +
	"what it has before is sent; run again with the whole file")

// element reads one element whose first byte is c, up to the comma or bracket after it.
func (l *listReader) element(c byte) (record, error) {
	l.count++
	rec := record{line: l.count}
	buf := l.lines.buf[:0]
	var sum hash.Hash // of an element over the limit
	var size int64
	depth, inString, escaped := 0, false, false
	for {
		size++
		if sum != nil {
			sum.Write([]byte{c})
		} else if buf = append(buf, c); len(buf) > l.lines.limit {
			sum = sha256.New()
			sum.Write(buf)
		}
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		next, err := l.lines.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return rec, errListEnd
		}
		if err != nil {
			return rec, err
		}
		if !inString && depth <= 0 && (next == ',' || next == ']') {
			l.ended = next == ']'
			break
		}
		c = next
	}
	l.lines.buf = buf
	rec.value = bytes.TrimSpace(buf)
	if sum != nil {
		rec.value = buf[:min(len(buf), deadletter.CutBytes)]
		rec.over = &oversize{size: size, sha256: hex.EncodeToString(sum.Sum(nil))}
		return rec, nil
	}
	if bytes.ContainsAny(rec.value, "\r\n") && json.Valid(rec.value) {
		var line bytes.Buffer
		if err := json.Compact(&line, rec.value); err != nil {
			return rec, fmt.Errorf("element %d: %w", rec.line, err)
		}
		rec.value = line.Bytes()
	}
	return rec, nil
}
