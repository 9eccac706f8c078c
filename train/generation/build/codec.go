package build

import (
	"encoding/binary"
	"errors"
	"math"
)

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errShort = errors.New("a record ends too early")

// decoder reads the fields of records one after the other. Strings share the memory of the input.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) more() bool { return d.err == nil && len(d.b) > 0 }

func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil || n > uint64(len(d.b)) {
		d.err, d.b = errors.Join(d.err, errShort), nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.err, d.b = errors.Join(d.err, errShort), nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.err, d.b = errors.Join(d.err, errShort), nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() []byte { return d.bytes(d.uvarint()) }

func (d *decoder) u32() uint32 {
	if b := d.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// appendBF16 appends numbers as bfloat16: the upper half of a float32, rounded to nearest, ties to even. They must
// be finite.
func appendBF16(b []byte, v []float32) []byte {
	for _, x := range v {
		u := math.Float32bits(x)
		u += 0x7fff + u>>16&1
		b = binary.LittleEndian.AppendUint16(b, uint16(u>>16))
	}
	return b
}

// bf16 reads len(out) numbers.
func bf16(b []byte, out []float32) {
	for k := range out {
		out[k] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*k:])) << 16)
	}
}

func appendFloats(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func floats(b []byte, out []float32) {
	for k := range out {
		out[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
	}
}

func appendInts(b []byte, v []int32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func ints(b []byte) []int32 {
	out := make([]int32, len(b)/4)
	for k := range out {
		out[k] = int32(binary.LittleEndian.Uint32(b[4*k:]))
	}
	return out
}
