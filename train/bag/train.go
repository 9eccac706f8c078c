package bag

import (
	"context"
	"fmt"
	"math"
	"slices"

	"giantstream/train"
	"giantstream/train/internal/rng"
	"giantstream/train/xmc"
)

// Checkpoints connects training to wherever its state is kept. Both functions
// are called between steps, from the goroutine that called Train.
type Checkpoints struct {
	// Due says whether to save now, after the given step (from 1).
	Due func(step int64) bool
	// Save keeps the state. It must write s out before it returns.
	Save func(ctx context.Context, s *State) error
	// Resume is the state to continue from, nil to start afresh.
	Resume *State
}

// Result is a trained bag.
type Result struct {
	Model   *Model
	Matcher *xmc.Matcher
	Report  Report
}

// trainer is one run of Train.
type trainer struct {
	d       Data
	o       Options
	problem *xmc.Problem
	table   *table
	heads   *xmc.Heads
	// square is row-wise Adagrad's sum of the mean squared gradients.
	square []float32
	fit    []int32
	held   *heldOut
	// weight of each instance, by node; the mean over fit is 1.
	weight   []float32
	progress train.Progress
	steps    steps
	identity uint64 // fingerprint, 0 until computed

	at   place
	best best
}

// place is how far training has come.
type place struct {
	Step    int64 // steps taken
	Stage   int   // the level in training (CoarseToFine), 0 (Joint)
	Epoch   int   // within the stage
	Batch   int   // batches of this epoch done
	Bad     int   // epochs of this stage since its best score
	Top     float64
	Loss    float64 // sum over this epoch's batches
	History []Epoch
}

// best is the weights to return.
type best struct {
	score   float64
	epoch   int
	level   int
	vectors []float32
	heads   [][]float32
}

// Train fits a bag to d. Options and data must be those of the checkpoint
// when it resumes from one. progress may be nil.
func Train(ctx context.Context, d Data, o Options, c Checkpoints, progress train.Progress) (*Result, error) {
	o = o.withDefaults()
	if err := d.check(o); err != nil {
		return nil, err
	}
	t, err := newTrainer(d, o, train.OrDiscard(progress))
	if err != nil {
		return nil, err
	}
	var resumed int64
	if c.Resume != nil {
		if err := t.restore(c.Resume); err != nil {
			return nil, err
		}
		resumed = t.at.Step
	} else {
		t.start()
	}
	if err := t.run(ctx, c); err != nil {
		return nil, err
	}
	r := t.result()
	r.Report.Resumed = resumed
	return r, nil
}

func newTrainer(d Data, o Options, progress train.Progress) (*trainer, error) {
	problem, err := xmc.FromTree(d.Tree, d.Neighbours)
	if err != nil {
		return nil, err
	}
	t := &trainer{d: d, o: o, problem: problem, progress: progress, weight: make([]float32, d.Neighbours.Rows)}
	t.fit, t.held = split(d, o)
	if len(t.fit) == 0 {
		return nil, fmt.Errorf("bag: %w", xmc.ErrNoLevels)
	}
	_, cols := d.Features.Size()
	t.table = newTable(chooseFeatures(d.Features, o.MaxRows), cols, d.Dim)
	t.square = make([]float32, len(t.table.features))
	t.heads = xmc.NewHeads(problem, d.Dim, o.Batch, xmc.Options{})
	var sum float64
	for _, i := range t.fit {
		w := math.Sqrt(float64(len(d.Neighbours.Row(int(i)).Index)))
		t.weight[i] = float32(w)
		sum += w
	}
	for _, i := range t.fit {
		t.weight[i] *= float32(float64(len(t.fit)) / sum)
	}
	t.steps = newSteps(t)
	return t, nil
}

// start sets table and heads to where training begins.
func (t *trainer) start() {
	if t.o.Init == InitLinear {
		t.table.linearStart(t.d.Projection, t.d.Weights, t.o.Workers)
	} else {
		t.table.randomStart(t.o.Seed, t.o.Workers)
	}
	t.heads.Centroids(t.d.Tree, t.d.Labels)
	t.at.Top = math.Inf(-1)
	t.best.score = math.Inf(-1)
	t.keepIfBetter(t.held.auc(t.d, t.table, t.o.Workers))
}

// stages is how many times the learning rates start anew, epochs how many
// epochs each stage has at most.
func (t *trainer) stages() (stages, epochs int) {
	if t.o.Schedule == Joint {
		return 1, t.o.Epochs
	}
	stages = len(t.problem.Levels)
	return stages, max(1, t.o.Epochs/stages)
}

// span is the levels that a stage trains.
func (t *trainer) span() xmc.Span {
	if t.o.Schedule == Joint {
		return xmc.Span{From: 0, To: len(t.problem.Levels)}
	}
	return xmc.Span{From: t.at.Stage, To: t.at.Stage + 1}
}

func (t *trainer) run(ctx context.Context, c Checkpoints) error {
	stages, epochs := t.stages()
	batches := (len(t.fit) + t.o.Batch - 1) / t.o.Batch
	t.progress.Stage("bag", int64(stages*epochs*batches))
	t.progress.Add(t.at.Step)
	for ; t.at.Stage < stages; t.nextStage() {
		for t.at.Epoch < epochs && t.at.Bad < t.o.Patience {
			if err := t.epoch(ctx, c, epochs*batches); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *trainer) nextStage() {
	t.at.Stage++
	t.at.Epoch, t.at.Bad, t.at.Top = 0, 0, math.Inf(-1)
}

// epoch takes the rest of an epoch's steps; stageSteps is the number of steps
// over which the rates fall to zero.
func (t *trainer) epoch(ctx context.Context, c Checkpoints, stageSteps int) error {
	number := len(t.at.History)
	order := slices.Clone(t.fit)
	r := rng.New(t.o.Seed, streamOrder, uint64(number))
	r.Shuffle(order)
	batches := slices.Collect(slices.Chunk(order, t.o.Batch))
	stop := t.steps.prepare(batches[t.at.Batch:], number)
	defer stop()
	for t.at.Batch < len(batches) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("bag: after step %d: %w", t.at.Step, err)
		}
		done := t.at.Epoch*len(batches) + t.at.Batch
		t.at.Step++
		t.at.Batch++
		t.at.Loss += t.steps.take(t.span(), 1-float64(done)/float64(stageSteps))
		t.progress.Add(1)
		if t.at.Batch == len(batches) {
			t.endEpoch()
		}
		if c.Due != nil && c.Due(t.at.Step) {
			if err := c.Save(ctx, t.state()); err != nil {
				return fmt.Errorf("bag: checkpoint after step %d: %w", t.at.Step, err)
			}
		}
		if t.at.Batch == 0 {
			return nil
		}
	}
	return nil
}

// endEpoch judges the epoch on the held-out instances.
func (t *trainer) endEpoch() {
	score := t.held.auc(t.d, t.table, t.o.Workers)
	e := Epoch{Levels: t.span().To, Loss: t.at.Loss / float64(t.at.Batch)}
	if !math.IsNaN(score) {
		e.HeldOutAUC = score
	}
	t.at.History = append(t.at.History, e)
	t.at.Epoch++
	t.at.Batch, t.at.Loss = 0, 0
	t.at.Bad++
	if score > t.at.Top || math.IsNaN(score) {
		t.at.Top, t.at.Bad = score, 0
	}
	t.keepIfBetter(score)
}

// keepIfBetter copies the weights if they score best so far; without held-out
// instances the last ones are best.
func (t *trainer) keepIfBetter(score float64) {
	if score <= t.best.score {
		return
	}
	t.best.score, t.best.epoch, t.best.level = score, len(t.at.History), t.span().To-1
	t.best.vectors = append(t.best.vectors[:0], t.table.vectors...)
	t.best.heads = make([][]float32, len(t.heads.Weights))
	for l, w := range t.heads.Weights {
		t.best.heads[l] = slices.Clone(w)
	}
}

func (t *trainer) result() *Result {
	t.table.vectors = t.best.vectors
	matcher := &xmc.Matcher{Problem: t.problem, Dim: t.d.Dim, Weights: t.best.heads}
	return &Result{
		Model:   &Model{t.table},
		Matcher: matcher,
		Report: Report{
			Instances: len(t.fit), HeldOut: len(t.held.instances), Rows: len(t.table.features),
			Level: t.best.level, Best: t.best.epoch, Epochs: t.at.History,
			Levels: matcher.Evaluate(embedNodes(t.d, t.table, t.held.instances, t.o.Workers), t.held.instances),
		},
	}
}
