package wide

import (
	"context"
	"fmt"

	"giantstream/train"
	"giantstream/train/bag"
	"giantstream/train/xmc"
	"giantstream/train/xrt"
)

// trainedLength is how long the table's part of h is on average once it has been
// trained alone, where the encoder's part is 1 long: it knows the links, the encoder
// does not yet (docs/MEASUREMENTS.md).
const trainedLength = 2

// Task is what a table learns before it is put beside a network.
type Task struct {
	// Vectorizer names the n-grams, and Features is Ψ of the texts.
	Vectorizer train.Vectorizer
	Features   bag.Features
	// Source and Levels are the training set and the shape of its label tree, as
	// those of xrt.Train.
	Source xrt.Source
	Levels []xmc.Level
	Seed   uint64
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

// Train trains a table alone on the neighbourhoods, up to ten epochs, and scales it for
// its place beside a network. hooks and progress are those of xrt.Train; a run that
// resumes needs a table of the same n-grams, whose vectors are in the state.
func (t Task) Train(ctx context.Context, table *bag.Model, hooks xrt.Hooks, progress train.Progress) (xrt.Report, error) {
	net, err := bag.NewNetwork(t.Vectorizer, table, bag.NetworkOptions{Workers: t.Workers})
	if err != nil {
		return xrt.Report{}, err
	}
	o := xrt.Options{Epochs: 10, Patience: 3, Rate: 0.01, Seed: t.Seed, Workers: t.Workers}
	Suit(&o)
	r, err := xrt.Train(ctx, net, t.Source, t.Levels, o, hooks, ngrams{train.OrDiscard(progress)})
	if err != nil {
		return xrt.Report{}, fmt.Errorf("n-grams: %w", err)
	}
	scale(table, t.Features, trainedLength, t.Workers)
	return r.Report, nil
}

// ngrams says of a progress whose it is.
type ngrams struct{ train.Progress }

func (n ngrams) Stage(_ string, total int64) { n.Progress.Stage("n-grams", total) }
