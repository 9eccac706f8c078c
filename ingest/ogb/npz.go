package ogb

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// array is an array of an .npz file (a ZIP archive of .npy files, numpy.lib.format), read in the order in which it is
// stored.
type array struct {
	path, name string
	archive    *zip.ReadCloser
	data       io.ReadCloser
	in         *bufio.Reader
	descr      string // <i8, <f4, …
	fortran    bool
	shape      []int64
	read       int64 // values
}

// openNPZ opens an array of a file.
func openNPZ(path, name string) (*array, error) {
	archive, err := zip.OpenReader(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, errMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a := &array{path: path, name: name, archive: archive}
	for _, f := range archive.File {
		if f.Name != name+".npy" {
			continue
		}
		if a.data, err = f.Open(); err == nil {
			a.in = bufio.NewReaderSize(a.data, 1<<20)
			err = a.header()
		}
		if err != nil {
			return nil, errors.Join(a.fault("%w", err), a.close())
		}
		return a, nil
	}
	return nil, errors.Join(fmt.Errorf("%s: array %s: %w", path, name, errMissing), a.close())
}

var (
	descrOf = regexp.MustCompile(`'descr': *'([^']*)'`)
	orderOf = regexp.MustCompile(`'fortran_order': *(True|False)`)
	shapeOf = regexp.MustCompile(`'shape': *\(([^)]*)\)`)
)

// header reads what an .npy file begins with.
func (a *array) header() error {
	start := make([]byte, 8)
	if _, err := io.ReadFull(a.in, start); err != nil {
		return err
	}
	if string(start[:6]) != "\x93NUMPY" {
		return errors.New("not an .npy file")
	}
	length := make([]byte, 4)
	if start[6] == 1 {
		length = length[:2]
	}
	if _, err := io.ReadFull(a.in, length); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(append(length, 0, 0)[:4])
	if size > 1<<16 {
		return fmt.Errorf("a header of %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(a.in, text); err != nil {
		return err
	}
	descr, order, shape := descrOf.FindSubmatch(text), orderOf.FindSubmatch(text), shapeOf.FindSubmatch(text)
	if descr == nil || order == nil || shape == nil {
		return fmt.Errorf("the header %q lacks descr, fortran_order or shape", text)
	}
	a.descr, a.fortran = string(descr[1]), string(order[1]) == "True"
	if a.width() == 0 {
		return fmt.Errorf("values of type %q: only little-endian numbers are read", a.descr)
	}
	for field := range strings.SplitSeq(string(shape[1]), ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue // after the comma of a tuple of one
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("shape %q", shape[1])
		}
		a.shape = append(a.shape, n)
	}
	return nil
}

// width returns the bytes of a value, 0 for types that are not read.
func (a *array) width() int64 {
	switch a.descr {
	case "<i8", "<u8", "<f8":
		return 8
	case "<i4", "<u4", "<f4":
		return 4
	case "<i2", "<u2":
		return 2
	case "|i1", "|u1":
		return 1
	}
	return 0
}

// skip passes over values.
func (a *array) skip(values int64) error {
	if _, err := io.CopyN(io.Discard, a.in, values*a.width()); err != nil {
		return a.fault("%w", err)
	}
	a.read += values
	return nil
}

// next implements column.
func (a *array) next() (value int64, known bool, err error) {
	var buf [8]byte
	b := buf[:a.width()]
	if _, err := io.ReadFull(a.in, b); err != nil {
		return 0, false, a.fault("%w", err)
	}
	a.read++
	var f float64
	switch a.descr {
	case "<i8", "<u8":
		return int64(binary.LittleEndian.Uint64(b)), true, nil
	case "<i4":
		return int64(int32(binary.LittleEndian.Uint32(b))), true, nil
	case "<u4":
		return int64(binary.LittleEndian.Uint32(b)), true, nil
	case "<i2":
		return int64(int16(binary.LittleEndian.Uint16(b))), true, nil
	case "<u2":
		return int64(binary.LittleEndian.Uint16(b)), true, nil
	case "|i1":
		return int64(int8(b[0])), true, nil
	case "|u1":
		return int64(b[0]), true, nil
	case "<f8":
		f = math.Float64frombits(binary.LittleEndian.Uint64(b))
	case "<f4":
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	if math.IsNaN(f) {
		return 0, false, nil
	}
	if f != math.Trunc(f) {
		return 0, false, a.fault("%v is no whole number", f)
	}
	return int64(f), true, nil
}

func (a *array) fault(format string, args ...any) error {
	return fmt.Errorf("%s: array %s, value %d: "+format, append([]any{a.path, a.name, a.read}, args...)...)
}

func (a *array) close() error {
	if a.data == nil {
		return a.archive.Close()
	}
	return errors.Join(a.data.Close(), a.archive.Close())
}

func openArray(path, name string) (column, error) {
	a, err := openNPZ(path, name)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// edgeIndex is the array edge_index, 2 × edges: all sources, then all destinations. Two readers go through it side by
// side.
type edgeIndex struct {
	src, dst *array
	left     int64
}

func openEdgeIndex(path string) (edgeReader, int64, error) {
	src, err := openNPZ(path, "edge_index")
	if err != nil {
		return nil, 0, err
	}
	if len(src.shape) != 2 || src.shape[0] != 2 || src.fortran {
		return nil, 0, errors.Join(src.fault("its shape is %v (fortran_order %v), want (2, edges), row by row",
			src.shape, src.fortran), src.close())
	}
	total := src.shape[1]
	dst, err := openNPZ(path, "edge_index")
	if err == nil {
		if err = dst.skip(total); err != nil {
			err = errors.Join(err, dst.close())
		}
	}
	if err != nil {
		return nil, 0, errors.Join(err, src.close())
	}
	return &edgeIndex{src, dst, total}, total, nil
}

func (e *edgeIndex) next() (src, dst int64, more bool, err error) {
	if e.left == 0 {
		return 0, 0, false, nil
	}
	e.left--
	if src, _, err = e.src.next(); err == nil {
		dst, _, err = e.dst.next()
	}
	return src, dst, err == nil, err
}

func (e *edgeIndex) fault(format string, args ...any) error { return e.src.fault(format, args...) }
func (e *edgeIndex) close() error                           { return errors.Join(e.src.close(), e.dst.close()) }
