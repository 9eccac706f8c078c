package work

import (
	"fmt"

	"giantstream/internal/tasks"
)

// MissingError says that a task was asked for before one that it needs was done.
type MissingError struct{ Task tasks.Task }

func (e *MissingError) Error() string {
	return fmt.Sprintf("task %v is not done yet; do it first: "+
		"giantstream build stage %s --partition %d --generation %d", e.Task, e.Task.Stage, e.Task.Partition,
		e.Task.Generation)
}

// DamagedError says that an output of a task is missing or not what was stored. The task counts as not done any more.
type DamagedError struct {
	Task tasks.Task
	err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("an output of task %v is damaged; the task has to be done again, and then this one: %v", e.Task,
		e.err)
}

func (e *DamagedError) Unwrap() error { return e.err }
