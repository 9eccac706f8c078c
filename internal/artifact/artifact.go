package artifact

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// Errors that callers test with errors.Is.
var (
	// ErrCorrupt says that the bytes are not a whole, undamaged artifact.
	ErrCorrupt = errors.New("artifact is corrupt")
	// ErrUnknown says that the bytes are another kind of artifact, or a version that this program
	// does not know.
	ErrUnknown = errors.New("artifact is of an unknown kind or version")
)

// chunk is how many bytes of an array are converted at a time.
const chunk = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes one artifact.
type Writer struct {
	w   *bufio.Writer
	crc uint32
	buf []byte
	err error
	n   int64
}

// NewWriter begins an artifact of the kind that magic (8 bytes) names.
func NewWriter(w io.Writer, magic string, version uint32) *Writer {
	a := &Writer{w: bufio.NewWriterSize(w, chunk)}
	if len(magic) != 8 {
		a.err = fmt.Errorf("artifact: magic %q must have 8 bytes", magic)
	}
	a.raw([]byte(magic))
	a.U32(version)
	return a
}

func (a *Writer) raw(b []byte) {
	if a.err != nil {
		return
	}
	a.crc = crc32.Update(a.crc, castagnoli, b)
	var n int
	n, a.err = a.w.Write(b)
	a.n += int64(n)
}

// Written is the number of bytes so far; after Close, the size of the artifact.
func (a *Writer) Written() int64 { return a.n }

// U32 writes one number.
func (a *Writer) U32(v uint32) { a.raw(binary.LittleEndian.AppendUint32(a.buf[:0], v)) }

// U64 writes one number.
func (a *Writer) U64(v uint64) { a.raw(binary.LittleEndian.AppendUint64(a.buf[:0], v)) }

// F64 writes one number.
func (a *Writer) F64(v float64) { a.U64(math.Float64bits(v)) }

// Bytes writes a byte string.
func (a *Writer) Bytes(b []byte) {
	a.U64(uint64(len(b)))
	a.raw(b)
}

// Int32s writes an array.
func (a *Writer) Int32s(v []int32) {
	writeArray(a, v, 4, func(b []byte, x int32) []byte { return binary.LittleEndian.AppendUint32(b, uint32(x)) })
}

// Uint64s writes an array.
func (a *Writer) Uint64s(v []uint64) {
	writeArray(a, v, 8, binary.LittleEndian.AppendUint64)
}

// Float32s writes an array.
func (a *Writer) Float32s(v []float32) {
	writeArray(a, v, 4, func(b []byte, x float32) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	})
}

func writeArray[T any](a *Writer, v []T, size int, put func([]byte, T) []byte) {
	a.U64(uint64(len(v)))
	for len(v) > 0 && a.err == nil {
		n := min(len(v), chunk/size)
		a.buf = a.buf[:0]
		for _, x := range v[:n] {
			a.buf = put(a.buf, x)
		}
		a.raw(a.buf)
		v = v[n:]
	}
}

// Close writes the checksum and flushes. It does not close the underlying writer.
func (a *Writer) Close() error {
	a.U32(a.crc)
	if a.err == nil {
		a.err = a.w.Flush()
	}
	return a.err
}

// Reader reads one artifact.
type Reader struct {
	version uint32
	r       *bufio.Reader
	crc     uint32
	buf     []byte
	err     error
}

// NewReader begins reading. The error is ErrUnknown if the bytes do not begin with this magic and
// one of these versions.
func NewReader(r io.Reader, magic string, versions ...uint32) (*Reader, error) {
	a := &Reader{r: bufio.NewReaderSize(r, chunk), buf: make([]byte, chunk)}
	head := a.raw(8)
	if a.err != nil {
		return nil, a.err
	}
	if string(head) != magic {
		return nil, fmt.Errorf("%w: it begins with %q, want %q", ErrUnknown, head, magic)
	}
	v := a.U32()
	if a.err != nil {
		return nil, a.err
	}
	if !slices.Contains(versions, v) {
		return nil, fmt.Errorf("%w: %s version %d, this program reads version %d; "+
			"fit it again or use a matching program", ErrUnknown, magic, v, versions)
	}
	a.version = v
	return a, nil
}

// Version returns the version of the artifact.
func (a *Reader) Version() uint32 { return a.version }

// raw returns the next n ≤ chunk bytes, valid until the next call. After an error it returns zeros.
func (a *Reader) raw(n int) []byte {
	b := a.buf[:n]
	if a.err == nil {
		if _, err := io.ReadFull(a.r, b); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: it ends too early", ErrCorrupt)
			}
			a.err = err
		}
	}
	if a.err != nil {
		clear(b)
		return b
	}
	a.crc = crc32.Update(a.crc, castagnoli, b)
	return b
}

// Fail records that the value of a field is impossible.
func (a *Reader) Fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
}

// Err returns the first error so far.
func (a *Reader) Err() error { return a.err }

// U32 reads one number; 0 after an error.
func (a *Reader) U32() uint32 { return binary.LittleEndian.Uint32(a.raw(4)) }

// U64 reads one number; 0 after an error.
func (a *Reader) U64() uint64 { return binary.LittleEndian.Uint64(a.raw(8)) }

// F64 reads one number; 0 after an error.
func (a *Reader) F64() float64 { return math.Float64frombits(a.U64()) }

// Int reads a uint64 that must lie in lo..hi; lo after an error.
func (a *Reader) Int(what string, lo, hi int) int {
	v := a.U64()
	if a.err == nil && (v > math.MaxInt64 || int64(v) < int64(lo) || int64(v) > int64(hi)) {
		a.Fail("%s is %d, want %d to %d", what, v, lo, hi)
	}
	if a.err != nil {
		return lo
	}
	return int(v)
}

// Bytes reads a byte string of at most limit bytes.
func (a *Reader) Bytes(what string, limit int) []byte {
	return readArray(a, what, limit, 1, func(b []byte) byte { return b[0] })
}

// Int32s reads an array of at most limit elements.
func (a *Reader) Int32s(what string, limit int) []int32 {
	return readArray(a, what, limit, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

// Uint64s reads an array of at most limit elements.
func (a *Reader) Uint64s(what string, limit int) []uint64 {
	return readArray(a, what, limit, 8, binary.LittleEndian.Uint64)
}

// Float32s reads an array of at most limit elements.
func (a *Reader) Float32s(what string, limit int) []float32 {
	values := readArray(a, what, limit, 4, func(b []byte) float32 {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	})
	if i := slices.IndexFunc(values, func(x float32) bool { return x-x != 0 }); i >= 0 {
		a.Fail("%s: number %d is %v", what, i, values[i])
		return nil
	}
	return values
}

func readArray[T any](a *Reader, what string, limit, size int, get func([]byte) T) []T {
	n := a.Int("length of "+what, 0, limit)
	v := make([]T, 0, min(n, chunk/size))
	for len(v) < n && a.err == nil {
		k := min(n-len(v), chunk/size)
		b := a.raw(k * size)
		for i := range k {
			v = append(v, get(b[i*size:]))
		}
	}
	if a.err != nil {
		return nil
	}
	return v
}

// Close verifies the checksum, and that nothing follows it.
func (a *Reader) Close() error {
	want := a.crc
	if got := a.U32(); a.err == nil && got != want {
		a.err = fmt.Errorf("%w: checksum %08x, computed %08x", ErrCorrupt, got, want)
	}
	if a.err == nil {
		if _, err := a.r.ReadByte(); !errors.Is(err, io.EOF) {
			a.err = fmt.Errorf("%w: bytes follow its end", ErrCorrupt)
			if err != nil {
				a.err = err
			}
		}
	}
	return a.err
}
