package trainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"giantstream/internal/ambient"
	"giantstream/train"
	"giantstream/train/numeric"
)

// ErrEmpty: there is nothing to learn from.
var ErrEmpty = errors.New("the training set has no instances; does any node have a neighbour?")

// trainer is one run of Train.
type trainer struct {
	net       train.Network
	objective Objective
	instances []int32
	o         Options
	hooks     Hooks
	progress  ambient.Progress
	plan      []int64 // steps per stage
	every     int64   // steps per point of the curve
	order     []int32 // of the instances in this epoch

	at   Place
	best best
}

// Place is how far training has come.
type Place struct {
	Step      int64 // steps taken, counting the one under way
	Stage     int
	StageStep int64 // steps of this stage taken, counting the one under way
	Epoch     int
	Seen      int // instances of this epoch seen before the step under way

	epochsWithoutBest int     // of this stage
	top               float64 // the stage's best score
	loss              float64 // sum over the steps since the last point
	epochLoss         float64 // sum over this epoch's steps
	epochSteps        int64
	curve             []Point
	scores            []Score
	epochs            []Epoch
}

// Train trains net and the objective's own weights, from the beginning or from where
// hooks.Resume was saved. Afterwards both have their best weights. progress counts
// instances; it may be nil.
func Train(ctx context.Context, net train.Network, objective Objective, instances []int32, o Options,
	hooks Hooks, progress ambient.Progress) (*Report, error) {
	t, err := newTrainer(net, objective, instances, o, hooks, ambient.OrDiscard(progress))
	if err != nil {
		return nil, err
	}
	defer t.best.close()
	var resumed int64
	if hooks.Resume != nil {
		if err := t.restore(hooks.Resume); err != nil {
			return nil, err
		}
		resumed = t.at.Step
	} else if err := t.validate(ctx); err != nil {
		return nil, err
	}
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	r, err := t.result()
	if err != nil {
		return nil, err
	}
	r.Resumed = resumed
	return r, nil
}

func newTrainer(net train.Network, objective Objective, instances []int32, o Options,
	hooks Hooks, progress ambient.Progress) (*trainer, error) {
	if len(instances) == 0 {
		return nil, fmt.Errorf("train: %w", ErrEmpty)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if last := slices.Max(instances); int(last) >= len(o.Keys) {
		return nil, fmt.Errorf("train: instance %d has no key; there are %d", last, len(o.Keys))
	}
	t := &trainer{
		net: net, objective: objective, instances: instances, o: o, hooks: hooks, progress: progress,
		plan: o.plan(len(instances)),
	}
	t.every = max(1, sum(t.plan)/curvePoints)
	t.at.top, t.best.score = math.Inf(-1), math.Inf(-1)
	return t, nil
}

func (t *trainer) run(ctx context.Context) error {
	t.progress.Stage(t.objective.Name(), sum(t.plan)*int64(t.o.Batch))
	t.progress.Add(t.at.Step * int64(t.o.Batch))
	t.order = t.shuffled(t.at.Epoch)
	for ; t.at.Stage < len(t.plan); t.nextStage() {
		if t.at.StageStep == 0 {
			if err := t.objective.Begin(ctx, t.at.Stage, t.upcoming); err != nil {
				return err
			}
		}
		for t.at.StageStep < t.plan[t.at.Stage] && t.at.epochsWithoutBest < t.o.Patience {
			if err := t.step(ctx); err != nil {
				return err
			}
		}
		if err := t.validate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *trainer) nextStage() {
	t.point()
	t.at.Stage++
	t.at.StageStep, t.at.epochsWithoutBest, t.at.top = 0, 0, math.Inf(-1)
}

// shuffled returns the order of an epoch.
func (t *trainer) shuffled(epoch int) []int32 {
	type drawn struct {
		hash     uint64
		instance int32
	}
	all := make([]drawn, len(t.instances))
	for k, i := range t.instances {
		r := numeric.NewRand(t.o.Seed, t.o.Stream, uint64(epoch), t.o.Keys[i])
		all[k] = drawn{r.Uint64(), i}
	}
	slices.SortFunc(all, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.instance, b.instance))
	})
	order := make([]int32, len(all))
	for k, d := range all {
		order[k] = d.instance
	}
	return order
}

// upcoming returns the next instances of this epoch and, where these are fewer than limit,
// the first ones of the next.
func (t *trainer) upcoming(limit int) []int32 {
	rest := t.order[t.at.Seen:]
	if len(rest) < limit {
		rest = slices.Concat(rest, t.shuffled(t.at.Epoch+1))
	}
	return rest[:min(limit, len(rest))]
}

// step takes a step, and ends the epoch if it was the last one.
func (t *trainer) step(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("train: after step %d: %w", t.at.Step, err)
	}
	batch := t.order[t.at.Seen:min(t.at.Seen+t.o.Batch, len(t.order))]
	fraction := t.o.fraction(t.at.StageStep, t.plan[t.at.Stage])
	t.at.Step++
	t.at.StageStep++
	loss, err := t.objective.Step(t.at, batch)
	if err == nil && (math.IsNaN(loss) || math.IsInf(loss, 0)) {
		err = train.ErrDiverged
	}
	if err == nil {
		_, err = t.net.Update(t.o.Rate * fraction)
	}
	if err != nil {
		return fmt.Errorf("train: step %d: %w", t.at.Step, err)
	}
	t.objective.Update(t.at, len(batch), fraction)
	t.at.Seen += len(batch)
	t.record(loss)
	t.progress.Add(int64(t.o.Batch))
	if t.at.Seen == len(t.order) {
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	if t.hooks.Due != nil && t.hooks.Due(t.at.Step) {
		if err := t.hooks.Save(ctx, t.at.Step, (*state)(t)); err != nil {
			return fmt.Errorf("train: checkpoint after step %d: %w", t.at.Step, err)
		}
	}
	return nil
}

func (t *trainer) endEpoch(ctx context.Context) error {
	t.at.epochs = append(t.at.epochs, Epoch{
		Step: t.at.Step, Level: t.objective.Level(t.at.Stage), Loss: t.at.epochLoss / float64(t.at.epochSteps),
	})
	t.at.Epoch++
	t.at.Seen, t.at.epochLoss, t.at.epochSteps = 0, 0, 0
	t.order = t.shuffled(t.at.Epoch)
	return t.validate(ctx)
}

// record adds a step's loss to the curve.
func (t *trainer) record(loss float64) {
	t.at.loss += loss
	t.at.epochLoss += loss
	t.at.epochSteps++
	if t.sincePoint() >= t.every {
		t.point()
	}
}

// sincePoint is the number of steps since the last point of the curve.
func (t *trainer) sincePoint() int64 {
	if n := len(t.at.curve); n > 0 {
		return t.at.Step - t.at.curve[n-1].Step
	}
	return t.at.Step
}

func (t *trainer) point() {
	since := t.sincePoint()
	if since == 0 {
		return
	}
	p := Point{Step: t.at.Step, Level: t.objective.Level(t.at.Stage), Loss: t.at.loss / float64(since)}
	t.at.curve, t.at.loss = append(t.at.curve, p), 0
	if t.hooks.Point != nil {
		t.hooks.Point(p, sum(t.plan))
	}
}

// embed implements Embed.
func (t *trainer) embed(instances []int32, out []float32) error {
	d := t.net.Dim()
	if len(out) != len(instances)*d {
		return fmt.Errorf("train: %d numbers for %d embeddings of dimension %d", len(out), len(instances), d)
	}
	for part, lo := range Parts(instances, t.net.MaxBatch()) {
		z := out[lo*d : (lo+len(part))*d]
		if err := t.net.Forward(part, nil, z); err != nil {
			return err
		}
		for i := range part {
			numeric.Normalize(z[i*d : (i+1)*d])
		}
	}
	return nil
}

// Parts yields the instances in parts of at most limit, 0 for no limit, and the place of
// each part's first.
func Parts(instances []int32, limit int) func(yield func(part []int32, first int) bool) {
	return func(yield func([]int32, int) bool) {
		if limit == 0 {
			limit = max(1, len(instances))
		}
		for lo := 0; lo < len(instances); lo += limit {
			if !yield(instances[lo:min(lo+limit, len(instances))], lo) {
				return
			}
		}
	}
}

func sum(list []int64) int64 {
	var s int64
	for _, v := range list {
		s += v
	}
	return s
}
