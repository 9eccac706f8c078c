package backfill

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"giantstream/ingest/deadletter"
)

// record is one record of an input, in the input's order.
type record struct {
	// line number from 1; for Parquet the row.
	line  int64
	value []byte
	// over is set if the record is over the limit; value is then its beginning.
	over *oversize
	// bad says why the line is no CSV row, "" if it is one. value is then the line.
	bad string
}

// oversize describes a record that was not kept whole.
type oversize struct {
	size   int64
	sha256 string
}

// lineReader splits text into lines of at most limit bytes. It hashes and counts the bytes over the
// limit, but does not keep them.
type lineReader struct {
	r     *bufio.Reader
	limit int
	line  int64
	buf   []byte
	notes []string
}

// describe implements recordReader.
func (l *lineReader) describe() description { return description{notes: l.notes} }

// lineBuffer is the least that a lineReader reads at a time.
const lineBuffer = 256 << 10

func newLineReader(r io.Reader, limit int) *lineReader {
	return newLineReaderSize(r, limit, lineBuffer)
}

// newLineReaderSize returns a lineReader whose buffer holds at least size bytes.
func newLineReaderSize(r io.Reader, limit, size int) *lineReader {
	br := bufio.NewReaderSize(r, max(size, lineBuffer))
	if bom, _ := br.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, _ = br.Discard(3) // buffered
	}
	return &lineReader{r: br, limit: limit}
}

// next returns the next line that is not blank, valid until the next call, or io.EOF.
func (l *lineReader) next() (record, error) {
	for {
		l.skipBlank()
		rec, err := l.read()
		if err != nil || rec.over != nil || len(bytes.TrimSpace(rec.value)) > 0 {
			return rec, err
		}
	}
}

// skipBlank passes blank lines a buffer at a time: a compressed file can hold billions of them.
func (l *lineReader) skipBlank() {
	for {
		if _, err := l.r.Peek(1); err != nil {
			return // read finds it again
		}
		ahead, _ := l.r.Peek(l.r.Buffered())
		blank, newlines := 0, 0 // whole lines only
		for i, c := range ahead {
			if c == '\n' {
				blank, newlines = i+1, newlines+1
			} else if c != '\r' && c != ' ' && c != '\t' {
				break
			}
		}
		if blank == 0 {
			return
		}
		_, _ = l.r.Discard(blank) // buffered
		l.line += int64(newlines)
	}
}

// read returns the next line, blank or not.
func (l *lineReader) read() (record, error) {
	rec := record{line: l.line + 1}
	l.buf = l.buf[:0]
	var sum hash.Hash // of a line over the limit
	var size int64
	for {
		part, err := l.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return rec, err
		}
		if err == nil {
			l.line++
		}
		end := !errors.Is(err, bufio.ErrBufferFull)
		if end {
			part = trimNewline(part)
		}
		size += int64(len(part))
		if sum == nil && len(l.buf)+len(part) > l.limit {
			sum = sha256.New()
			sum.Write(l.buf)
			l.buf = append(l.buf, part[:min(len(part), max(deadletter.CutBytes-len(l.buf), 0))]...)
			l.buf = l.buf[:min(len(l.buf), deadletter.CutBytes)]
		} else if sum == nil {
			l.buf = append(l.buf, part...)
		}
		if sum != nil {
			sum.Write(part)
		}
		if !end {
			continue
		}
		if errors.Is(err, io.EOF) && size == 0 {
			return rec, io.EOF
		}
		rec.value = l.buf
		if sum != nil {
			rec.over = &oversize{size: size, sha256: hex.EncodeToString(sum.Sum(nil))}
		}
		return rec, nil
	}
}

func trimNewline(b []byte) []byte {
	b = bytes.TrimSuffix(b, []byte{'\n'})
	return bytes.TrimSuffix(b, []byte{'\r'})
}
