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
	// over is set when the record is over the limit; value is then its
	// beginning.
	over *oversize
}

// oversize tells what of a record was not kept.
type oversize struct {
	size   int64
	sha256 string
}

// lineReader splits text into records of at most limit bytes. What is over the limit
// is read past, hashed and counted, but not kept.
type lineReader struct {
	r     *bufio.Reader
	limit int
	// quoted: a newline between double quotes does not end the record (CSV).
	quoted bool
	line   int64
	buf    []byte
}

func newLineReader(r io.Reader, limit int, quoted bool) *lineReader {
	br := bufio.NewReaderSize(r, 256<<10)
	if bom, _ := br.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, _ = br.Discard(3) // buffered
	}
	return &lineReader{r: br, limit: limit, quoted: quoted}
}

// next returns the next record that is not blank, valid until the next call,
// or io.EOF. Its line is the one it begins on.
func (l *lineReader) next() (record, error) {
	for {
		rec, err := l.read()
		if err != nil || rec.over != nil || len(bytes.TrimSpace(rec.value)) > 0 {
			return rec, err
		}
	}
}

func (l *lineReader) read() (record, error) {
	rec := record{line: l.line + 1}
	l.buf = l.buf[:0]
	var sum hash.Hash // of a record over the limit
	var size int64
	inside := false // of double quotes
	for {
		part, err := l.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return rec, err
		}
		if l.quoted && bytes.Count(part, []byte{'"'})%2 == 1 {
			inside = !inside
		}
		newline := err == nil
		if newline {
			l.line++
		}
		end := newline && !inside || errors.Is(err, io.EOF)
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
