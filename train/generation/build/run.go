package build

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// damages is how often Run does outputs again that were damaged.
const damages = 10

// Build makes the next generation in this process, or goes on with the unfinished one, up to a stage: Finish for all of
// it. It returns the document as it is then.
func (w *Worker) Build(ctx context.Context, r Request, until string) (*generation.Doc, error) {
	plan, err := w.Begin(ctx, r)
	if err != nil {
		return nil, err
	}
	watch := &Watch{Work: w, Progress: w.Progress}
	return w.Run(ctx, plan, tasks.Local{Workers: max(1, plan.AtATime)}, watch, watch.Stage, until)
}

// Run has the tasks of a generation done, stage by stage, up to the given stage: Finish for all. A run that was
// interrupted goes on where it stopped. watch, if not nil, is called when a stage begins.
func (w *Worker) Run(ctx context.Context, plan stages.Plan, engine tasks.Engine, worker tasks.Work,
	watch func(s stages.Stage),
	until string) (*generation.Doc, error) {
	if _, ok := plan.Find(until); !ok {
		return nil, fmt.Errorf("%w: %s", stages.ErrNoTask, until)
	}
	for attempt := 1; ; attempt++ {
		err := w.stages(ctx, plan, engine, worker, watch, until)
		if again := attempt < damages && damage(err); again {
			// The task does not count as done any more.
			w.Resources.Log.Warn("an output of a task is damaged or gone: the task is done again", "error", err)
			continue
		}
		if errors.Is(err, generation.ErrTooFew) {
			// Resumed on this cut the build would fail for ever.
			return nil, errors.Join(err, w.Discard(ctx, plan.Generation))
		}
		if err != nil {
			return nil, fmt.Errorf("generation %d: %w", plan.Generation, err)
		}
		if until != stages.Finish {
			return w.describe(ctx, plan)
		}
		return generation.Load(ctx, w.Store, plan.Generation)
	}
}

func (w *Worker) stages(ctx context.Context, plan stages.Plan, engine tasks.Engine, worker tasks.Work,
	watch func(stages.Stage),
	until string) error {
	pending, err := w.pending(ctx, plan, until)
	if err != nil {
		return err
	}
	last := plan.LastReads()
	for _, s := range plan.Stages() {
		if !pending[s.Name] {
			continue
		}
		if watch != nil {
			watch(s)
		}
		if err := engine.Run(ctx, plan.TasksOf(s), worker); err != nil {
			return err
		}
		for _, read := range last[s.Name] {
			w.drop(plan.Generation)
			if err := work.RemoveOutputs(ctx, w.Store, plan.Generation, read); err != nil {
				w.Resources.Log.Warn("what a stage has left is not removed; the last task removes it", "stage", read,
					"error", err)
			}
		}
	}
	return nil
}

// pending returns the stages with tasks to do: those that are not done, and that the given one needs or another stage
// that is pending.
func (w *Worker) pending(ctx context.Context, plan stages.Plan, until string) (map[string]bool, error) {
	needed, pending := map[string]bool{until: true}, map[string]bool{}
	for _, s := range slices.Backward(plan.Stages()) {
		if !needed[s.Name] {
			continue
		}
		for _, t := range plan.TasksOf(s) {
			done, err := w.Done(ctx, t)
			if err != nil {
				return nil, fmt.Errorf("task %v: %w", t, err)
			}
			if !done {
				pending[s.Name] = true
				break
			}
		}
		for _, read := range s.Reads {
			needed[read] = needed[read] || pending[s.Name]
		}
	}
	return pending, nil
}

// damage says whether a stage failed for what an earlier one should have left.
func damage(err error) bool {
	return errors.As(err, new(*work.DamagedError)) || errors.As(err, new(*work.MissingError))
}

// Discard removes an unfinished generation with all that its tasks have left.
func (w *Worker) Discard(ctx context.Context, g int64) error {
	doc, err := generation.Load(ctx, w.Store, g)
	if errors.Is(err, generation.ErrNone) || errors.Is(err, sink.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	w.drop(g)
	return generation.Discard(ctx, w.Store, doc)
}
