package refreshing

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"giantstream/internal/retry"
	"giantstream/stream/forget"
)

// deletionsEvery is how often a process looks for the oldest deletion in the store: that reads the ids of all nodes.
const deletionsEvery = 6 * time.Hour

var descNotForgotten = prometheus.NewDesc("giantstream_deleted_not_forgotten_seconds",
	"How long ago the oldest deletion of a node was that the store has not been written again without; 0 for none.",
	nil, nil)

// deletions is what a process knows of nodes that are deleted and not forgotten.
type deletions struct {
	mu     sync.Mutex
	known  bool
	oldest time.Time // zero for none
}

// WatchDeletions looks for the oldest deletion until ctx ends. While the store is away, the last answer stays.
func (r *Refresh) WatchDeletions(ctx context.Context) error {
	pause := retry.Backoff{Min: DriftPoll, Max: 10 * time.Minute}
	for {
		wait := deletionsEvery
		switch err := r.LookForDeletions(ctx); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			wait = pause.Next()
			r.Log.Warn("the oldest deletion is not known, trying again", "in", wait, "error", err)
		default:
			pause.Reset()
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// LookForDeletions looks once.
func (r *Refresh) LookForDeletions(ctx context.Context) error {
	oldest, err := forget.OldestDeletion(ctx, r.Store, r.Shards)
	if err != nil {
		return err
	}
	r.deletions.mu.Lock()
	defer r.deletions.mu.Unlock()
	r.deletions.known, r.deletions.oldest = true, oldest
	return nil
}

// Describe implements prometheus.Collector.
func (d *deletions) Describe(out chan<- *prometheus.Desc) { out <- descNotForgotten }

// Collect implements prometheus.Collector.
func (d *deletions) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known {
		return
	}
	age := 0.0
	if !d.oldest.IsZero() {
		age = max(0, time.Since(d.oldest).Seconds())
	}
	out <- prometheus.MustNewConstMetric(descNotForgotten, prometheus.GaugeValue, age)
}
