package service

import (
	"context"

	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/tasks"
	"giantstream/train/generation"
	"giantstream/train/generation/staged"
)

// doTasks does the tasks of staged builds that a coordinator publishes ('giantstream build run --engine kafka').
func (s *Service) doTasks(ctx context.Context) error {
	w := &taskqueue.Worker{Queue: wiring.TaskQueue(s.cfg, s.client, s.log), Name: writerName(),
		Generation: func(ctx context.Context) (int64, error) {
			unfinished, g, err := generation.Next(ctx, s.store)
			if err != nil || unfinished == nil {
				return 0, err // no generation has that number: every task is dropped
			}
			return g, nil
		}}
	return w.Run(ctx, buildTasks{s})
}

// buildTasks does each task from what is in the store at that moment: a process with role build outlives generations,
// and one that was discarded may have left its number to another.
type buildTasks struct{ s *Service }

func (b buildTasks) worker() *staged.Worker {
	s := b.s
	return &staged.Worker{Store: s.store, Resources: wiring.ResourcesOf(s.cfg, s.device, s.progress, s.log),
		Log: func(ctx context.Context, cut map[int]int64) (staged.Log, error) {
			at, err := SourceAt(ctx, s.store, s.id.Shards, cut)
			if err != nil {
				return nil, err
			}
			return at.Log(), nil
		}}
}

// Do implements tasks.Work.
func (b buildTasks) Do(ctx context.Context, t tasks.Task) error { return b.worker().Do(ctx, t) }

// Done implements tasks.Work.
func (b buildTasks) Done(ctx context.Context, t tasks.Task) (bool, error) {
	return b.worker().Done(ctx, t)
}
