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

// Dot returns the product of two vectors, the first no longer than the second. It adds
// up in eight places, so that additions need not wait for each other.
func Dot(x, y []float32) float32 {
	var a, b, c, d, e, f, g, h float32
	for len(x) >= 8 && len(y) >= 8 {
		a += float32(x[0] * y[0])
		b += float32(x[1] * y[1])
		c += float32(x[2] * y[2])
		d += float32(x[3] * y[3])
		e += float32(x[4] * y[4])
		f += float32(x[5] * y[5])
		g += float32(x[6] * y[6])
		h += float32(x[7] * y[7])
		x, y = x[8:], y[8:]
	}
	y = y[:len(x)]
	for k, v := range x {
		a += float32(v * y[k])
	}
	return ((a + b) + (c + d)) + ((e + f) + (g + h))
}

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
func Add(x, sum []float32) {
	sum = sum[:len(x)]
	for j, v := range x {
		sum[j] += v
	}
}

// Sub takes x from sum, which is as long.
func Sub(x, sum []float32) {
	sum = sum[:len(x)]
	for j, v := range x {
		sum[j] -= v
	}
}
