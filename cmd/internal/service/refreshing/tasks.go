package refreshing

import (
	"context"

	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/service/process"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/taskqueue"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/work"
)

// DoTasks does the tasks of builds that a coordinator publishes ('giantstream build --engine kafka').
func (r *Refresh) DoTasks(ctx context.Context) error {
	w := &taskqueue.Worker{Queue: r.Queue, Name: process.Name(),
		Generation: func(ctx context.Context) (int64, error) {
			unfinished, g, err := generation.Next(ctx, r.Store)
			if err != nil || unfinished == nil {
				return 0, err // no generation has that number: every task is dropped
			}
			return g, nil
		}}
	return w.Run(ctx, r.TaskWorker(r.Store))
}

// TaskWorker returns what does the tasks of builds, with writes to store.
func (r *Refresh) TaskWorker(store sink.Store) *build.Worker {
	return &build.Worker{Means: work.Means{Store: store,
		Resources:       wiring.ResourcesOf(r.Config, r.Device, r.Progress, r.Log),
		CheckpointEvery: r.Config.Train.CheckpointEvery,
		Log: func(ctx context.Context, cut map[int]int64) (work.Log, error) {
			at, err := logview.OpenCut(ctx, r.Store, r.Shards, cut)
			if err != nil {
				return nil, err
			}
			return at.Log(), nil
		}}}
}
