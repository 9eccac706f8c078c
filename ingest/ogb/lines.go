package ogb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

var (
	// errMissing: the download lacks a file or an array.
	errMissing = errors.New("it is not in the download")
	// errEnd: there are no more values.
	errEnd = errors.New("the file ends here")
)

// maxLine bounds a line: a product with its description.
const maxLine = 16 << 20

// lines are the lines of a text file, which may be compressed.
type lines struct {
	path    string
	n       int64 // of the line read last, from 1
	file    *os.File
	gzip    *gzip.Reader
	scanner *bufio.Scanner
	read    func(int64) // receives bytes read from the disk; nil for nobody
}

// openLines opens a file, with or without its .gz.
func openLines(path string) (*lines, error) {
	plain := strings.TrimSuffix(path, ".gz")
	for _, p := range []string{plain + ".gz", plain} {
		file, err := os.Open(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l := &lines{path: p, file: file}
		var r io.Reader = counting{file, l}
		if p != plain {
			if l.gzip, err = gzip.NewReader(r); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", p, err), file.Close())
			}
			r = l.gzip
		}
		l.scanner = bufio.NewScanner(r)
		l.scanner.Buffer(make([]byte, 0, 1<<20), maxLine)
		return l, nil
	}
	return nil, fmt.Errorf("%s(.gz): %w", plain, errMissing)
}

type counting struct {
	io.Reader
	l *lines
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.l.read != nil {
		c.l.read(int64(n))
	}
	return n, err
}

// next returns the next line, errEnd after the last. It is valid until the next call.
func (l *lines) next() ([]byte, error) {
	l.n++
	if l.scanner.Scan() {
		return l.scanner.Bytes(), nil
	}
	if err := l.scanner.Err(); err != nil {
		return nil, l.fault("%w", err)
	}
	return nil, errEnd
}

func (l *lines) fault(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{l.path, l.n}, args...)...)
}

func (l *lines) close() error { return l.file.Close() }

// column is a value per node.
type column interface {
	// next returns the next value; known is false where it is missing (nan). It is errEnd after the last one in files
	// without a number of values.
	next() (value int64, known bool, err error)
	fault(format string, args ...any) error
	close() error
}

// csvColumn is the first column of a CSV file without header.
type csvColumn struct{ *lines }

func openColumn(path string) (column, error) {
	l, err := openLines(path)
	if err != nil {
		return nil, err
	}
	return csvColumn{l}, nil
}

func (c csvColumn) next() (int64, bool, error) {
	line, err := c.lines.next()
	if err != nil {
		return 0, false, err
	}
	field, _, _ := strings.Cut(string(line), ",")
	if field == "" {
		return 0, false, nil
	}
	f, err := strconv.ParseFloat(field, 64) // pandas writes integers beside missing ones as 3.0
	if err != nil || f != math.Trunc(f) && !math.IsNaN(f) {
		return 0, false, c.fault("%q is no whole number", field)
	}
	return int64(f), !math.IsNaN(f), nil
}

// none is a column without values.
type none struct{}

func (none) next() (int64, bool, error)             { return 0, false, nil }
func (none) fault(format string, args ...any) error { return fmt.Errorf(format, args...) }
func (none) close() error                           { return nil }

// names is a mapping file: a header, then index,name for every index in order.
type names struct{ *lines }

func openNames(path string) (*names, error) {
	l, err := openLines(path)
	if err != nil {
		return nil, err
	}
	n := &names{l}
	if _, err := l.next(); err != nil { // the header
		return nil, errors.Join(n.fault("the header is missing: %w", err), l.close())
	}
	return n, nil
}

// next returns the name of node i.
func (n *names) next(i int64) (string, error) {
	line, err := n.lines.next()
	if err != nil {
		return "", n.fault("no name of node %d: %w", i, err)
	}
	index, name, found := strings.Cut(string(line), ",")
	if got, err := strconv.ParseInt(index, 10, 64); err != nil || !found || got != i {
		return "", n.fault("want %d,NAME", i)
	}
	return name, nil
}

// edgeReader yields edges.
type edgeReader interface {
	next() (src, dst int64, more bool, err error)
	fault(format string, args ...any) error
	close() error
}

type edgeLines struct{ *lines }

func openEdgeLines(path string) (edgeReader, error) {
	l, err := openLines(path)
	if err != nil {
		return nil, err
	}
	return edgeLines{l}, nil
}

func (e edgeLines) next() (src, dst int64, more bool, err error) {
	line, err := e.lines.next()
	if errors.Is(err, errEnd) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, err
	}
	a, b, _ := strings.Cut(string(line), ",")
	src, err = strconv.ParseInt(a, 10, 64)
	if err == nil {
		dst, err = strconv.ParseInt(b, 10, 64)
	}
	if err != nil {
		return 0, 0, false, e.fault("want two node indices, SRC,DST")
	}
	return src, dst, true, nil
}
