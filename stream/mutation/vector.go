package mutation

import "giantstream/internal/vector"

// Vector is a list of numbers of fixed length that a model has made of a node, such as of its picture.
type Vector struct {
	Name      string
	Precision Precision
	// Data has the numbers one after the other, little-endian.
	Data string
}

// Precision says how a number of a vector is kept. Its value is the number's bytes.
type Precision uint8

// The precisions.
const (
	Float16 Precision = 2 // IEEE 754 binary16
	Float32 Precision = 4
)

// String is the name of a precision in the configuration.
func (p Precision) String() string {
	if p == Float16 {
		return "float16"
	}
	return "float32"
}

// Len is how many numbers the vector has.
func (v *Vector) Len() int { return len(v.Data) / int(v.Precision) }

// Numbers returns the numbers of the vector.
func (v *Vector) Numbers() []float32 { return vector.Numbers(v.Data, int(v.Precision)) }

// VectorBytes is the size of the numbers of some vectors.
func VectorBytes(vectors []Vector) (n int) {
	for i := range vectors {
		n += len(vectors[i].Data)
	}
	return n
}
