package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"giantstream/train/numeric"
	"io"
	"math"
	"slices"
)

// ErrInvalid: the bytes are not a whole, well-formed safetensors file, or a
// tensor is missing or of another type or shape than asked for.
var ErrInvalid = errors.New("invalid safetensors file")

// ErrNotFinite: a tensor holds NaN or an infinity.
var ErrNotFinite = errors.New("a number is not finite")

const (
	metadataKey = "__metadata__"
	// maxHeader bounds the header; models of hundreds of layers need 100 kB.
	maxHeader = 16 << 20
	maxDims   = 8
	chunk     = 256 << 10
)

// widths are the bytes per number of the types that the format knows.
var widths = map[string]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
	"U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}

// Archive is an open file. It reads tensors on demand and is safe for
// concurrent use where its ReaderAt is.
type Archive struct {
	r       io.ReaderAt
	data    int64 // where the tensors' bytes begin
	entries map[string]entry
}

// Open reads and checks the header of a file of the given size.
func Open(r io.ReaderAt, size int64) (*Archive, error) {
	if size < 8 {
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrInvalid, size)
	}
	var head [8]byte
	if err := readFull(r, head[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("%w: a header of %d bytes in a file of %d", ErrInvalid, n, size)
	}
	header := make([]byte, n)
	if err := readFull(r, header, 8); err != nil {
		return nil, err
	}
	a := &Archive{r: r, data: 8 + int64(n), entries: map[string]entry{}}
	if err := a.parse(header); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrInvalid, err)
	}
	if err := a.check(size - a.data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return a, nil
}

func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends too early", ErrInvalid)
	}
	return fmt.Errorf("safetensors: %w", err)
}

// parse reads the JSON object by hand, because encoding/json would let the
// last of two equal names win.
func (a *Archive) parse(header []byte) error {
	d := json.NewDecoder(bytes.NewReader(header))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	var metadata map[string]string // free-form strings, checked but not used
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok {
			return errors.New("a name is not a string")
		}
		if name == metadataKey {
			if metadata != nil {
				return errors.New("metadata twice")
			}
			metadata = map[string]string{}
			if err := d.Decode(&metadata); err != nil {
				return err
			}
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return err
		}
		if _, twice := a.entries[name]; twice {
			return fmt.Errorf("tensor %q twice", name)
		}
		a.entries[name] = e
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if rest := header[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// check verifies that the tensors have the sizes that their shapes say and
// cover the data exactly.
func (a *Archive) check(size int64) error {
	byPlace := a.Names()
	slices.SortFunc(byPlace, func(x, y string) int {
		ex, ey := a.entries[x].Offsets, a.entries[y].Offsets
		return slices.Compare(ex[:], ey[:])
	})
	var at int64
	for _, name := range byPlace {
		e := a.entries[name]
		width, known := widths[e.DType]
		if !known {
			return fmt.Errorf("tensor %q has the unknown type %q", name, e.DType)
		}
		if len(e.Shape) > maxDims {
			return fmt.Errorf("tensor %q has %d dimensions", name, len(e.Shape))
		}
		bytes := width
		for _, s := range e.Shape {
			if s < 0 || (s > 0 && bytes > size/s) {
				return fmt.Errorf("tensor %q: shape %v does not fit into the file", name, e.Shape)
			}
			bytes *= s
		}
		if e.Offsets[0] != at || e.Offsets[1] != at+bytes || e.Offsets[1] > size {
			return fmt.Errorf("tensor %q: bytes %v do not follow byte %d or do not match shape %v of %s", name,
				e.Offsets, at, e.Shape, e.DType)
		}
		at = e.Offsets[1]
	}
	if at != size {
		return fmt.Errorf("%d bytes follow the last tensor", size-at)
	}
	return nil
}

// Names returns the tensors' names in ascending order.
func (a *Archive) Names() []string {
	names := make([]string, 0, len(a.entries))
	for n := range a.entries {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Shape returns a tensor's shape, or false if there is no such tensor.
func (a *Archive) Shape(name string) ([]int, bool) {
	e, ok := a.entries[name]
	shape := make([]int, len(e.Shape))
	for i, s := range e.Shape {
		shape[i] = int(s)
	}
	return shape, ok
}

// Float32 reads a tensor of type F32, F16 or BF16, which must have the given shape and hold finite
// numbers: what is computed with others is noise.
func (a *Archive) Float32(name string, shape ...int) ([]float32, error) {
	e, err := a.entry(name, "F32, F16 or BF16", shape)
	if err != nil {
		return nil, err
	}
	values, err := a.float32s(name, e)
	if err != nil {
		return nil, err
	}
	if i := notFinite(values); i >= 0 {
		return nil, fmt.Errorf("%w: tensor %q: %w: number %d is %v", ErrInvalid, name, ErrNotFinite, i, values[i])
	}
	return values, nil
}

// notFinite returns the place of the first NaN or infinity, -1 if there is none.
func notFinite(values []float32) int {
	return slices.IndexFunc(values, func(x float32) bool { return x-x != 0 })
}

func (a *Archive) float32s(name string, e entry) ([]float32, error) {
	switch e.DType {
	case "F32":
		return read(a, e, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case "F16":
		return read(a, e, func(b []byte) float32 { return fromFloat16(binary.LittleEndian.Uint16(b)) })
	case "BF16":
		return read(a, e, func(b []byte) float32 { return numeric.FromBF16(binary.LittleEndian.Uint16(b)) })
	}
	return nil, fmt.Errorf("%w: tensor %q is %s, which cannot be read as F32; convert the file to F32, F16 or BF16",
		ErrInvalid, name, e.DType)
}

// Int32 reads a tensor of type I32, which must have the given shape.
func (a *Archive) Int32(name string, shape ...int) ([]int32, error) {
	e, err := a.entry(name, "I32", shape)
	if err != nil {
		return nil, err
	}
	if e.DType != "I32" {
		return nil, fmt.Errorf("%w: tensor %q is %s, not I32", ErrInvalid, name, e.DType)
	}
	return read(a, e, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

// entry finds a tensor and compares its shape.
func (a *Archive) entry(name, dtype string, shape []int) (entry, error) {
	e, ok := a.entries[name]
	if !ok {
		return e, fmt.Errorf("%w: there is no tensor %q (want %s%v)", ErrInvalid, name, dtype, shape)
	}
	if has, _ := a.Shape(name); !slices.Equal(has, shape) {
		return e, fmt.Errorf("%w: want tensor %q as %s%v, the file has %s%v",
			ErrInvalid, name, dtype, shape, e.DType, has)
	}
	return e, nil
}

func read[T any](a *Archive, e entry, from func([]byte) T) ([]T, error) {
	width := int(widths[e.DType])
	out := make([]T, int(e.Offsets[1]-e.Offsets[0])/width)
	buf := make([]byte, min(chunk, width*len(out)))
	for i := 0; i < len(out); {
		b := buf[:min(len(buf), width*(len(out)-i))]
		if err := readFull(a.r, b, a.data+e.Offsets[0]+int64(width)*int64(i)); err != nil {
			return nil, err
		}
		for ; len(b) > 0; b = b[width:] {
			out[i] = from(b)
			i++
		}
	}
	return out, nil
}

// fromFloat16 widens IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of
// fraction. Every value has an exact float32.
func fromFloat16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero and subnormals: fraction · 2⁻²⁴
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(f))
	case 0x1f: // infinity and NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
