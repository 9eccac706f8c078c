package rows

import "math"

// OrderedName is the name of the vector that says what a node is ordered with, as a generation embeds it. The pipeline
// states it; see Vectors.Ordered.
const OrderedName = "ordered"

const (
	// OrderedDim is the dimension of a row of what a node is ordered with.
	OrderedDim = 128
	// OrderedLength is how many numbers the vector has: the generation whose directions the row is of, and the row.
	OrderedLength = 1 + OrderedDim
)

// OrderedVector returns the numbers of the vector that says that a node has a row of bfloat16, nil for none, by the
// directions of a generation.
func OrderedVector(generation int64, row []uint16) []float32 {
	numbers := make([]float32, OrderedLength)
	numbers[0] = float32(generation)
	for k, v := range row {
		numbers[1+k] = math.Float32frombits(uint32(v) << 16)
	}
	return numbers
}

// Ordered returns the row that the vectors say what their node is ordered with, nil for none, and the generation
// whose directions it is of. Without such a vector it returns false.
func (r *Vectors) Ordered() (generation int64, row []uint16, ok bool) {
	for i, name := range r.Names {
		if name != OrderedName {
			continue
		}
		numbers := r.Numbers(i)
		if len(numbers) != OrderedLength {
			return 0, nil, false // of a release that has other rows
		}
		row, some := make([]uint16, OrderedDim), false
		for k, v := range numbers[1:] {
			row[k] = uint16(math.Float32bits(v) >> 16)
			some = some || row[k] != 0
		}
		if !some {
			row = nil
		}
		return int64(numbers[0]), row, true
	}
	return 0, nil, false
}
