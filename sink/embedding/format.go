package embedding

import (
	"fmt"
	"math"
	"slices"

	"giantstream/internal/vector"
)

// Type is how the numbers of a vector are stored.
type Type string

// The types, from the widest to the narrowest.
const (
	Float32 Type = "float32"
	Float16 Type = "float16" // IEEE 754 binary16
	Int8    Type = "int8"    // whole numbers from -127 to 127 times a scale of the record's own
)

// ParseType checks the name of a type; "" is Float32.
func ParseType(name string) (Type, error) {
	switch t := Type(name); t {
	case "":
		return Float32, nil
	case Float32, Float16, Int8:
		return t, nil
	}
	return "", fmt.Errorf("embedding type %q: use %q, %q or %q", name, Float32, Float16, Int8)
}

// bits is the size of a number.
func (t Type) bits() int {
	switch t {
	case Float16:
		return 16
	case Int8:
		return 8
	}
	return 32
}

// Format is the size of the vectors that are stored or sent. The zero value leaves them as they are.
type Format struct {
	Type Type `json:"type,omitempty"` // "" is Float32
	// Dim is how many numbers of a vector are kept: the first, scaled to length 1. With 0, or where a
	// vector has no more, all are.
	Dim int `json:"dim,omitempty"`
}

// String names the format: "float32", "int8/128".
func (f Format) String() string {
	if f.Dim > 0 {
		return fmt.Sprintf("%s/%d", f.typ(), f.Dim)
	}
	return string(f.typ())
}

func (f Format) typ() Type {
	if f.Type == "" {
		return Float32
	}
	return f.Type
}

// LimitTo returns the format in which a reader gets vectors that are stored as g when it asks for f:
// the precision and the dimensions that g lacks stay lost.
func (f Format) LimitTo(g Format) Format {
	if g.typ().bits() < f.typ().bits() {
		f.Type = g.Type
	}
	if g.Dim > 0 && (f.Dim == 0 || g.Dim < f.Dim) {
		f.Dim = g.Dim
	}
	return f
}

// Narrow returns the record with a vector of this format. Vector then holds the numbers that readers
// will see. A record that is narrower already, or has no vector, stays as it is, so that Narrow may be
// called twice. It leaves the slice of the record given untouched.
func (f Format) Narrow(r Record) Record {
	cut := f.Dim > 0 && f.Dim < len(r.Vector)
	if len(r.Vector) == 0 || !cut && r.Type.bits() <= f.typ().bits() {
		return r
	}
	v := append([]float32(nil), r.Vector...)
	if cut {
		v = v[:f.Dim]
		vector.Normalize(v)
	}
	if f.typ().bits() < r.Type.bits() {
		r.Type = f.Type
	}
	r.Vector = v
	switch r.Type {
	case Float16:
		for i, x := range v {
			v[i] = vector.FromHalf(vector.Half(x))
		}
	case Int8:
		r.Scale = scaleOf(v)
		for i, x := range v {
			if v[i] = 0; r.Scale > 0 {
				v[i] = float32(math.RoundToEven(float64(x)/float64(r.Scale))) * r.Scale
			}
		}
	}
	return r
}

// maxCode is the largest code of an Int8.
const maxCode = 127

// smallest is the size below which a vector of Int8 counts as zero: a scale of it is still a normal
// number.
const smallest = 0x1p-110

const (
	// scales is how many scales are tried for a vector of Int8.
	scales = 64
	// scaleBlock is how many numbers are weighed together.
	scaleBlock = 64
	// toWhole is 1.5 · 2⁵²: a float64 that it is added to is rounded to a whole number.
	toWhole = 0x1.8p52
)

// scaleOf returns the scale of a vector of Int8. It is at least the vector's largest size divided by
// 127, and at most 1/32 more: of the scales between the one with the least error is taken, where errors
// weigh as much as the energy of the 64 numbers around them, as they do in an inner product. That
// takes a tenth or more off the error that the least scale has.
//
// A scale has 17 significant bits and a code 7, so that code·scale is exact in float32: every reader
// sees the same numbers.
func scaleOf(v []float32) float32 {
	var largest float64
	for _, x := range v {
		largest = max(largest, math.Abs(float64(x)))
	}
	if largest < smallest {
		return 0
	}
	var weights []float64
	for block := range slices.Chunk(v, scaleBlock) {
		var energy float64
		for _, x := range block {
			energy += float64(x) * float64(x)
		}
		weights = append(weights, energy)
	}
	var best float32
	least := math.Inf(1)
	for k := range scales {
		scale := scaleAbove(largest / maxCode * (1 + float64(k)/(32*scales)))
		inverse, e := 1/float64(scale), 0.0
		for b, weight := range weights {
			if weight < weights[0]/16 {
				continue
			}
			var sum float64
			for _, x := range v[b*scaleBlock : min((b+1)*scaleBlock, len(v))] {
				steps := float64(float64(x) * inverse)
				d := steps - (float64(steps+toWhole) - toWhole)
				sum += float64(d * d)
			}
			e += weight * sum
		}
		if e *= float64(scale) * float64(scale); e < least {
			best, least = scale, e
		}
	}
	return best
}

// scaleAbove rounds up to 17 significant bits.
func scaleAbove(x float64) float32 {
	const bits = 17
	fraction, exponent := math.Frexp(x)
	return float32(math.Ldexp(math.Ceil(fraction*(1<<bits)), exponent-bits))
}

// Codes returns the codes of the record's vector, which is an Int8: Vector[i] = codes[i] · Scale.
func (r Record) Codes() ([]int8, error) {
	codes := make([]int8, len(r.Vector))
	for i, x := range r.Vector {
		if x == 0 {
			continue
		}
		code := math.RoundToEven(float64(x) / float64(r.Scale))
		if !(code >= math.MinInt8 && code <= math.MaxInt8) {
			return nil, fmt.Errorf("embedding of %q: component %d is %g, which is no int8 with the scale %g",
				r.NodeID, i, x,
				r.Scale)
		}
		codes[i] = int8(code)
	}
	return codes, nil
}

// SetCodes sets the record's vector from codes of Int8 and their scale.
func (r *Record) SetCodes(codes []int8, scale float32) error {
	if !(scale >= 0) || scale > math.MaxFloat32/(maxCode+1) {
		return fmt.Errorf("the scale %g of an int8 embedding lies out of range", scale)
	}
	if r.Scale = 0; scale > 0 { // not −0
		r.Scale = scale
	}
	r.decode(codes)
	return nil
}

// decode sets Vector from codes and Scale.
func (r *Record) decode(codes []int8) {
	r.Type, r.Vector = Int8, make([]float32, len(codes))
	for i, c := range codes {
		r.Vector[i] = float32(c) * r.Scale
	}
}
