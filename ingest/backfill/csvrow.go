package backfill

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// errNoRow: what is at the reader's position is not a CSV row.
var errNoRow = errors.New("not a CSV row within the record limit: a quoted cell has no end")

// rowScanner finds the end and the cells of the CSV row at a reader's position, and consumes
// nothing. A quote opens a quoted cell only as the cell's first character; in any other cell it is
// a character like others (5" pipe). As in Python's csv, what follows the closing quote of a cell
// belongs to the cell ("5" pipe is 5 pipe), but only in a row of one line. These are no rows, so that
// one bad line costs itself alone and not what follows it:
//
//   - a quoted cell without an end, or over several lines with text after its closing quote;
//   - more than limit bytes;
//   - another number of cells than the header has;
//   - a row over several lines that look like rows of their own, see engulfs.
//
// A cell without an end is looked for up to limit bytes ahead. All the same the time is linear in
// the file: the lines that could open such a cell are the lines that end the search of an earlier
// one.
type rowScanner struct {
	r     *bufio.Reader // its buffer holds limit+2 bytes
	limit int
	// columns of the header; 0 while the header is read.
	columns   int
	separator byte

	// literal: a cell of the row has text after its closing quote.
	literal bool
	// why the last row was none.
	why string

	text []byte // the cells, without their quotes
	ends []int  // of the cells in text
	// keys says for each charset whether a first cell was made of it.
	keys [allKinds + 1]bool
}

func (s *rowScanner) cells() int { return len(s.ends) }

func (s *rowScanner) cell(i int) []byte {
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.text[from:s.ends[i]]
}

// scan returns the size of the row with its newline. The error is io.EOF at the end, errNoRow, or
// the reader's own.
func (s *rowScanner) scan() (size int, err error) {
	s.text, s.ends, s.literal = s.text[:0], s.ends[:0], false
	w := window{r: s.r, limit: s.limit + 2}
	if !w.has(0) {
		return 0, w.end()
	}
	size, ok := s.row(&w)
	switch {
	case w.err != nil && !errors.Is(w.err, io.EOF):
		return 0, w.err
	case !ok:
		s.why = "a cell has an opening quote and no closing one within the record limit"
		return 0, errNoRow
	case len(trimNewline(w.b[:size])) > s.limit:
		s.why = "the row is over the record limit"
		return 0, errNoRow
	case s.columns > 0 && len(s.ends) != s.columns:
		s.why = fmt.Sprintf("the row and the header do not have the same number of cells: %d and %d", len(s.ends),
			s.columns)
		return 0, errNoRow
	case s.columns > 0 && s.engulfs(w.b[:size]):
		s.why = "a cell has an opening quote, and its closing one seems to be that of another row"
		return 0, errNoRow
	case s.literal && bytes.IndexByte(trimNewline(w.b[:size]), '\n') >= 0:
		s.why = "a cell has text after its closing quote, in a row of several lines"
		return 0, errNoRow
	}
	s.keys[charsetOf(s.cell(0))] = true
	return size, nil
}

// row scans cells up to the end of the row; ok is false if a quoted cell is at fault, or the limit.
func (s *rowScanner) row(w *window) (size int, ok bool) {
	for at := 0; ; {
		var end cellEnd
		if w.has(at) && w.b[at] == '"' {
			at, end = s.quoted(w, at+1)
		} else {
			at, end = s.plain(w, at)
		}
		s.ends = append(s.ends, len(s.text))
		switch end {
		case endOfRow:
			return at, true
		case noEnd:
			return at, false
		}
	}
}

// cellEnd is what ends a cell.
type cellEnd int

const (
	endOfCell cellEnd = iota // a separator
	endOfRow
	noEnd
)

// plain scans a cell without quotes around it; next is where the next one begins.
func (s *rowScanner) plain(w *window, at int) (next int, end cellEnd) {
	from := at
	for ; w.has(at); at++ {
		switch w.b[at] {
		case s.separator:
			s.text = append(s.text, w.b[from:at]...)
			return at + 1, endOfCell
		case '\n':
			s.text = append(s.text, trimNewline(w.b[from:at+1])...)
			return at + 1, endOfRow
		}
	}
	if w.err == nil {
		return at, noEnd // the limit
	}
	s.text = append(s.text, trimNewline(w.b[from:at])...)
	return at, endOfRow
}

// quoted scans the rest of a cell after its opening quote. \r\n in it is a newline, as in
// encoding/csv.
func (s *rowScanner) quoted(w *window, at int) (next int, end cellEnd) {
	from := at
	for ; w.has(at); at++ {
		switch c := w.b[at]; {
		case c == '\r' && w.has(at+1) && w.b[at+1] == '\n':
		case c != '"':
			s.text = append(s.text, c)
		case !w.has(at + 1): // the end of the file, or the limit
			return at + 1, endOfRow
		default:
			switch w.b[at+1] {
			case '"':
				s.text = append(s.text, '"')
				at++
			case s.separator:
				return at + 2, endOfCell
			case '\n':
				return at + 2, endOfRow
			case '\r':
				if !w.has(at + 2) {
					return at + 2, endOfRow
				}
				if w.b[at+2] == '\n' {
					return at + 3, endOfRow
				}
				return at, noEnd
			default:
				if bytes.IndexByte(w.b[from:at], '\n') >= 0 {
					return at, noEnd
				}
				s.literal = true
				return s.plain(w, at+1)
			}
		}
	}
	return at, noEnd
}

// engulfs reports whether a row over several lines looks like a stray opening quote that swallowed
// the rows after it up to the next stray quote: the line of the closing quote, or half of all
// further lines, look like rows of their own. Such a line has as many cells as the header, and a
// first cell made of the same kinds of characters as that of this row or an earlier one. A first cell
// that is a plain word proves nothing.
func (s *rowScanner) engulfs(row []byte) bool {
	lines := bytes.Split(trimNewline(row), []byte{'\n'})[1:]
	if len(lines) == 0 || s.columns == 1 {
		return false
	}
	own, alike := charsetOf(s.cell(0)), 0
	for i, line := range lines {
		first, _, _ := bytes.Cut(line, []byte{s.separator})
		key := charsetOf(first)
		if bytes.Count(line, []byte{s.separator})+1 == s.columns && key.telling() && (key == own || s.keys[key]) {
			if alike++; i == len(lines)-1 {
				return true
			}
		}
	}
	return 2*alike >= len(lines)
}

// charset is a set of kinds of characters.
type charset uint8

const (
	letters charset = 1 << iota
	digits
	spaces
	others
	allKinds = letters | digits | spaces | others
)

func charsetOf(b []byte) charset {
	var set charset
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		switch {
		case unicode.IsLetter(r):
			set |= letters
		case unicode.IsDigit(r):
			set |= digits
		case unicode.IsSpace(r):
			set |= spaces
		default:
			set |= others
		}
	}
	return set
}

// telling: prose seldom begins a line with it.
func (c charset) telling() bool { return c&spaces == 0 && c&(digits|others) != 0 }

// window is what lies ahead of a reader's position, as far as it was needed.
type window struct {
	r     *bufio.Reader
	limit int // at most the reader's buffer
	b     []byte
	// err is why there is no more: io.EOF or the reader's; nil if it is the limit.
	err error
}

// has reports whether there is an i-th byte, and makes it available.
func (w *window) has(i int) bool { return i < len(w.b) || w.grow(i) }

func (w *window) grow(i int) bool {
	if i >= w.limit || w.err != nil {
		return false
	}
	b, err := w.r.Peek(i + 1)
	if err != nil {
		w.b, w.err = b, err
		return i < len(b)
	}
	w.b, _ = w.r.Peek(min(max(w.r.Buffered(), i+1), w.limit))
	return true
}

// end is the error where there is nothing at all.
func (w *window) end() error {
	if w.err == nil {
		return io.EOF
	}
	return w.err
}
