package sinks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/endpoint"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
	"giantstream/train/encoders/bert/compute"
)

// Options of a sink.
type Options struct {
	Config *config.Config
	Index  vectordb.Index
	// Client to the brokers; nil for one that the configuration names. Without brokers, the store is followed.
	Client *client.Client
	// Device is what transformers run on, where the store is followed and nodes have changed since the generation's
	// cut; nil for the CPU.
	Device compute.Backend
	// Every is how often a Follower looks whether a generation is complete; 0 for the default.
	Every time.Duration
	// Canary: the sink follows the canary topic instead.
	Canary bool
	// From is the id of a pipeline of which Refill takes the tables, "" for none.
	From string
	// UntilCaughtUp ends Run when all that the source had at the start is in the database, and readers see its
	// generation, or an older one because it is not complete.
	UntilCaughtUp bool
	Log           *slog.Logger
}

// logEvery is how often progress is worth a line.
const logEvery = time.Minute

// settling is how long a run that ends by itself waits for a generation to be complete that may never be.
const settling = 10 * time.Second

// LastCommit is how long a process that ends may take to store what the database's index has held back.
const LastCommit = 20 * time.Second

// failingFor is for how long the database or the source may fail before the process is not ready.
const failingFor = 30 * time.Second

// source is where the records of a sink come from: the embeddings topic, or the store where no other process can reach
// the topic.
type source interface {
	// open connects, and returns what the follower has to know of the source.
	open(ctx context.Context) (vectordb.Options, error)
	// start adds to a group what hands over records until its context ends, from where the follower stands.
	start(ctx context.Context, group *errgroup.Group)
	// check returns vectordb.ErrOwner if the source is another pipeline's since it was opened, and errReplaced if it is
	// another topic.
	check(ctx context.Context) error
	// target returns whether all that the source has now is in the database.
	target(ctx context.Context) (reached func() bool, err error)
	// behind returns how much is not in the database yet, records of a topic or shards of a store, and sets the gauges;
	// known is false before the source has answered.
	behind() (n int64, known bool)
	// failing returns since when the source cannot be read, and why; nil if it can.
	failing() (since time.Time, err error)
	// describe says what is followed, for the log.
	describe() (what string, attributes []any)
	close()
}

// sink is a sink that runs.
type sink struct {
	Options
	source   source
	follower *vectordb.Follower
	metrics  *metrics
}

// open connects and takes the database over.
func open(ctx context.Context, o Options, take func(*vectordb.Follower, context.Context) error) (*sink, error) {
	s := &sink{Options: o}
	if o.Client == nil && o.Config.Kafka.Embedded() {
		f := &storeSource{sink: s}
		s.source, s.metrics = f, newMetrics(f.gauges())
	} else {
		t := &topicSource{sink: s, client: o.Client}
		s.source, s.metrics = t, newMetrics(t.gauges())
	}
	known, err := s.source.open(ctx)
	if err == nil {
		known.Index, known.Batch, known.Dim = o.Index, o.Config.Sinks.Batch, o.Config.Sinks.Dimensions
		known.Applied, known.Watch, known.Every, known.Log = s.metrics.Applied, s.metrics, o.Every, o.Log
		s.follower = vectordb.New(known)
		err = take(s.follower, ctx)
	}
	if err != nil {
		s.source.close()
		return nil, err
	}
	return s, nil
}

// Refill makes the next Run read the source from its beginning into a new table.
func Refill(ctx context.Context, o Options) error {
	s, err := open(ctx, o, func(f *vectordb.Follower, ctx context.Context) error { return f.Refill(ctx, o.From) })
	if err != nil {
		return err
	}
	defer s.source.close()
	return s.follower.Flush(ctx)
}

// errCaughtUp ends a run that was to last until then.
var errCaughtUp = errors.New("caught up")

// errReplaced: the topic is not the one that the sink has opened.
const errReplaced = retry.FinalError("the topic was deleted, or deleted and created again")

// Run follows the topic, or the store where the broker is an embedded one, until ctx ends, which is no error. It waits
// for a topic that does not exist yet, or that its pipeline has yet to claim, unless it is to end by itself. A topic
// that is created again meanwhile is opened again, which begins a refill.
func Run(ctx context.Context, o Options) error {
	for {
		err := follow(ctx, o)
		if !errors.Is(err, errReplaced) || ctx.Err() != nil {
			return err
		}
		o.Log.Warn("the topic is not the one that the sink has read; it is opened again", "reason", err)
	}
}

// follow follows one topic.
func follow(ctx context.Context, o Options) error {
	s, err := open(ctx, o, (*vectordb.Follower).Open)
	for said := false; isToCome(err) && !o.UntilCaughtUp && ctx.Err() == nil; said = true {
		if !said {
			o.Log.Warn("waiting for the topic", "reason", err)
		}
		if retry.Sleep(ctx, time.Second) == nil {
			s, err = open(ctx, o, (*vectordb.Follower).Open)
		}
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped as it started
	}
	if err != nil {
		return err
	}
	defer s.source.close()
	what, attributes := s.source.describe()
	o.Log.Info("the sink follows "+what, append(attributes, "name", o.Config.Sinks.Name)...)
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return s.follower.Run(running) })
	s.source.start(running, group)
	if o.Config.HTTP.Listen != "" {
		group.Go(func() error {
			return endpoint.Serve(running, o.Config.HTTP, s.metrics.Registry, o.Log,
				Handler(s.Config, s.metrics.Registry, func() string { return s.unready(time.Now()) }))
		})
	}
	group.Go(func() error { return s.report(running, stop) })
	err = group.Wait()
	if stopped := errors.Is(context.Cause(running), errCaughtUp) || ctx.Err() != nil; stopped {
		// What is lost here is read again, but it would be visible only then.
		last, done := context.WithTimeout(context.WithoutCancel(ctx), LastCommit)
		defer done()
		if err := s.follower.Flush(last); err != nil {
			return fmt.Errorf("the last commit: %w", err)
		}
	}
	if cause := context.Cause(running); cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	switch {
	case errors.Is(err, errCaughtUp):
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil
	case err == nil || ctx.Err() != nil:
		return err
	}
	// Whatever has failed may have done so because of the topic.
	if replaced := s.source.check(ctx); errors.Is(replaced, errReplaced) {
		return replaced
	}
	if errors.Is(err, client.ErrTruncated) {
		return fmt.Errorf("%w; if the sink is to go on with the topic as it is now, run 'giantstream sink refill'", err)
	}
	return err
}

// isToCome says whether a topic cannot be opened because its pipeline has not made it ready yet.
func isToCome(err error) bool {
	return errors.Is(err, client.ErrNoTopic) || errors.Is(err, vectordb.ErrUnclaimed)
}

// refuse is for a record that cannot be taken: it is an error, unless the configuration leaves such records out.
func (s *sink) refuse(m *malformed) error {
	if s.Config.Sinks.Malformed != config.MalformedSkip {
		return m
	}
	s.metrics.records.WithLabelValues("skipped").Inc()
	s.Log.Error("a record is skipped", "at", m.place, "reason", m.reason)
	return nil
}

// checkEvery is how often a sink looks whether its topic is the same one.
func (s *sink) checkEvery() time.Duration { return 60 * cmp.Or(s.Every, time.Second) }

// report logs progress and sets the gauges.
func (s *sink) report(ctx context.Context, stop func(error)) error {
	reached := func() bool { return false }
	if s.UntilCaughtUp {
		var err error
		if reached, err = s.source.target(ctx); err != nil {
			return err
		}
	}
	next, look := time.Now().Add(logEvery), time.Now().Add(s.checkEvery())
	var since time.Time
	for {
		if err := retry.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		lag, known := s.source.behind()
		state := s.follower.State()
		s.metrics.measure(state)
		if reached() && state.Served > 0 {
			if since.IsZero() {
				since = time.Now()
			}
			if state.Filling == 0 {
				stop(errCaughtUp)
			} else if time.Since(since) > settling {
				s.Log.Warn("a generation is not complete yet; readers see the one before",
					"generation", state.Filling, "served", state.Served)
				stop(errCaughtUp)
			}
		}
		if time.Now().After(look) {
			look = time.Now().Add(s.checkEvery())
			if err := s.source.check(ctx); retry.Final(err) {
				return err
			}
		}
		if known && time.Now().After(next) {
			next = time.Now().Add(logEvery)
			s.Log.Info("following", "written", s.metrics.written.Load(), "behind", lag, "generation", state.Served,
				"filling", state.Filling)
		}
	}
}

// Handler answers /metrics, /healthz and /readyz. unready says why the process cannot do its work, "" if it can.
func Handler(cfg *config.Config, registry prometheus.Gatherer, unready func() string) http.Handler {
	mux := http.NewServeMux()
	gate := endpoint.NewGate(func() *config.HTTP { return &cfg.HTTP }, nil)
	mux.Handle("/metrics", gate.Protect(config.ScopeRead, http.Error,
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { endpoint.Answer(w, "ok", "") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { endpoint.Answer(w, "ready", unready()) })
	return mux
}

// unready says why the sink cannot do its work, "" if it can.
func (s *sink) unready(now time.Time) string {
	if reason := s.metrics.Failing(now); reason != "" {
		return reason
	}
	what, _ := s.source.describe()
	if since, err := s.source.failing(); err != nil && now.Sub(since) > failingFor {
		return fmt.Sprintf("%s cannot be read since %s: %v", what, since.UTC().Format(time.RFC3339), err)
	}
	if _, known := s.source.behind(); !known {
		return what + " has not been read yet"
	}
	return ""
}
