package work

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/fit"
)

// Log is the commit log at a cut, as tasks read it: each shard on its own.
type Log interface {
	// Cut names the cut: the newest manifest included, per shard.
	Cut() map[int]int64
	// Size returns how much there is to read, and how it is divided.
	Size(ctx context.Context) (stages.Size, error)
	// Rows yields the committed rows of a split. Of several rows of a node, that of the highest Seq counts; all may
	// come, in any order.
	Rows(ctx context.Context, s stages.Split) iter.Seq2[generation.Row, error]
	// Orders yields the newest row of every order of a shard, deleted orders included.
	Orders(ctx context.Context, shard int) iter.Seq2[rows.Order, error]
	// Vectors yields the newest row of vectors of every node and input of a shard, empty ones included.
	Vectors(ctx context.Context, shard int) iter.Seq2[rows.Vectors, error]
	// Fingerprint returns a fingerprint of no nodes.
	Fingerprint() Fingerprint
}

// Fingerprint identifies a graph, whatever the order in which nodes are added. A node is added once.
type Fingerprint interface {
	Add(*rows.Row)
	Sum() string
	// Merge adds what another fingerprint has seen, given its Sum.
	Merge(sum string) error
}

// Means are what the tasks of a process work with.
type Means struct {
	Store sink.Store
	// Log returns the commit log at a cut, or for nil at the newest.
	Log func(ctx context.Context, cut map[int]int64) (Log, error)
	// Resources bound each task. Progress shows what a task is at that is the only one of its stage.
	fit.Resources
	// CheckpointEvery is the time between two checkpoints of the encoder's training, 0 for none.
	CheckpointEvery time.Duration
	// Patience is how long processes that train an encoder together wait for each other, 0 for 30 seconds.
	Patience time.Duration
}

// Build is a generation as tasks see it: its plan, its document as it began, and what its tasks have left so far.
type Build struct {
	*Means
	Plan stages.Plan
	Doc  *generation.Doc
	mu   sync.Mutex
	done map[tasks.Task]*Done
	took *Times
	// BlockBuffers are blocks that were read, as *[]byte: under a limit of memory, fresh ones cost more than reading
	// them.
	BlockBuffers sync.Pool
	models
}

// NewBuild returns the build of a generation by its plan and its unfinished document. It notes in took how long stages
// take.
func NewBuild(m *Means, p stages.Plan, doc *generation.Doc, took *Times) *Build {
	return &Build{Means: m, Plan: p, Doc: doc, took: took, done: map[tasks.Task]*Done{}}
}

// Do does a task with the function of its stage, and stores that it is done. The last task leaves no trace: it removes
// what the others have left. A task whose input is damaged makes the one that wrote it undone.
func (b *Build) Do(ctx context.Context, s stages.Stage, t tasks.Task, work func(context.Context, *Task) error) error {
	run := &Task{Build: b, Task: t, Outputs: map[string]Output{}, alone: s.Tasks == 1}
	b.began(t.Stage)
	defer b.ended(t.Stage)
	err := work(ctx, run)
	if damaged := new(DamagedError); errors.As(err, &damaged) {
		return errors.Join(err, b.forget(ctx, damaged.Task))
	}
	if t.Stage == stages.Finish {
		return err
	}
	if err == nil {
		err = run.finish(ctx)
	}
	// Without its lock the task is cancelled, and may have written for a build that has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
	defer cancel()
	return errors.Join(err, b.RemoveLate(ctx, t))
}

// lateTimeout bounds the removal of what a late task has written.
const lateTimeout = 30 * time.Second

// IsDone says whether a task's outputs are complete. It reads the store: another process may have found them damaged.
func (b *Build) IsDone(ctx context.Context, t tasks.Task) (bool, error) {
	b.mu.Lock()
	delete(b.done, t)
	b.mu.Unlock()
	_, err := b.load(ctx, t)
	if missing := new(MissingError); errors.As(err, &missing) {
		return false, nil
	}
	return err == nil, err
}
