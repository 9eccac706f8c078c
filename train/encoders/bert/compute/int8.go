package compute

// Quantizer is a Backend that can also multiply by matrices of eight-bit integers.
type Quantizer interface {
	Backend
	// Int8 returns a backend on the same buffers for the forward pass of an encoder.
	Int8() Int8
}

// Int8 is a Backend whose Linear multiplies by matrices of eight-bit integers. All between the products
// stays in float32, but is computed to the accuracy of such products, not to that of the Backend it
// was made from. A row's result does not depend on the other rows, to the last bit, here either.
type Int8 interface {
	Backend
	// Quantize returns l with a matrix of eight-bit integers, for this backend's Linear alone. sample has
	// rows like those that l will take. They tell which numbers of a row get large; these are multiplied in
	// sixteen bits, and more of them where fine is set. l stays as it is.
	Quantize(l *Linear, sample []float32, fine bool) (*Linear, error)
}
