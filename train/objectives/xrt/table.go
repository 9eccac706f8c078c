package xrt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/encoders/bag"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
)

// Bag trains the encoder bag: a table of n-grams alone, by the options that measured best
// for it.
type Bag struct {
	Set
	// Features is Ψ of every node's text. Projection and Weights are the linear solution
	// (Rank×Dim, package linear) to start from.
	Features   bag.Features
	Projection train.Projection
	Weights    []float32
	Dim        int

	// The zero value of each of these stands for its default.

	// Name is the name of the stage that progress shows; "" means "bag".
	Name string

	// Epochs is how often training goes through the instances; 0 means often enough to see 300,000, but at least 5
	// times and at most 10.
	Epochs int
	// Batch is the number of instances per step; 0 means 256.
	Batch int
	// Rate is the highest learning rate of the table; 0 means 0.01.
	Rate float64
	// MaxRows bounds the table: the n-grams in most texts have vectors, the
	// others count for nothing; 0 means 65,536 (64 MiB at 256 dimensions).
	MaxRows int
	// Patience is how many epochs without a better validation score end the training; 0
	// means 3.
	Patience int
	Schedule Schedule
	// Links is the weight of the contrastive part (Options.Links).
	Links float64
	Seed  uint64
	// Key is a hash of an n-gram's name, by which it is drawn whether it takes part (bag.NetworkOptions).
	Key func(feature int32) uint64
	// Share, if not nil, returns the network that is trained in place of the table's, which divides its work.
	Share func(train.Sliced) train.Network
	// Workers is the number of goroutines, 0 for one per CPU. It does not
	// change the result.
	Workers int
}

// BagReport says how the training of a bag went.
type BagReport struct {
	Instances int `json:"instances"`
	HeldOut   int `json:"held_out"`
	// Rows is the number of n-grams that have a vector.
	Rows int `json:"rows"`
	// Level is D, the level whose training gave the embeddings; with the
	// joint schedule the finest.
	Level int `json:"level"`
	// Best is the epoch (from 1) whose weights were kept; 0 is the start.
	Best   int        `json:"best_epoch"`
	Epochs []BagEpoch `json:"epochs"`
	// Resumed is the step that training was resumed after, 0 if from the start.
	Resumed int64 `json:"resumed_step,omitempty"`
}

// BagEpoch is one pass over the instances.
type BagEpoch struct {
	// Levels is how many levels took part.
	Levels int `json:"levels"`
	// Loss is the mean training loss (not comparable between schedules).
	Loss float64 `json:"loss"`
	// HeldOutAUC is the validation score: how surely held-out instances are nearer to their
	// neighbours than to nodes drawn by degree; 0 when none are held out.
	HeldOutAUC float64 `json:"held_out_auc,omitempty"`
}

// Train trains a bag. progress counts instances; it may be nil.
func (b Bag) Train(ctx context.Context, hooks trainer.Hooks, progress ambient.Progress) (*bag.Model, *xmc.Matcher,
	BagReport, error) {
	fail := func(err error) (*bag.Model, *xmc.Matcher, BagReport, error) { return nil, nil, BagReport{}, err }
	if rows, _ := b.Features.Size(); rows != b.Neighbours.Rows {
		return fail(fmt.Errorf("bag: %d rows of features, %d of neighbours", rows, b.Neighbours.Rows))
	}
	if b.Weights == nil {
		return fail(errors.New("bag: a linear solution to start from is missing"))
	}
	table, err := bag.Start(b.Features, b.Projection, b.Weights, b.Dim, cmp.Or(b.MaxRows, 1<<16), b.Workers)
	if err != nil {
		return fail(err)
	}
	net, err := bag.NewNetwork(b.Features, table, bag.NetworkOptions{Key: b.Key, Workers: b.Workers})
	if err != nil {
		return fail(err)
	}
	var trained train.Network = net
	if b.Share != nil {
		trained = b.Share(net)
	}
	set := b.Set
	set.Stream = streamBagOrder
	r, err := Train(ctx, trained, set, Options{
		Name: cmp.Or(b.Name, "bag"), Schedule: b.Schedule, Epochs: float64(cmp.Or(b.Epochs, Passes(len(b.Instances)))),
		Batch: cmp.Or(b.Batch, 256),
		Rate:  cmp.Or(b.Rate, 0.01), HeadRate: 0.001, NoWarmup: true,
		Heads: xmc.Options{Scale: xmc.DefaultScale, Matched: 10},
		Start: LabelMeans, NoBias: true, Weights: OverSet, SumGradients: true,
		Links: b.Links, Patience: cmp.Or(b.Patience, 3), Seed: b.Seed, Workers: b.Workers,
	}, hooks, progress)
	if err != nil {
		return fail(fmt.Errorf("bag: %w", err))
	}
	report := b.report(r)
	report.Rows = len(table.Features())
	return table, r.Matcher, report, nil
}

const streamBagOrder = 3

// Passes is how often the training of a table goes through n instances by default: fewer passes lose MRR on graphs of
// 20,000 nodes, and none on those of 60,000 (docs/measurements/2026-11-28.md).
func Passes(n int) int { return min(10, max(5, int(math.Round(300_000/float64(n))))) }

// report returns the report of a bag in the words of its epochs.
func (b Bag) report(r *Result) BagReport {
	skipped := b.Tree.Levels() - len(r.Matcher.Weights) // first levels of a single cluster
	out := BagReport{
		Instances: len(b.Instances), HeldOut: len(b.HeldOut), Level: max(0, r.Report.Level-skipped),
		Resumed: r.Report.Resumed,
	}
	if r.Report.Level < 0 && b.Schedule == Joint {
		out.Level = len(r.Matcher.Weights) - 1 // the start is of all levels
	}
	for k, e := range r.Report.Epochs {
		score, _ := r.Report.ScoreAt(e.Step)
		out.Epochs = append(out.Epochs, BagEpoch{Levels: e.Level - skipped + 1, Loss: e.Loss, HeldOutAUC: score})
		if e.Step == r.Report.Step {
			out.Best = k + 1
		}
	}
	return out
}
