package train

import (
	"errors"
	"io"
)

// ErrDiverged: the loss or a gradient is no finite number any more.
var ErrDiverged = errors.New("training diverged")

// ErrGradient: bytes are no gradient of this network.
var ErrGradient = errors.New("these bytes are no gradient of the network")

// Network is an encoder in training. Instances are nodes, by position in the
// Graph: a network reads their features or tokens from where it keeps them, so that no text
// is vectorized or tokenized once per epoch. It is used from one goroutine.
type Network interface {
	// Dim is the length of a pooled vector.
	Dim() int
	// MaxBatch is how many instances one Forward should take at most, which bounds the
	// activations that the network keeps; 0 means any number.
	MaxBatch() int
	// Forward writes the pooled vector of instances[i], not normalized, to
	// out[i*Dim() : (i+1)*Dim()], and keeps what Backward needs. An instance's
	// vector must not depend on the instances beside it. A network may drop part of
	// an instance or of its units, as a function of seeds[i]; with nil seeds it
	// drops nothing.
	Forward(instances []int32, seeds []uint64, out []float32) error
	// Backward takes the gradient of the loss with respect to the last
	// Forward's out and adds the gradients of the weights to their sums.
	Backward(grad []float32) error
	// Update moves the weights by one step of the optimizer at the given
	// rate along the sums, clears them and returns the gradient's length.
	Update(rate float64) (norm float64, err error)
	// WriteState and ReadState carry weights and optimizer, all that later
	// steps depend on. ReadState reads no further than WriteState wrote, or
	// to the end of r.
	WriteState(w io.Writer) error
	ReadState(r io.Reader) error
}
