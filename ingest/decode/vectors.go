package decode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"giantstream/internal/vector"
	"giantstream/stream/mutation"
)

// Vector is a field with numbers that a model has made of a node, such as of its picture.
type Vector struct {
	Name string
	Path string // as in Mapping
	// Length is how many numbers every value has.
	Length    int
	Precision mutation.Precision
}

// Bounds of vectors.
const (
	// MaxVectors bounds the vectors of one input.
	MaxVectors = 8
	// MaxVectorLength bounds the numbers of one vector.
	MaxVectorLength = 4096
)

// ParseVector parses NAME=PATH:LENGTH[:PRECISION]. The precision is float32 unless given.
func ParseVector(s string) (v Vector, err error) {
	v.Precision = mutation.Float32
	name, rest, _ := strings.Cut(s, "=")
	for _, p := range []mutation.Precision{mutation.Float16, mutation.Float32} {
		if before, has := strings.CutSuffix(rest, ":"+p.String()); has {
			rest, v.Precision = before, p
			break
		}
	}
	at := strings.LastIndexByte(rest, ':')
	if at < 0 {
		return v, fmt.Errorf("vector %q: write NAME=PATH:LENGTH, or NAME=PATH:LENGTH:float16", s)
	}
	v.Name, v.Path = name, rest[:at]
	v.Length, err = strconv.Atoi(rest[at+1:])
	switch {
	case name == "" || len(name) > 64 || strings.ContainsFunc(name, notInName):
		return v, fmt.Errorf("vector %q: a name is 1 to 64 of A-Z, a-z, 0-9, _ and -; write NAME=PATH:LENGTH", s)
	case err != nil || v.Length < 1 || v.Length > MaxVectorLength:
		return v, fmt.Errorf("vector %q: the length %q is no number from 1 to %d; write NAME=PATH:LENGTH or "+
			"NAME=PATH:LENGTH:float16", s, rest[at+1:], MaxVectorLength)
	case v.Path == "":
		return v, fmt.Errorf("vector %q: no path given", s)
	}
	_, err = ParsePath(v.Path)
	return v, err
}

// mapVectors sets the vectors that records have, in the order in which they are stated.
func (d *Decoder) mapVectors(all []Vector) error {
	d.vectors = slices.Clone(all)
	slices.SortFunc(d.vectors, func(a, b Vector) int { return strings.Compare(a.Name, b.Name) })
	if len(all) > MaxVectors {
		return fmt.Errorf("%d vectors; the limit is %d", len(all), MaxVectors)
	}
	for i := 1; i < len(d.vectors); i++ {
		if name := d.vectors[i].Name; name == d.vectors[i-1].Name {
			return fmt.Errorf("vector %s is given twice", name)
		}
	}
	return nil
}

// vectorFields are the fields of mapped vectors, which come after the attributes.
func (d *Decoder) vectorFields(name string) (fields []mappedField) {
	for i, v := range d.vectors {
		fields = append(fields, mappedField{name: name, path: v.Path, slot: d.vectorSlot(i)})
	}
	return fields
}

func (d *Decoder) vectorSlot(i int) slot { return slotText + slot(d.texts+len(d.attributes)+i) }

// stateVectors lets a mutation state the vectors of the record, none of a record that says that the node is gone. One
// that is absent, null or an empty string is left out.
func (d *Decoder) stateVectors(m *mutation.Mutation, gone bool) *Fault {
	m.HasVectors = len(d.vectors) > 0
	if gone {
		return nil
	}
	for i := range d.vectors {
		v, ok := d.one(d.vectorSlot(i))
		if !ok || v.kind == kindString && len(v.raw) == 0 {
			continue
		}
		r := vectorReader{Vector: &d.vectors[i], data: d.numbers[:0]}
		fault := r.read(d, v)
		if d.numbers = r.data; fault == nil {
			fault = r.check()
		}
		if fault != nil {
			return fault
		}
		m.Vectors = append(m.Vectors, mutation.Vector{Name: r.Name, Precision: r.Precision, Data: string(r.data)})
	}
	return nil
}

// vectorReader reads one vector of a record.
type vectorReader struct {
	*Vector
	data  []byte // as mutation.Vector.Data
	found int    // numbers, also beyond Length, which are not kept
	some  bool   // a number is not 0
}

func (r *vectorReader) read(d *Decoder, v value) *Fault {
	switch v.kind {
	case kindList:
		return r.list(v.raw)
	case kindString:
		text := []byte(d.text(v))
		switch {
		case bytes.IndexByte(text, 0) >= 0: // binary that is UTF-8 by chance, as that of 0, 0.5 and 2 is
			return r.binary(text)
		case text[0] == '[': // a cell of a CSV file
			return r.list(text)
		}
		return r.base64(text)
	case kindObject: // binary of Parquet, Avro or Protobuf
		if text, ok := bytes.CutPrefix(v.raw, []byte(`{"base64":"`)); ok {
			return r.base64(bytes.TrimSuffix(text, []byte(`"}`)))
		}
	}
	return r.wrong(v.kind.String())
}

func (r *vectorReader) wrong(found string) *Fault {
	return faultf(BadType, "vector %s is %s; it must be a list of %d numbers, or the base64 of as many float32", r.Name,
		found, r.Length)
}

// list reads the list that a text begins with.
func (r *vectorReader) list(text []byte) *Fault {
	const space = " \n\r\t"
	rest := bytes.TrimLeft(text[1:], space)
	if len(rest) > 0 && rest[0] == ']' {
		return nil
	}
	for {
		end := bytes.IndexAny(rest, ",]")
		if end < 0 {
			return r.wrong("a list without end")
		}
		if fault := r.element(string(bytes.TrimRight(rest[:end], space))); fault != nil {
			return fault
		}
		if rest[end] == ']' {
			return nil
		}
		rest = bytes.TrimLeft(rest[end+1:], space)
	}
}

// element reads a number of a list. Parquet, Avro and Protobuf have null for NaN and an object for infinity.
func (r *vectorReader) element(text string) *Fault {
	if text == "null" || strings.HasPrefix(text, `{"float":`) {
		return faultf(VectorNotFinite, "number %d of vector %s is %s; all %d must be finite", r.found, r.Name, text,
			r.Length)
	}
	x, err := strconv.ParseFloat(text, 32)
	if err != nil && math.IsInf(x, 0) {
		return r.overflow(text)
	}
	if err != nil {
		return r.wrong("a list with " + quote(text))
	}
	return r.add(float32(x))
}

func (r *vectorReader) base64(text []byte) *Fault {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(raw, text)
	if err != nil {
		return r.wrong("a string that is no base64")
	}
	return r.binary(raw[:n])
}

// binary reads float32, little-endian.
func (r *vectorReader) binary(raw []byte) *Fault {
	if len(raw)%4 != 0 {
		return faultf(VectorLength, "vector %s has %d bytes; it must have %d, 4 a number", r.Name, len(raw), 4*r.Length)
	}
	for ; len(raw) > 0; raw = raw[4:] {
		if fault := r.add(math.Float32frombits(binary.LittleEndian.Uint32(raw))); fault != nil {
			return fault
		}
	}
	return nil
}

// add takes the next number.
func (r *vectorReader) add(x float32) *Fault {
	at := r.found
	if r.found++; at >= r.Length {
		return nil
	}
	if size := math.Abs(float64(x)); math.IsNaN(size) || math.IsInf(size, 0) {
		return faultf(VectorNotFinite, "number %d of vector %s is %g; all %d must be finite", at, r.Name, x, r.Length)
	}
	x += 0 // no -0
	if r.Precision == mutation.Float32 {
		r.some = r.some || x != 0
		r.data = binary.LittleEndian.AppendUint32(r.data, math.Float32bits(x))
		return nil
	}
	half := vector.Half(x)
	kept := vector.FromHalf(half)
	if math.IsInf(float64(kept), 0) {
		r.found--
		return r.overflow(strconv.FormatFloat(float64(x), 'g', -1, 32))
	}
	if r.some = r.some || kept != 0; kept == 0 {
		half = 0
	}
	r.data = binary.LittleEndian.AppendUint16(r.data, half)
	return nil
}

func (r *vectorReader) overflow(found string) *Fault {
	return faultf(VectorOverflow, "number %d of vector %s is %s, which is too large for %s", r.found, r.Name,
		quote(found), r.Precision)
}

// check says what is wrong with the whole.
func (r *vectorReader) check() *Fault {
	switch {
	case r.found != r.Length:
		return faultf(VectorLength, "vector %s has %d numbers; it must have %d", r.Name, r.found, r.Length)
	case !r.some:
		return faultf(VectorZero, "all %d numbers of vector %s are 0 as %s; leave out a vector that is not known",
			r.Length, r.Name, r.Precision)
	}
	return nil
}
