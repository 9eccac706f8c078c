// Package refreshing is the part of the service that decides which generation is served, and builds new ones: what has
// changed or drifted, the lease, the build, the choice of people, damage.
package refreshing

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/settings"
	"giantstream/cmd/internal/telemetry"
	"giantstream/config"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/retry"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/lease"
	"giantstream/train/answer"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	measured "giantstream/train/generation/drift"
)

// Backlog is what is sent to the input topics and not committed yet.
type Backlog interface {
	// Await returns a function that says how many records it has, and 0 as soon as those that it had at the first call
	// are committed.
	Await() (uncommitted func(context.Context) (int64, error))
}

// Refresh decides which generation the process serves, and builds new ones. Its exported fields are its inputs, set
// before Open.
type Refresh struct {
	// Config is the configuration as of the start, Settings that in force.
	Config   *config.Config
	Settings *settings.Settings
	Store    sink.Store
	Shards   int
	// Undirected is that of the pipeline.
	Undirected bool
	// Orders is the topic that shards read orders in, "" for none.
	Orders  string
	Served  *generation.Served
	Heads   *heads.Heads
	Lease   *lease.Lease
	Backlog Backlog
	// Queue hands out tasks of builds, for DoTasks.
	Queue taskqueue.Queue
	// Builds: this process builds generations, and does not only serve them.
	Builds bool
	// Format is the one of vectors that the configuration wants published.
	Format embedding.Format
	// CanaryTopic is the topic that has the canary, "" for none.
	CanaryTopic string
	// Moved says how far the embeddings have moved, nil where it is not known.
	Moved    func() *answer.Drift
	Device   compute.Backend // nil for the CPU
	Progress *live.Progress
	Traces   *telemetry.Traces
	Registry prometheus.Registerer
	Log      *slog.Logger

	// Evidence is what this process has measured of refresh.drift, nil before, and if it does not build.
	Evidence atomic.Pointer[measured.Evidence]

	metrics   *metrics
	drift     drift
	deletions deletions
	// refused is the newest generation that the quality gate has refused, nil if the one that is
	// served is newer.
	refused atomic.Pointer[generation.Doc]
	// last is the newest complete generation, served or not, nil for none. Whether another is due is counted from it,
	// so that the same cut is not built again.
	last atomic.Pointer[generation.Doc]
	// damaged is the newest generation that is damaged and not replaced yet, 0 for none.
	damaged atomic.Int64
	// undecided is why nobody knows which generation is to be served, nil if that is known.
	undecided atomic.Pointer[error]

	// What follows belongs to the goroutine that calls Run or UpToDate.

	// builder is the number of the last lease of another process that was logged, held the generation of the last log
	// line about one that is ready and not served.
	builder, held int64
	// canary is the number of the canary, 0 for none.
	canary  int64
	orders  orders
	awaited awaited
	// because is why the last generation was built here.
	because string
}

// Open registers the metrics.
func (r *Refresh) Open() {
	r.metrics = newMetrics(r.Registry)
	r.Registry.MustRegister(driftCollector{r}, &r.deletions)
}

// refreshPoll is the interval at which Run checks whether a new generation is due.
const refreshPoll = 2 * time.Second

// Run looks for generations of others until ctx ends, and builds one once enough has changed (refresh.min_changes,
// refresh.max_age), if the process Builds and gets the lease. While it trains, the current one keeps serving.
func (r *Refresh) Run(ctx context.Context) error {
	const first, longest = 10 * time.Second, 10 * time.Minute
	pause, again := first, time.Time{} // the next pause after a failure; no refresh before again
	var outage retry.Outage
	const look = "look"
	tick := time.NewTicker(refreshPoll)
	defer tick.Stop()
	for {
		// Another process, or a command, may have finished a generation. It is served even while
		// this process waits for its next attempt.
		err := r.Load(ctx)
		if err == nil {
			if lasted, over := outage.EndFailure(look, time.Now()); over {
				r.Log.Info("looking for newer generations succeeds again", "after", lasted.Round(time.Millisecond))
			}
		}
		switch {
		case errors.Is(err, generation.ErrChoiceDamaged):
			pause = first // logged once; nothing is built until it is mended
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			if outage.Failed(look, time.Now()) {
				r.Log.Warn("cannot look for a newer generation, trying again", "in", refreshPoll, "error", err)
			}
		case r.Builds && !time.Now().Before(again):
			switch err := r.refreshIfDue(ctx); {
			case err == nil, r.Elsewhere(err):
				pause = first
			case ctx.Err() != nil:
			case errors.Is(err, compute.ErrFailed):
				return err // it fails again until another process opens the device
			case errors.Is(err, generation.ErrTooFew):
				r.Log.Info("too few texts for a generation yet", "retry_in", first, "reason", err)
				again = time.Now().Add(first)
			default:
				r.metrics.refreshFailed.Inc()
				r.Log.Error("refresh failed; the current generation keeps serving", "retry_in", pause, "error", err)
				again, pause = time.Now().Add(pause), min(2*pause, longest)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// refreshIfDue builds a generation if one is due.
func (r *Refresh) refreshIfDue(ctx context.Context) error {
	due, _, err := r.Due(ctx)
	if err == nil && due {
		_, err = r.BuildIf(ctx, r.Due)
	}
	return err
}
