package sinks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/endpoint"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/owner"
	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
)

// Options of a sink.
type Options struct {
	Config *config.Config
	Index  vectordb.Index
	// Client to the brokers; nil for one that the configuration names.
	Client *client.Client
	// Every is how often a Follower looks whether a generation is complete; 0 for the default.
	Every time.Duration
	// Canary: the sink follows the canary topic instead.
	Canary bool
	// From is the id of a pipeline of which Refill takes the tables, "" for none.
	From string
	// UntilCaughtUp ends Run when all that the topic had at the start is in the database, and readers see its
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

// failingFor is for how long the database may fail before the process is not ready.
const failingFor = 30 * time.Second

// sink is a sink that runs.
type sink struct {
	Options
	topic    string
	topicID  string
	owner    string // id of the pipeline that the topic belonged to at the start, "" for none
	follower *vectordb.Follower
	readers  []*client.Reader
	metrics  *metrics
}

// open connects and takes the database over.
func open(ctx context.Context, o Options, take func(*vectordb.Follower, context.Context) error) (*sink, error) {
	topic := o.Config.Kafka.Topics.Embeddings
	if o.Canary {
		if topic = o.Config.Sink.CanaryTopic; topic == "" {
			return nil, errors.New("sink.canary_topic: there is no canary topic; name one, and start " +
				"'giantstream run' with it")
		}
	}
	known, err := o.Client.Identify(ctx, topic)
	if errors.Is(err, client.ErrNoTopic) {
		return nil, fmt.Errorf("%w; 'giantstream run' creates it when it starts", err)
	}
	if err != nil {
		return nil, err
	}
	s := &sink{Options: o, topic: topic, topicID: known[topic].ID, metrics: newMetrics()}
	claimed, err := owner.Load(ctx, o.Client, topic, s.topicID)
	if err != nil {
		return nil, err
	}
	var before []string
	if claimed != nil {
		s.owner, before = claimed.ID, claimed.Before
	}
	s.follower = vectordb.New(vectordb.Options{Index: o.Index, Topic: topic, TopicID: s.topicID,
		Owner: s.owner, OwnersBefore: before, Partitions: known[topic].Partitions, Ends: s.ends,
		Batch: o.Config.Sinks.Batch, Dim: o.Config.Sinks.Dimensions,
		Applied: s.metrics.Applied, Watch: s.metrics, Every: o.Every, Log: o.Log})
	if err := take(s.follower, ctx); err != nil {
		return nil, err
	}
	for p := range known[topic].Partitions {
		s.readers = append(s.readers, &client.Reader{Client: o.Client, Topic: topic, Partition: p,
			Offset: s.follower.Next(p), Log: o.Log.With("topic", topic, "partition", p)})
	}
	return s, nil
}

// connect returns the options with a client, and what closes it.
func connect(o Options) (Options, func(), error) {
	if o.Client != nil {
		return o, func() {}, nil
	}
	if o.Config.Kafka.Embedded() {
		return o, nil, errors.New("kafka.brokers: the embedded broker can be reached by the process of " +
			"'giantstream run' alone; a sink needs brokers of their own")
	}
	options, err := wiring.ClientOptions(o.Config)
	if err != nil {
		return o, nil, err
	}
	o.Client, err = client.New(options)
	return o, func() { o.Client.Close() }, err
}

// Refill makes the next Run read the topic from its beginning into a new table.
func Refill(ctx context.Context, o Options) error {
	o, done, err := connect(o)
	if err != nil {
		return err
	}
	defer done()
	s, err := open(ctx, o, func(f *vectordb.Follower, ctx context.Context) error { return f.Refill(ctx, o.From) })
	if err != nil {
		return err
	}
	return s.follower.Flush(ctx)
}

// errCaughtUp ends a run that was to last until then.
var errCaughtUp = errors.New("caught up")

// Run follows the topic until ctx ends, which is no error.
func Run(ctx context.Context, o Options) error {
	o, done, err := connect(o)
	if err != nil {
		return err
	}
	defer done()
	s, err := open(ctx, o, (*vectordb.Follower).Open)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped as it started
	}
	if err != nil {
		return err
	}
	o.Log.Info("the sink follows the topic", "topic", s.topic, "partitions", len(s.readers),
		"name", o.Config.Sinks.Name)
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return s.follower.Run(running) })
	for p, r := range s.readers {
		group.Go(func() error {
			return r.Run(running, func(ctx context.Context, got client.Fetched) error {
				return s.handle(ctx, p, &got)
			})
		})
	}
	if o.Config.HTTP.Listen != "" {
		group.Go(func() error {
			return endpoint.Serve(running, o.Config.HTTP, s.metrics.Registry, o.Log,
				Handler(s.Config, s.metrics.Registry, s.unready))
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
	case errors.Is(err, client.ErrTruncated):
		return fmt.Errorf("%w; or, if the sink is to go on with the topic as it is now, run "+
			"'giantstream sink refill'", err)
	}
	return err
}

// handle writes an answer of the brokers.
func (s *sink) handle(ctx context.Context, partition int, got *client.Fetched) error {
	records, err := decodeAll(got, s.Index, func(m *malformed) error {
		if s.Config.Sinks.Malformed == config.MalformedSkip {
			s.metrics.records.WithLabelValues("skipped").Inc()
			s.Log.Error("a record is skipped", "partition", m.partition, "offset", m.offset, "reason", m.reason)
			return nil
		}
		return m
	})
	if err != nil {
		return err
	}
	return s.follower.Handle(ctx, partition, records, got.Next)
}

// checkOwner returns vectordb.ErrOwner if the topic has another owner than at the start, where it may have had none.
func (s *sink) checkOwner(ctx context.Context) error {
	now, err := owner.Load(ctx, s.Client, s.topic, s.topicID)
	if err != nil || now == nil || s.owner == "" || now.ID == s.owner || slices.Contains(now.Before, s.owner) {
		return err
	}
	return fmt.Errorf("topic %q belongs to %w since this sink has started: %s. Start the sink again: it says whether "+
		"it can go on", s.topic, vectordb.ErrOwner, now.Pipeline())
}

// ends returns where the topic ends. It is asked for when a generation begins: then the topic may have another owner.
func (s *sink) ends(ctx context.Context) ([]int64, error) {
	if err := s.checkOwner(ctx); err != nil {
		return nil, err
	}
	ends, err := s.Client.EndOffsets(ctx, s.topic)
	return ends[s.topic], err
}

// report logs progress and sets the gauges.
func (s *sink) report(ctx context.Context, stop func(error)) error {
	var ends []int64
	for s.UntilCaughtUp && ends == nil {
		var err error
		if ends, err = s.ends(ctx); err != nil {
			return err
		}
	}
	next := time.Now().Add(logEvery)
	var reached time.Time
	for {
		if err := retry.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		lag, known := s.metrics.measure(s.follower, s.readers)
		state := s.follower.State()
		if s.UntilCaughtUp && s.reached(ends) && state.Served > 0 {
			if reached.IsZero() {
				reached = time.Now()
			}
			if state.Filling == 0 {
				stop(errCaughtUp)
			} else if time.Since(reached) > settling {
				s.Log.Warn("a generation is not complete on the topic yet; readers see the one before",
					"generation", state.Filling, "served", state.Served)
				stop(errCaughtUp)
			}
		}
		if known && time.Now().After(next) {
			next = time.Now().Add(logEvery)
			if err := s.checkOwner(ctx); retry.Final(err) {
				return err
			}
			s.Log.Info("following", "written", s.metrics.written.Load(), "behind", lag, "generation", state.Served,
				"filling", state.Filling)
		}
	}
}

func (s *sink) reached(ends []int64) bool {
	for p, end := range ends {
		if s.follower.Next(p) < end {
			return false
		}
	}
	return true
}

// Handler answers /metrics, /healthz and /readyz. unready says why the process cannot do its work, "" if it can.
func Handler(cfg *config.Config, registry prometheus.Gatherer, unready func() string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", endpoint.NewGate(cfg.HTTP, nil).Protect(config.ScopeRead, http.Error,
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { endpoint.Answer(w, "ok", "") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { endpoint.Answer(w, "ready", unready()) })
	return mux
}

// unready says why the sink cannot do its work, "" if it can.
func (s *sink) unready() string {
	if reason := s.metrics.Failing(time.Now()); reason != "" {
		return reason
	}
	for p, r := range s.readers {
		if _, known := r.End(); !known {
			return fmt.Sprintf("partition %d of %s has not been read yet", p, s.topic)
		}
	}
	return ""
}
