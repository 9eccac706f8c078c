package build

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"giantstream/internal/parallel"
	"giantstream/internal/tasks"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/build/behaviour"
	"giantstream/train/generation/build/embeddings"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/labels"
	"giantstream/train/generation/build/linkweights"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/training"
	"giantstream/train/generation/build/vectors"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
)

// Worker does the tasks of builds. It implements tasks.Work.
type Worker struct {
	work.Means

	mu     sync.Mutex
	builds map[int64]*work.Build
	// took is how long the stages of the newest plan took, which has a token.
	took  *work.Times
	token string
	// running tasks; idle runs while there is none.
	running int
	idle    *time.Timer
}

// forgetAfter is how long a worker without tasks keeps what it knows of a build, and its models.
const forgetAfter = time.Minute

// openBuild returns the build of a generation, nil for one that is complete. It looks for the plan each time: without
// one, the generation is complete or gone, and a late task must not write any more.
func (w *Worker) openBuild(ctx context.Context, g int64) (*work.Build, error) {
	plan, err := stages.LoadPlan(ctx, w.Store, g)
	none := errors.Is(err, stages.ErrNoPlan)
	if err != nil && !none {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.builds[g]; b != nil && b.Plan.Token == plan.Token {
		return b, nil
	}
	delete(w.builds, g)
	doc, lerr := generation.Load(ctx, w.Store, g)
	switch {
	case errors.Is(lerr, generation.ErrNone):
		return nil, fmt.Errorf("generation %d: %w", g, stages.ErrNoPlan)
	case lerr != nil:
		return nil, lerr
	case none && doc.Complete():
		return nil, nil
	case none:
		return nil, err
	}
	if w.took == nil || w.token != plan.Token {
		w.took, w.token = &work.Times{}, plan.Token
	}
	b := work.NewBuild(&w.Means, plan, doc, w.took)
	if w.builds == nil {
		w.builds = map[int64]*work.Build{}
	}
	w.builds[g] = b
	return b, nil
}

// Do does a task. A task of a generation that is complete has nothing to do. A panic of a stage is an error: what
// else the process does goes on.
func (w *Worker) Do(ctx context.Context, t tasks.Task) (err error) {
	b, err := w.openBuild(ctx, t.Generation)
	if err != nil || b == nil {
		return err
	}
	s, ok := b.Plan.Find(t.Stage)
	if !ok || t.Partition < 0 || t.Partition >= s.Tasks {
		return fmt.Errorf("%w: %v", stages.ErrNoTask, t)
	}
	b.KeepModels(s.Reads)
	defer w.noteTask()()
	defer func() {
		if v := recover(); v != nil {
			p, ok := v.(*parallel.Panic)
			if !ok {
				p = &parallel.Panic{Value: v, Stack: debug.Stack()}
			}
			err = fmt.Errorf("%w: %w", ErrPanic, p)
		}
	}()
	if err := explainDevice(b.Do(ctx, s, t, stageFunctions[t.Stage])); err != nil {
		return err
	}
	if t.Stage == stages.Finish {
		w.drop(t.Generation) // with its models, which the next build would find in its memory
	}
	return nil
}

// noteTask notes that a task begins, and returns what notes its end. A worker without tasks lets go of its builds after
// a while.
func (w *Worker) noteTask() (ended func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
	if w.idle != nil {
		w.idle.Stop()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.running--; w.running == 0 {
			w.idle = time.AfterFunc(forgetAfter, w.forgetAll)
		}
	}
}

func (w *Worker) forgetAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running > 0 {
		return // a task began as the time ran out
	}
	for _, b := range w.builds {
		b.KeepModels(nil)
	}
	clear(w.builds)
}

// Done says whether a task's outputs are complete.
func (w *Worker) Done(ctx context.Context, t tasks.Task) (bool, error) {
	b, err := w.openBuild(ctx, t.Generation)
	if err != nil || b == nil {
		return err == nil, err
	}
	if t.Stage == stages.Finish {
		return false, nil // there is a plan
	}
	return b.IsDone(ctx, t)
}

// stageFunctions are what the tasks of each stage do, in the order of stages.Plan.Stages.
var stageFunctions = map[string]func(context.Context, *work.Task) error{
	stages.Scatter:    graph.Scatter,
	stages.Number:     graph.Number,
	stages.Index:      graph.Index,
	stages.Orders:     graph.LinkOrders,
	stages.GoesWith:   graph.FindComplements,
	stages.Resolve:    graph.Resolve,
	stages.Link:       graph.LinkNodes,
	stages.Count:      vocabulary.Count,
	stages.Merge:      vocabulary.Merge,
	stages.Vectorizer: vocabulary.FitVectorizer,
	stages.Projection: vocabulary.FitProjection,
	stages.Vectorise:  vocabulary.Vectorise,
	stages.Behaviour:  behaviour.Fit,
	stages.Vectors:    vectors.Fit,
	stages.Relations:  linkweights.Weigh,
	stages.Spread:     labels.SpreadTexts,
	stages.PIFA:       labels.Aggregate,
	stages.Features:   labels.MakeFeatures,
	stages.Trunk:      labels.GrowTrunk,
	stages.Deal:       labels.DealRows,
	stages.Branch:     labels.DivideBranch,
	stages.Tree:       labels.MakeTree,
	stages.Mapping:    embeddings.MapParent,
	stages.Dataset:    training.WriteDataset,
	stages.Encoder:    training.TrainEncoder,
	stages.Encode:     embeddings.Encode,
	stages.Evaluate:   embeddings.Evaluate,
	stages.Fill:       embeddings.Fill,
	stages.Compare:    embeddings.CompareParent,
	stages.Finish:     finishGeneration,
}

// ErrPanic: a task ran into a fault of the program.
var ErrPanic = errors.New("the build has panicked, which is a fault of giantstream: report it with the stack below")

// drop forgets a build: the generation is read anew when it is asked for.
func (w *Worker) drop(g int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.builds[g]; b != nil {
		b.KeepModels(nil)
	}
	delete(w.builds, g)
}

// explainDevice adds to an error of a device what can be done about it.
func explainDevice(err error) error {
	if errors.Is(err, compute.ErrFailed) {
		return fmt.Errorf("%w. The next start goes on from what is done. If the device's memory was full, lower "+
			"train.bert.max_tokens or raise train.gpu_memory; else look after the device, or set train.device: cpu",
			err)
	}
	return err
}
