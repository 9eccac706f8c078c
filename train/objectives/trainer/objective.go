package trainer

import (
	"context"
	"io"
)

// Objective is what a network learns. It drives the network through the steps that Train
// tells it to take, and may have weights of its own, such as the heads of a classifier. It is
// used from one goroutine.
type Objective interface {
	// Name is the name of the stage that progress shows.
	Name() string
	// Level is the number of the tree's level that a stage trains last, for reports.
	Level(stage int) int
	// Begin prepares a stage. upcoming returns the instances that training will see
	// next, at most limit.
	Begin(ctx context.Context, stage int, upcoming func(limit int) []int32) error
	// Step runs a batch forwards and backwards through the network and returns the mean
	// loss. It moves no weights.
	Step(at Place, batch []int32) (loss float64, err error)
	// Update moves the objective's own weights along the gradient of the last Step. batch is the
	// number of instances of that Step, fraction the share of the highest learning rate.
	Update(at Place, batch int, fraction float64)
	// Weights returns the objective's own weights, from which the trainer copies the best ones.
	// Moments returns the moments of their optimizer. Restoring a checkpoint writes into both.
	Weights() [][]float32
	Moments() [][]float32
	// Describe writes options and data, as far as they change the result: a checkpoint
	// is good for a run of the same description only. Each value is named.
	Describe(w io.Writer)
}

// Embed writes the embedding (of length 1) of instances[i] under the present weights to
// out[i*dim : (i+1)*dim].
type Embed func(instances []int32, out []float32) error

// Validate scores the present weights on what was held out; higher is better. It must
// depend on the weights alone.
type Validate func(ctx context.Context, embed Embed) (float64, error)

// Hooks connect a run to its surroundings. All are optional and called from
// the goroutine that called Train.
type Hooks struct {
	Validate Validate
	// Due says whether to save the state after a step (counted from 1) of
	// the run, and Save does so: it must have written state out when it returns.
	Due  func(step int64) bool
	Save func(ctx context.Context, step int64, state io.WriterTo) error
	// Resume is a saved state to continue from. If it cannot be read or
	// belongs to another run, Train fails and the network must not be used any more.
	Resume io.Reader
	// Point receives every new point of the loss curve, and the number of steps of the
	// run, unless stages end early.
	Point func(p Point, steps int64)
}
