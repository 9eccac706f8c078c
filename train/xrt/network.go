package xrt

import (
	"context"
	"io"
	"iter"
)

// Network is a text encoder in training. It is used from one goroutine.
type Network interface {
	// Dim is the length of a pooled vector.
	Dim() int
	// Forward writes the pooled vector of texts[i], not normalised, to
	// out[i*Dim() : (i+1)*Dim()], and keeps what Backward needs. A text's
	// vector must not depend on the texts beside it. A network may drop some of
	// texts[i] or of its units, which is then a function of seeds[i]; with
	// seeds of nil it drops nothing.
	Forward(texts []string, seeds []uint64, out []float32) error
	// Backward takes the gradient of the loss with respect to the last
	// Forward's out and adds the gradients of the weights to their sums.
	Backward(grad []float32) error
	// Update moves the weights by one step of the optimiser at the given
	// rate along the sums, clears these and returns the gradient's length.
	Update(rate float64) (norm float64, err error)
	// WriteState and ReadState carry weights and optimiser, all that later
	// steps depend on. ReadState reads no further than WriteState wrote, or
	// to the end of r.
	WriteState(w io.Writer) error
	ReadState(r io.Reader) error
}

// Example is a training instance: a text, and per level of the tree from
// coarse to fine the clusters that hold its labels, ascending, and how many
// each holds (sink/rows: targets, target_counts).
type Example struct {
	Text            string
	Targets, Counts [][]int32
}

// Source is the training set.
type Source interface {
	// Instances is the number of examples in an epoch.
	Instances() int64
	// Epoch yields the examples of an epoch (from 0), in an order that is a
	// function of the epoch alone, but for the first skip of them. It ends
	// at the first error.
	Epoch(ctx context.Context, epoch int, skip int64) iter.Seq2[Example, error]
}

// Hooks connect a run to its surroundings. All are optional and called from
// the goroutine that called Train.
type Hooks struct {
	// Judge scores the present weights on what was held out, higher is
	// better. embed writes the embedding (of length 1) of texts[i] to
	// out[i*dim : (i+1)*dim]. It must depend on the weights alone.
	Judge func(ctx context.Context, embed func(texts []string, out []float32) error) (float64, error)
	// Due says whether to save the state after a step (counted from 1) of
	// the run, and Save does so: it must have written state out when it returns.
	Due  func(step int64) bool
	Save func(ctx context.Context, step int64, state io.WriterTo) error
	// Resume is a saved state to continue from. If it cannot be read or
	// belongs to another run, Train fails and the network is of no use any more.
	Resume io.Reader
	// Point is told every new point of the loss curve, and of how many steps the
	// run is, unless stages end early.
	Point func(p Point, steps int64)
}
