package nearest

import (
	"math"
)

// lane is how many codes the kernels take at a time. Vectors are padded to a multiple with zeros.
const lane = 16

// padded returns how many codes a vector of dim numbers takes.
func padded(dim int) int { return (dim + lane - 1) / lane * lane }

// encode writes the codes of a vector, and returns their scale.
func encode(codes []int8, v []float32) (scale float32) {
	top := largest(v)
	if top == 0 {
		clear(codes)
		return 0
	}
	inverse := 127 / float64(top)
	for i, x := range v {
		codes[i] = int8(math.RoundToEven(float64(x) * inverse))
	}
	clear(codes[len(v):])
	return top / 127
}

// round writes a query as whole numbers, and returns their scale. They are as large as 16 bits and the sum of a
// product with codes, in 32 bits, allow.
func round(query []int16, v []float32) (scale float32) {
	clear(query)
	top := largest(v)
	if top == 0 {
		return 0
	}
	most := min(math.MaxInt16, math.MaxInt32/(127*len(query)))
	inverse := float64(most) / float64(top)
	for i, x := range v {
		query[i] = int16(math.RoundToEven(float64(x) * inverse))
	}
	return top / float32(most)
}

func largest(v []float32) (top float32) {
	for _, x := range v {
		top = max(top, float32(math.Abs(float64(x))))
	}
	return top
}

// plainProducts sets out[r] to the product of the query with row r of codes.
func plainProducts(out []int32, query []int16, codes []int8) {
	dim := len(query)
	for r := range out {
		var sum int32
		for i, c := range codes[r*dim : (r+1)*dim] {
			sum += int32(query[i]) * int32(c)
		}
		out[r] = sum
	}
}
