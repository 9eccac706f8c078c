// Package answering is the part of the service that answers over HTTP: what is similar, how the process is, and which
// settings are in force.
package answering

import (
	"context"
	"log/slog"
	"time"

	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/service/settings"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink"
	"giantstream/train/answer"
	"giantstream/train/generation"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Health is how the other parts of the process are.
type Health interface {
	// Unhealthy returns why the process should be restarted, "" for no reason.
	Unhealthy() string
	// Unready returns what the process is waiting for before it can do its work, "" for nothing.
	Unready(ctx context.Context) string
}

// Answer answers questions. Its exported fields are its inputs, set before Run.
type Answer struct {
	Store sink.Store
	// Ends returns where the topics of the graph end, by topic and partition; nil if shards read copies of them.
	Ends func(context.Context) (map[string][]int64, error)
	// Shards whose changes the index follows; 0 for a process that answers no questions about similar items.
	Shards   int
	Served   *generation.Served
	Settings *settings.Settings
	HTTP     config.HTTP // as of the start
	Health   Health
	// Texts has vectors of the texts of questions, nil for no such model.
	Texts    *answer.TextModel
	Live     *live.View
	Registry *prometheus.Registry
	// Teller tells what items are ordered with, nil for a pipeline without orders.
	Teller *Teller
	// Exemplars are shown at /metrics.
	Exemplars bool
	Log       *slog.Logger

	// Catalog is made by Open, nil without Shards.
	Catalog *answer.Catalog

	observer *observer
}

// Open makes the parts that other goroutines ask for. It comes before Run.
func (a *Answer) Open() {
	a.observer = newObserver(a.Registry, a.Log, a.HTTP.Slow)
	if a.Shards > 0 {
		a.Catalog = answer.New(answer.Options{Store: a.Store, Log: logview.Tail{Store: a.Store}, Shards: a.Shards,
			Generation: a.Served.Current, Complements: true, FollowOrders: true,
			Texts: a.countAsked(), Attributes: wiring.AttributesOf(a.Settings.Get())})
		a.registerFollowing()
		if a.Teller != nil {
			a.Teller.register(a.Registry, a.Catalog)
		}
		a.observer.follow(a.Registry, time.Now)
	}
}

// countAsked is the model of texts, with metrics of what it is asked.
func (a *Answer) countAsked() *answer.TextModel {
	if a.Texts == nil || a.Texts.Ask == nil {
		return a.Texts
	}
	asked := prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_external_questions_total",
		Help: "Requests with texts that the external model was to give vectors."})
	failed := prometheus.NewCounter(prometheus.CounterOpts{Name: "giantstream_external_questions_failed_total",
		Help: "Those of them that were answered without the vectors, as the external model has failed."})
	a.Registry.MustRegister(asked, failed)
	counted := *a.Texts
	counted.Ask = func(ctx context.Context, texts []string) ([][]float32, error) {
		asked.Inc()
		vectors, err := a.Texts.Ask(ctx, texts)
		if err != nil && ctx.Err() == nil {
			failed.Inc()
		}
		return vectors, err
	}
	return &counted
}

// registerFollowing makes the metrics of what goes with what.
func (a *Answer) registerFollowing() {
	of := func(figure func(answer.Following) float64) func() float64 {
		return func() float64 {
			f, _ := a.Catalog.Following()
			return figure(f)
		}
	}
	a.Registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_goes_with_orders",
			Help: "Orders that what goes with what is answered by; 0 if none are followed."},
			of(func(f answer.Following) float64 { return float64(f.Orders) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_goes_with_stale_items",
			Help: "Items to be solved until what goes with what is as of all orders that are known."},
			of(func(f answer.Following) float64 { return float64(f.Stale) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_goes_with_waiting_items",
			Help: "Those of the stale items whose own orders have changed. They are solved first."},
			of(func(f answer.Following) float64 { return float64(f.Own) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "giantstream_goes_with_solved_items_total",
			Help: "Items of what goes with what that were solved."},
			of(func(f answer.Following) float64 { return float64(f.Solved) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "giantstream_goes_with_solve_seconds_total",
			Help: "Time that a core has solved them, and made embeddings of those that were ordered with others."},
			of(func(f answer.Following) float64 { return f.Seconds })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "giantstream_similar_moved_items",
			Help: "Items that were ordered with others than the embeddings know that answer what is similar."},
			of(func(f answer.Following) float64 { return float64(f.Moved) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "giantstream_similar_moved_items_total",
			Help: "Those of them whose embeddings were made anew."},
			of(func(f answer.Following) float64 { return float64(f.Encoded) })))
}

// Run answers until ctx ends.
func (a *Answer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if a.Catalog != nil {
		g.Go(func() error { return a.followCatalog(ctx) })
		if a.Teller != nil {
			g.Go(func() error { return a.Teller.run(ctx, a.Catalog) })
		}
	}
	if a.HTTP.Listen != "" {
		g.Go(func() error { return a.serveHTTP(ctx) })
	}
	return g.Wait()
}

// Unready says that the embeddings of the generation being served are still being read, "" if they are not.
func (a *Answer) Unready() string {
	if a.Catalog == nil || a.Served.Current() == nil {
		return ""
	}
	if _, err := a.Catalog.Size(); err != nil {
		return "the embeddings are being read: " + err.Error()
	}
	return ""
}

// Index is the index of similar items for the page, nil without one or before it is read.
func (a *Answer) Index() *live.Index {
	if a.Catalog == nil {
		return nil
	}
	size, err := a.Catalog.Size()
	if err != nil {
		return nil
	}
	return &live.Index{Generation: size.Generation, Nodes: size.Nodes}
}

// Drift returns how far the embeddings have moved, nil if that is not known.
func (a *Answer) Drift() *answer.Drift {
	if a.Catalog == nil {
		return nil
	}
	d, err := a.Catalog.Drift()
	if err != nil {
		return nil
	}
	return &d
}
