package service

import (
	"context"

	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/tasks"
	"giantstream/sink"
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
	return w.Run(ctx, s.taskWorker(s.store))
}

// taskWorker returns what does the tasks of staged builds, with writes to store.
func (s *Service) taskWorker(store sink.Store) *staged.Worker {
	return &staged.Worker{Store: store, Resources: wiring.ResourcesOf(s.cfg, s.device, s.progress, s.log),
		CheckpointEvery: s.cfg.Train.CheckpointEvery,
		Log: func(ctx context.Context, cut map[int]int64) (staged.Log, error) {
			at, err := logview.At(ctx, s.store, s.id.Shards, cut)
			if err != nil {
				return nil, err
			}
			return at.Log(), nil
		}}
}

// finishStaged finishes the unfinished generation as the staged build that it was begun as. It is staged.ErrNoPlan if
// it is none.
func (s *Service) finishStaged(ctx context.Context, store sink.Store) (*generation.Doc, error) {
	unfinished, g, err := generation.Next(ctx, store)
	if err != nil {
		return nil, err
	}
	if unfinished == nil {
		return nil, staged.ErrNoPlan
	}
	plan, err := staged.LoadPlan(ctx, store, g)
	if err != nil {
		return nil, err
	}
	s.log.Info("the unfinished generation is a staged build, and is finished as one", "generation", g)
	w := s.taskWorker(store)
	watch := &staged.Watch{Work: w, Log: s.log, Progress: s.progress}
	return w.Run(ctx, plan, tasks.Local{Workers: plan.AtATime}, watch, watch.Stage)
}
