package xrt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/train"
	"giantstream/train/xmc"
)

// ErrEmpty: there is nothing to learn from.
var ErrEmpty = errors.New("the training set has no instances; does any node have a neighbour?")

// ErrDiverged: the loss is no number any more.
var ErrDiverged = errors.New("training diverged; lower the learning rate")

// Result is what Train leaves besides the network's weights.
type Result struct {
	Matcher *xmc.Matcher
	Report  Report
}

// trainer is one run of Train.
type trainer struct {
	net     Network
	o       Options
	hooks   Hooks
	problem *xmc.Problem
	// levels is the number of levels of the tree; the problem leaves out
	// first ones of a single cluster.
	levels    int
	instances int64
	plan      []int64 // steps per stage
	every     int64   // steps per point of the curve
	heads     *xmc.Heads
	progress  train.Progress
	reader    reader
	step      stepper
	batch     []Example

	at   place
	best best
}

// place is how far training has come.
type place struct {
	Step      int64 // steps taken
	Stage     int   // the level in training (CoarseToFine), 0 (Joint)
	StageStep int64 // steps of this stage taken
	Epoch     int
	Seen      int64   // examples of this epoch seen
	Bad       int     // judgments of this stage since its best
	Top       float64 // the stage's best score
	Judged    []Judgment
	Curve     []Point
	Loss      float64 // sum over the steps since the last point
}

// Train fine-tunes net on src. levels is the shape of the whole label tree,
// coarse to fine: Clusters and, but for the first, Parent. progress counts
// instances; it may be nil.
func Train(ctx context.Context, net Network, src Source, levels []xmc.Level, o Options, hooks Hooks, progress train.Progress) (*Result, error) {
	t, err := newTrainer(net, src, levels, o, hooks, train.OrDiscard(progress))
	if err != nil {
		return nil, err
	}
	defer t.close()
	var resumed int64
	if hooks.Resume != nil {
		if err := t.restore(hooks.Resume); err != nil {
			return nil, err
		}
		resumed = t.at.Step
	} else if err := t.judge(ctx); err != nil {
		return nil, err
	}
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	r, err := t.result()
	if err != nil {
		return nil, err
	}
	r.Report.Resumed = resumed
	return r, nil
}

func newTrainer(net Network, src Source, levels []xmc.Level, o Options, hooks Hooks, progress train.Progress) (*trainer, error) {
	instances := src.Instances()
	if instances < 1 {
		return nil, fmt.Errorf("xrt: %w", ErrEmpty)
	}
	o = o.withDefaults(instances)
	t := &trainer{
		net: net, o: o, hooks: hooks, levels: len(levels), instances: instances, progress: progress, reader: reader{src: src},
	}
	for len(levels) > 0 && levels[0].Clusters < 2 {
		levels = levels[1:]
	}
	if len(levels) == 0 {
		return nil, fmt.Errorf("xrt: %w", xmc.ErrNoLevels)
	}
	levels = slices.Clone(levels)
	levels[0].Parent = nil
	var err error
	if t.problem, err = xmc.FromLevels(levels); err != nil {
		return nil, err
	}
	stages := 1
	if o.Schedule == CoarseToFine {
		stages = len(levels)
	}
	if err := o.check(stages); err != nil {
		return nil, err
	}
	t.plan = o.plan(stages, t.instances)
	t.every = max(1, sum(t.plan)/curvePoints)
	t.heads = xmc.NewHeads(t.problem, net.Dim()+1, o.Batch, o.Heads)
	t.step = newStepper(t)
	t.at.Top, t.best.score = math.Inf(-1), math.Inf(-1)
	return t, nil
}

func (t *trainer) close() {
	t.reader.close()
	t.best.close()
}

// span is the levels in training.
func (t *trainer) span() xmc.Span {
	if t.o.Schedule == Joint {
		return xmc.Span{From: 0, To: len(t.problem.Levels)}
	}
	return xmc.Span{From: t.at.Stage, To: t.at.Stage + 1}
}

// level is the number of the finest level in training, in the whole tree.
func (t *trainer) level() int { return t.levels - len(t.problem.Levels) + t.span().To - 1 }

func (t *trainer) run(ctx context.Context) error {
	t.progress.Stage("xr-transformer", sum(t.plan)*int64(t.o.Batch))
	t.progress.Add(t.at.Step * int64(t.o.Batch))
	for ; t.at.Stage < len(t.plan); t.nextStage() {
		if t.at.StageStep == 0 {
			if err := t.startHeads(ctx); err != nil {
				return err
			}
		}
		t.reader.seek(ctx, t.at.Epoch, t.at.Seen)
		for t.at.StageStep < t.plan[t.at.Stage] && t.at.Bad < t.o.Patience {
			if err := t.advance(ctx); err != nil {
				return err
			}
		}
		if err := t.judge(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *trainer) nextStage() {
	t.point()
	t.at.Stage++
	t.at.StageStep, t.at.Bad, t.at.Top = 0, 0, math.Inf(-1)
}

// advance takes a step, or goes on to the next epoch where this one has
// ended.
func (t *trainer) advance(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("xrt: after step %d: %w", t.at.Step, err)
	}
	var err error
	if t.batch, err = t.reader.read(t.batch[:0], t.o.Batch); err != nil {
		return err
	}
	if len(t.batch) == 0 {
		return t.nextEpoch(ctx)
	}
	fraction := t.o.fraction(t.at.StageStep, t.plan[t.at.Stage])
	t.at.Step++
	t.at.StageStep++
	t.at.Seen += int64(len(t.batch))
	loss, err := t.step.take(t.batch, t.span(), fraction)
	if err != nil {
		return fmt.Errorf("xrt: step %d: %w", t.at.Step, err)
	}
	t.record(loss)
	t.progress.Add(int64(t.o.Batch))
	if t.hooks.Due != nil && t.hooks.Due(t.at.Step) {
		if err := t.hooks.Save(ctx, t.at.Step, (*state)(t)); err != nil {
			return fmt.Errorf("xrt: checkpoint after step %d: %w", t.at.Step, err)
		}
	}
	return nil
}

func (t *trainer) nextEpoch(ctx context.Context) error {
	if t.at.Seen == 0 {
		return fmt.Errorf("xrt: %w", ErrEmpty)
	}
	if err := t.judge(ctx); err != nil {
		return err
	}
	t.at.Epoch++
	t.at.Seen = 0
	t.reader.seek(ctx, t.at.Epoch, 0)
	return nil
}

// record adds a step's loss to the curve.
func (t *trainer) record(loss float64) {
	t.at.Loss += loss
	if t.sincePoint() >= t.every {
		t.point()
	}
}

// sincePoint is the number of steps since the last point of the curve.
func (t *trainer) sincePoint() int64 {
	if n := len(t.at.Curve); n > 0 {
		return t.at.Step - t.at.Curve[n-1].Step
	}
	return t.at.Step
}

func (t *trainer) point() {
	since := t.sincePoint()
	if since == 0 {
		return
	}
	p := Point{Step: t.at.Step, Level: t.level(), Loss: t.at.Loss / float64(since)}
	t.at.Curve, t.at.Loss = append(t.at.Curve, p), 0
	if t.hooks.Point != nil {
		t.hooks.Point(p, sum(t.plan))
	}
}

func sum(list []int64) int64 {
	var s int64
	for _, v := range list {
		s += v
	}
	return s
}
