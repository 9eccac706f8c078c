package nearest

import (
	"math"
)

// lane is how many codes the kernels take at a time. Vectors are padded to a multiple with zeros.
const lane = 16

// padded returns how many codes a vector of dim numbers takes.
func padded(dim int) int { return (dim + lane - 1) / lane * lane }

// encode writes the codes of a vector, and returns their scale. fine takes what is left of each number, in sixteenths
// of a step from −8 to 7, two a byte; nil to leave it out.
func encode(codes []int8, fine []byte, v []float32) (scale float32) {
	top := largest(v)
	clear(codes)
	clear(fine)
	if top == 0 {
		return 0
	}
	inverse := 127 / float64(top)
	for i, x := range v {
		steps := float64(x) * inverse
		codes[i] = int8(math.RoundToEven(steps))
		if fine != nil {
			rest := min(math.RoundToEven(16*(steps-float64(codes[i]))), 7)
			fine[i/2] |= byte(int8(rest)) & 15 << (4 * (i % 2))
		}
	}
	return top / 127
}

// fineAt returns what is left of number i, in sixteenths of a step.
func fineAt(fine []byte, i int) int8 {
	if i%2 == 0 {
		return int8(fine[i/2]<<4) >> 4
	}
	return int8(fine[i/2]) >> 4
}

// fineProduct returns the product of a query with what is left of a vector, in sixteenths.
func fineProduct(query []int16, fine []byte) (sum int32) {
	for i, b := range fine {
		sum += int32(query[2*i])*int32(int8(b<<4)>>4) + int32(query[2*i+1])*int32(int8(b)>>4)
	}
	return sum
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
