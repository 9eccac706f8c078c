package backfill

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf8Text returns the text as UTF-8. A byte order mark says that it is UTF-16, which is the
// encoding that is returned, "" for none. Other text is returned as it is.
func utf8Text(r io.Reader) (text io.Reader, encoding string) {
	b := bufio.NewReaderSize(r, lineBuffer)
	switch mark, _ := b.Peek(2); string(mark) {
	case "\xff\xfe":
		_, _ = b.Discard(2) // buffered
		return &utf16Reader{r: b}, "UTF-16"
	case "\xfe\xff":
		_, _ = b.Discard(2)
		return &utf16Reader{r: b, bigEndian: true}, "UTF-16"
	}
	return b, ""
}

// foreign are beginnings of files that are no text, each with what to do with such a file.
var foreign = []struct{ begin, what string }{
	{"PK\x03\x04", "a ZIP archive or an Excel workbook: save the table as CSV, or unpack the archive"},
	{"\xd0\xcf\x11\xe0", "an Excel workbook: save the table as CSV"},
	{"PAR1", "a Parquet file: give it a name that ends in .parquet"},
	{"\x1f\x8b", "compressed by gzip: give it a name that ends in .gz"},
	{"\x28\xb5\x2f\xfd", "compressed by Zstandard: give it a name that ends in .zst"},
	{"%PDF-", "a PDF document"},
}

// textOf returns the text of an input, or says what it is in place of text. Lines of a table that all end in CR, as
// Excel's "CSV (Macintosh)" has them, end in LF then.
func textOf(r io.Reader, as format) (io.Reader, error) {
	b := bufio.NewReaderSize(r, lineBuffer)
	begin, _ := b.Peek(lineBuffer) // less, if the input has less
	for _, f := range foreign {
		if bytes.HasPrefix(begin, []byte(f.begin)) {
			return nil, fmt.Errorf("it is no text, but %s", f.what)
		}
	}
	if as == csvRows && bytes.IndexByte(begin, '\r') >= 0 && bytes.IndexByte(begin, '\n') < 0 {
		return crReader{b}, nil
	}
	return b, nil
}

// crReader has LF for each CR.
type crReader struct{ r io.Reader }

func (c crReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for i, b := range p[:n] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// utf16Reader turns UTF-16 into UTF-8. Half of a surrogate pair, or half of a unit at the end, becomes
// the byte 0xff, which is in no UTF-8, so that the decoder finds it.
type utf16Reader struct {
	r         *bufio.Reader
	bigEndian bool
	out       []byte // not yet returned
	buf       [4096]byte
	high      rune // the first half of a pair, 0 for none
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		u.out = u.buf[:0]
		for len(u.out) < len(u.buf)-8 {
			unit, err := u.unit()
			if err != nil {
				if u.high != 0 {
					u.high, u.out = 0, append(u.out, 0xff)
				}
				if len(u.out) == 0 {
					return 0, err
				}
				break
			}
			u.append(unit)
		}
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// unit returns the next code unit, or 0xdc00, half of a pair, for a single byte at the end.
func (u *utf16Reader) unit() (rune, error) {
	first, err := u.r.ReadByte()
	if err != nil {
		return 0, err
	}
	second, err := u.r.ReadByte()
	switch {
	case err == io.EOF: //nolint:errorlint // of a bufio.Reader
		return 0xdc00, nil
	case err != nil:
		return 0, err
	case u.bigEndian:
		first, second = second, first
	}
	return rune(second)<<8 | rune(first), nil
}

func (u *utf16Reader) append(unit rune) {
	if u.high != 0 {
		pair := utf16.DecodeRune(u.high, unit)
		u.high = 0
		if pair != utf8.RuneError {
			u.out = utf8.AppendRune(u.out, pair)
			return
		}
		u.out = append(u.out, 0xff)
	}
	switch {
	case unit >= 0xd800 && unit < 0xdc00:
		u.high = unit
	case utf16.IsSurrogate(unit):
		u.out = append(u.out, 0xff)
	default:
		u.out = utf8.AppendRune(u.out, unit)
	}
}

// script of text that has no byte order mark: what its first bytes beyond ASCII say.
type script int

const (
	ascii script = iota // so far
	unicodeText
	windows1252
)

// scriptOf reads a sample, which may end in the middle of a sequence unless it is whole. A well-formed
// sequence of several bytes hardly occurs in Windows-1252 by chance, so one of them decides for UTF-8;
// only then are other bytes beyond ASCII mistakes.
func scriptOf(sample []byte, whole bool) script {
	found := ascii
	for len(sample) > 0 {
		r, n := utf8.DecodeRune(sample)
		switch {
		case n > 1:
			return unicodeText
		case r == utf8.RuneError && (whole || utf8.FullRune(sample)):
			found = windows1252
		}
		sample = sample[n:]
	}
	return found
}

// appendWindows1252 appends Windows-1252, of which Latin-1 without its control characters is a part,
// as UTF-8. The five bytes that are nothing in Windows-1252 become the controls of Latin-1, as in the
// encoding standard of the web.
func appendWindows1252(dst, text []byte) []byte {
	// The characters of the bytes 0x80 to 0x9f.
	const high = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	table := []rune(high)
	for _, c := range text {
		r := rune(c)
		if c >= 0x80 && c < 0xa0 {
			r = table[c-0x80]
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
