package sections

import (
	"encoding/binary"
	"errors"
	"giantstream/train/numeric"
	"math"
)

// AppendString appends a string after its length.
func AppendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ErrShort: a record is not what its writer has written.
var ErrShort = errors.New("a record ends too early")

// Decoder reads the fields of records one after the other. Strings share the memory of the input. After the first
// error, its methods return zeros.
type Decoder struct {
	Rest []byte // what is left to read
	Err  error  // the first error
}

// More says whether there is something left to read.
func (d *Decoder) More() bool { return d.Err == nil && len(d.Rest) > 0 }

// Bytes reads n bytes.
func (d *Decoder) Bytes(n uint64) []byte {
	if d.Err != nil || n > uint64(len(d.Rest)) {
		d.Err, d.Rest = errors.Join(d.Err, ErrShort), nil
		return nil
	}
	out := d.Rest[:n]
	d.Rest = d.Rest[n:]
	return out
}

// Uvarint reads a number that binary.AppendUvarint wrote.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.Rest)
	if n <= 0 {
		d.Err, d.Rest = errors.Join(d.Err, ErrShort), nil
		return 0
	}
	d.Rest = d.Rest[n:]
	return v
}

// Varint reads a number that binary.AppendVarint wrote.
func (d *Decoder) Varint() int64 {
	v, n := binary.Varint(d.Rest)
	if n <= 0 {
		d.Err, d.Rest = errors.Join(d.Err, ErrShort), nil
		return 0
	}
	d.Rest = d.Rest[n:]
	return v
}

// StringBytes reads what AppendString wrote.
func (d *Decoder) StringBytes() []byte { return d.Bytes(d.Uvarint()) }

// Uint32 reads a number of four bytes.
func (d *Decoder) Uint32() uint32 {
	if b := d.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// AppendBF16 appends numbers as bfloat16. They must be finite.
func AppendBF16(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, numeric.BF16(x))
	}
	return b
}

// ReadBF16 reads len(out) numbers that AppendBF16 wrote.
func ReadBF16(b []byte, out []float32) {
	for k := range out {
		out[k] = numeric.FromBF16(binary.LittleEndian.Uint16(b[2*k:]))
	}
}

// AppendFloats appends numbers as float32.
func AppendFloats(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// ReadFloats reads len(out) numbers that AppendFloats wrote.
func ReadFloats(b []byte, out []float32) {
	for k := range out {
		out[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
	}
}

// AppendInts appends numbers of four bytes.
func AppendInts(b []byte, v []int32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// ReadInts reads all numbers that AppendInts wrote.
func ReadInts(b []byte) []int32 {
	out := make([]int32, len(b)/4)
	for k := range out {
		out[k] = int32(binary.LittleEndian.Uint32(b[4*k:]))
	}
	return out
}
