package refreshing

import (
	"context"
	"errors"
	"runtime"

	"giantstream/cmd/internal/wiring"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// BuildIf takes the refresh lease. If a generation is still due by then, it builds one on the
// newest cut, or finishes the unfinished one, and makes it current. It returns lease.ErrHeld if
// another process has the lease, and lease.ErrLost if another process has taken it over from this
// one.
func (r *Refresh) BuildIf(ctx context.Context,
	due func(context.Context) (bool, string, error)) (built bool, err error) {
	held, err := r.Lease.Acquire(ctx)
	if err != nil {
		return false, err
	}
	ctx, release := held.Keep(ctx)
	defer release()
	defer func() {
		if lost := context.Cause(ctx); err != nil && errors.Is(lost, lease.ErrLost) {
			err = lost // and not the end of the context, which follows from it
		}
	}()
	// Another process may have built one before this one had the lease.
	if err := r.Load(ctx); err != nil {
		return false, err
	}
	yes, why, err := due(ctx)
	if err != nil || !yes {
		return false, err
	}
	r.metrics.building.Set(1)
	defer r.metrics.building.Set(0)
	defer r.Progress.Done()
	r.Log.Info("building a generation", "because", why, "lease", held.Number())
	r.because = why
	store := held.Store()
	if _, err := r.build(ctx, store, why); err != nil {
		return false, err
	}
	if err := r.Load(ctx); err != nil {
		return false, err
	}
	removed, err := generation.Prune(ctx, store, r.Settings.Get().Refresh.Keep)
	if err != nil {
		r.Log.Warn("old generations not removed; the next refresh tries again", "error", err)
	} else if len(removed) > 0 {
		r.Log.Info("old generations removed", "generations", removed)
	}
	return true, nil
}

// build builds the next generation, or finishes the unfinished one.
func (r *Refresh) build(ctx context.Context, store sink.Store, why string) (*generation.Doc, error) {
	ctx, progress, trace := r.Traces.Build(ctx, r.Progress, why)
	request := wiring.RequestOf(r.Settings.Get())
	request.Because = why
	request.Shards, request.AtATime = r.Shards, runtime.GOMAXPROCS(0)
	w := r.TaskWorker(store)
	w.Progress = progress
	doc, err := w.Build(ctx, request, stages.Finish)
	if err == nil {
		trace.Built(doc.Generation, doc.Encoder.Kind, doc.Graph.Nodes, string(doc.Status))
	}
	trace.End(err)
	return doc, err
}

// Because returns why this process has built its last generation, "" if it has built none.
func (r *Refresh) Because() string { return r.because }

// Elsewhere reports whether err means that another process is building a generation. It logs each
// holder once.
func (r *Refresh) Elsewhere(err error) bool {
	var by *lease.HeldError
	switch {
	case errors.Is(err, lease.ErrLost):
		r.Log.Warn("another process has taken the refresh over; what it finishes is served", "error", err)
	case errors.As(err, &by):
		if by.Number != r.builder {
			r.builder = by.Number
			r.Log.Info("another process is building a generation", "holder", by.Holder, "lease", by.Number)
		}
	default:
		return false
	}
	return true
}
