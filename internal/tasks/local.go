package tasks

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
)

// Local does tasks on goroutines of this process.
type Local struct {
	Workers int // 0: one per core
}

// Run does the tasks that are not done yet, Workers at a time. After the first failure it begins no further task,
// cancels those that run and returns that failure.
func (l Local) Run(ctx context.Context, tasks []Task, work Work) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Task)
	var group sync.WaitGroup
	for range min(cmp.Or(l.Workers, runtime.GOMAXPROCS(0)), len(tasks)) {
		group.Go(func() {
			for t := range next {
				if err := do(ctx, t, work); err != nil {
					cancel(fmt.Errorf("task %v: %w", t, err))
				}
			}
		})
	}
send:
	for _, t := range tasks {
		select {
		case next <- t:
		case <-ctx.Done():
			break send
		}
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

func do(ctx context.Context, t Task, work Work) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	done, err := work.Done(ctx, t)
	if err != nil || done {
		return err
	}
	return work.Do(ctx, t)
}
