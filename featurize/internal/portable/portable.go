// Package portable multiplies and adds up float32s with the same result on
// every machine, which neither Go's operators nor a BLAS promise:
//
//   - Go may fuse x*y + z into one operation that rounds once; it does so on arm64,
//     and for float64 on amd64 with GOAMD64=v3. So each product is converted before it
//     is added: "an explicit floating-point type conversion rounds to the precision
//     of the target type, preventing fusion" (The Go Programming Language Specification,
//     Floating-point operators). What needs no conversion is a product of two
//     float32s in float64: it is exact.
//   - What is added to what decides the sum. A BLAS chooses that by the processor,
//     gonum's assembly by the address of an operand, too. Here it is fixed.
//
// Label trees are made of these, so that a tree depends on features, settings and
// seed alone. .ci/run looks for fused operations in what is compiled.
package portable

// Dot returns the product of two vectors of the same length. It adds up in eight places,
// so that additions need not wait for each other.
func Dot(x, y []float32) float32 { return dot(x, y[:len(x)]) }

// SparseDot returns the product of a sparse vector with y. It adds up in four
// places.
func SparseDot(index []int32, value, y []float32) float32 {
	var a, b, c, d float32
	for len(index) >= 4 && len(value) >= 4 {
		a += float32(value[0] * y[index[0]])
		b += float32(value[1] * y[index[1]])
		c += float32(value[2] * y[index[2]])
		d += float32(value[3] * y[index[3]])
		index, value = index[4:], value[4:]
	}
	for k, j := range index {
		a += float32(value[k] * y[j])
	}
	return (a + b) + (c + d)
}

// Add adds x to sum, which is as long.
func Add(x, sum []float32) { add(x, sum[:len(x)]) }

// Sub takes x from sum, which is as long.
func Sub(x, sum []float32) { sub(x, sum[:len(x)]) }
