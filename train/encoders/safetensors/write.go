package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Tensor is one named array to write: exactly one of Float32, BFloat16 and
// Int32 is used, and its length is the product of Shape.
type Tensor struct {
	Name     string
	Shape    []int
	Float32  []float32
	BFloat16 []uint16 // the upper halves of float32
	Int32    []int32
}

func (t Tensor) length() int { return len(t.Float32) + len(t.BFloat16) + len(t.Int32) }

// dtype is the type as the header names it.
func (t Tensor) dtype() string {
	switch {
	case t.Int32 != nil:
		return "I32"
	case t.BFloat16 != nil:
		return "BF16"
	}
	return "F32"
}

// append appends number i.
func (t Tensor) append(b []byte, i int) []byte {
	switch {
	case t.Int32 != nil:
		return binary.LittleEndian.AppendUint32(b, uint32(t.Int32[i]))
	case t.BFloat16 != nil:
		return binary.LittleEndian.AppendUint16(b, t.BFloat16[i])
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(t.Float32[i]))
}

// entry is a tensor's line in the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// File is a set of tensors ready to be written.
type File struct {
	header  []byte
	tensors []Tensor
	size    int64
}

// New lays out a file. Tensors are written in order of name; metadata may be
// nil. The tensors' arrays must not change until the file is written.
func New(tensors []Tensor, metadata map[string]string) (*File, error) {
	f := &File{tensors: slices.Clone(tensors)}
	slices.SortFunc(f.tensors, func(a, b Tensor) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	header := map[string]any{}
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	var at int64
	for _, t := range f.tensors {
		e := entry{DType: t.dtype(), Shape: []int64{}}
		want := 1
		for _, s := range t.Shape {
			want *= s
			e.Shape = append(e.Shape, int64(s))
		}
		if _, twice := header[t.Name]; twice || t.Name == "" || t.Name == metadataKey {
			return nil, fmt.Errorf("safetensors: tensor name %q is empty, reserved or used twice", t.Name)
		}
		if i := notFinite(t.Float32); i >= 0 {
			return nil, fmt.Errorf("safetensors: tensor %q: %w: number %d is %v", t.Name, ErrNotFinite, i, t.Float32[i])
		}
		if i := slices.IndexFunc(t.BFloat16, func(b uint16) bool { return b&0x7f80 == 0x7f80 }); i >= 0 {
			return nil, fmt.Errorf("safetensors: tensor %q: %w: number %d", t.Name, ErrNotFinite, i)
		}
		if want != t.length() || want != max(len(t.Float32), len(t.BFloat16), len(t.Int32)) {
			return nil, fmt.Errorf("safetensors: tensor %q has %d numbers, its shape %v says %d", t.Name, t.length(),
				t.Shape, want)
		}
		e.Offsets = [2]int64{at, at + widths[e.DType]*int64(want)}
		at = e.Offsets[1]
		header[t.Name] = e
	}
	var err error
	if f.header, err = json.Marshal(header); err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	// Spaces pad the header so that the tensors start at a multiple of 8.
	for len(f.header)%8 != 0 {
		f.header = append(f.header, ' ')
	}
	if len(f.header) > maxHeader {
		return nil, errors.New("safetensors: too many tensors for one header")
	}
	f.size = 8 + int64(len(f.header)) + at
	return f, nil
}

// Size is the number of bytes that WriteTo writes.
func (f *File) Size() int64 { return f.size }

// WriteTo writes the file; it may be called any number of times.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(f.header)))
	n, err := w.Write(append(head, f.header...))
	written := int64(n)
	buf := make([]byte, 0, chunk)
	for _, t := range f.tensors {
		for at := 0; at < t.length() && err == nil; at += chunk / 4 {
			end := min(at+chunk/4, t.length())
			buf = buf[:0]
			for i := at; i < end; i++ {
				buf = t.append(buf, i)
			}
			n, err = w.Write(buf)
			written += int64(n)
		}
	}
	return written, err
}
