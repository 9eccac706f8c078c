package tasks

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Task is one piece of a stage of a generation's build.
type Task struct {
	Generation int64
	Stage      string
	Partition  int
}

// String returns the task as "generation/stage/partition", for example 7/vectorise/12.
func (t Task) String() string { return fmt.Sprintf("%d/%s/%d", t.Generation, t.Stage, t.Partition) }

// ParseTask reads what String wrote.
func ParseTask(s string) (Task, error) {
	fail := func() (Task, error) {
		return Task{}, fmt.Errorf("%q is no task: write generation/stage/partition, such as 7/vectorise/12", s)
	}
	generation, rest, _ := strings.Cut(s, "/")
	stage, partition, _ := strings.Cut(rest, "/")
	g, err := strconv.ParseInt(generation, 10, 64)
	if err != nil || g < 1 || stage == "" {
		return fail()
	}
	p, err := strconv.Atoi(partition)
	if err != nil || p < 0 {
		return fail()
	}
	t := Task{Generation: g, Stage: stage, Partition: p}
	if t.String() != s {
		return fail()
	}
	return t, nil
}

// Work does tasks. Both methods are safe for concurrent use.
type Work interface {
	// Do does a task: a pure function from named objects to named objects, created whole or not at all, so that
	// doing it twice, late, or at the same time elsewhere is harmless.
	Do(context.Context, Task) error
	// Done says whether the task's outputs are complete.
	Done(context.Context, Task) (bool, error)
}

// Engine has the tasks of one stage done, in any order, each at least once. Run returns when all are done, or with
// the error of one that failed for good.
type Engine interface {
	Run(ctx context.Context, tasks []Task, work Work) error
}
