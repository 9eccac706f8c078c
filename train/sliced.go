package train

// Sliced is a Network whose batches can be divided: the gradient of each slice is taken by itself, so that several
// processes can each work on some of the slices and add all of them in one order.
type Sliced interface {
	Network
	// ForwardSlices is Forward of slices: slice k ends before instances[ends[k]].
	ForwardSlices(instances []int32, seeds []uint64, ends []int, out []float32) error
	// BackwardSlice returns the gradient of slice k of the last ForwardSlices, given that of the loss with respect to
	// the slice's out. The network's sums stay as they are.
	BackwardSlice(k int, grad []float32) (Gradient, error)
	// SetGradient replaces the sums that Update moves the weights along.
	SetGradient(Gradient) error
	// Seamless says that Backward and Update have the same bits whether or not a batch is cut into slices.
	Seamless() bool
	// ReadGradient reads what Append wrote. The error is ErrGradient for anything else.
	ReadGradient(b []byte) (Gradient, error)
}

// Gradient is the gradient of the weights over one or more slices.
type Gradient interface {
	// Add adds the gradient of the slices that follow, by one addition a number.
	Add(next Gradient)
	// Append appends the gradient to b.
	Append(b []byte) []byte
}
