package build

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"giantstream/internal/ambient"
	"giantstream/internal/tasks"
	"giantstream/train/generation/build/stages"
)

// Watch is Work that says how far a build has come. Give its Stage to Worker.Run.
type Watch struct {
	tasks.Work
	// Log gets a line for every task, Progress the stages. Both may be nil.
	Log      *slog.Logger
	Progress ambient.Progress

	mu     sync.Mutex
	stage  stages.Stage
	began  time.Time
	open   map[tasks.Task]time.Time // when it was begun, or seen not to be done
	before int                      // tasks that were done when the stage began
	done   int                      // since
}

// Stage notes that a stage begins.
func (w *Watch) Stage(s stages.Stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage, w.began, w.open, w.before, w.done = s, time.Now(), map[tasks.Task]time.Time{}, 0, 0
	total := int64(s.Tasks)
	if total == 1 {
		total = 0 // the task says what it is at
	}
	ambient.OrDiscard(w.Progress).Stage(s.Name, total)
}

// Do implements tasks.Work.
func (w *Watch) Do(ctx context.Context, t tasks.Task) error {
	w.mu.Lock()
	if t.Stage == w.stage.Name {
		w.open[t] = time.Now()
	}
	w.mu.Unlock()
	err := w.Work.Do(ctx, t)
	if err == nil {
		w.finished(t)
	}
	return err
}

// Done implements tasks.Work. Where other processes do the tasks, it is how their work is seen.
func (w *Watch) Done(ctx context.Context, t tasks.Task) (bool, error) {
	done, err := w.Work.Done(ctx, t)
	if err != nil {
		return done, err
	}
	w.mu.Lock()
	_, known := w.open[t]
	switch {
	case t.Stage != w.stage.Name:
	case !done && !known:
		w.open[t] = time.Now()
	case done && !known:
		w.before++
		ambient.OrDiscard(w.Progress).Add(1)
	}
	w.mu.Unlock()
	if done && known {
		w.finished(t)
	}
	return done, nil
}

// finished notes a task that was done since its stage began, once.
func (w *Watch) finished(t tasks.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun, known := w.open[t]
	if !known || t.Stage != w.stage.Name {
		return
	}
	delete(w.open, t)
	w.done++
	ambient.OrDiscard(w.Progress).Add(1)
	if w.Log == nil {
		return
	}
	elapsed := time.Since(w.began)
	left := w.stage.Tasks - w.before - w.done
	w.Log.Info("task done", "task", t.String(), "took", round(time.Since(begun)), "done", w.before+w.done, "of",
		w.stage.Tasks, "eta", round(elapsed/time.Duration(w.done)*time.Duration(max(0, left))))
}

// round leaves three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Minute:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
