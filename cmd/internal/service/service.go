package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/telemetry"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/embeddingtopic"
	"giantstream/ingest/feed"
	"giantstream/ingest/mirror"
	"giantstream/ingest/preflight"
	"giantstream/ingest/schema"
	"giantstream/sink"
	"giantstream/sink/lease"
	"giantstream/sink/recent"
	"giantstream/stream/commitlog"
	"giantstream/stream/sources"
	"giantstream/train"
	"giantstream/train/answer"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	measured "giantstream/train/generation/drift"
)

// Options of a Service.
type Options struct {
	Config *config.Config
	Store  sink.Store
	Log    *slog.Logger
	// Level is that of Log. nil: it does not change while the service runs.
	Level *slog.LevelVar
	// Reload reads the configuration again. nil: it comes from no file.
	Reload func() (*config.Config, error)
	// Roles of this process; none means all.
	Roles Roles
	// Device runs transformers, nil for the CPU. It stays open until the service is closed.
	Device compute.Backend
	// Progress shows long work; nil shows nothing.
	Progress train.Progress
	// AcceptLoss names input topics of which losses are accepted: that they are not the topics that
	// were read, and that records are gone.
	AcceptLoss []string
	// AcceptSettings: settings that decide what the graph is may differ from those of the store.
	AcceptSettings bool
	// Load says that files are sent and then drained: the first load of a graph is committed as a
	// whole.
	Load bool
	// Status returns what 'giantstream status' shows, for the page at /. nil: the page has only what this process
	// knows of itself.
	Status func(context.Context, *Service) (any, error)
	// Resent says that all records of the embedded broker's topics come again from files.
	Resent bool

	standbyEvery time.Duration         // tests; 0 means standbyEvery
	spans        sdktrace.SpanExporter // tests; nil sends them
}

// Service is one running process of a pipeline.
type Service struct {
	// cfg is the configuration as of the start. settings have the one in force, which may differ in the fields that
	// are config.Live.
	cfg      *config.Config
	settings settings
	level    *slog.LevelVar
	reload   func() (*config.Config, error)
	store    sink.Store
	id       commitlog.Identity
	log      *slog.Logger
	roles    Roles
	device   compute.Backend
	progress train.Progress

	broker    *broker.Broker
	client    *client.Client
	registry  *schema.Registry // nil unless values name their schema
	topics    ingest.Topics
	feeds     feed.Config
	letters   *deadletter.Log
	fields    *fieldCounts
	publisher *embeddingtopic.Publisher
	// canaryPublisher is nil without a topic of new generations.
	canaryPublisher *embeddingtopic.Publisher
	serving         serving
	catalog         *answer.Catalog // nil without the role serve
	// refused is the newest generation that the quality gate has refused, nil if the one that is
	// served is newer.
	refused atomic.Pointer[generation.Doc]
	// last is the newest complete generation, served or not, nil for none. Whether another is due is counted from it,
	// so that the same cut is not built again.
	last atomic.Pointer[generation.Doc]
	// passedOver is the newest complete generation above the served one, 0 for none.
	passedOver atomic.Int64
	// damaged is the newest generation that is damaged and not replaced yet, 0 for none.
	damaged atomic.Int64
	blocked blockage
	logs    commitLogs
	// rows and manifests are what the shards of this process have committed last. Their followers and compactors need
	// not read it from the store.
	rows      *recent.Cache
	manifests commitlog.Recent
	metrics   *metrics
	watches   watches
	// traces are nil unless somebody has asked for them.
	traces *telemetry.Traces
	// standbys are shards of other workers, standbyEvery how often they are looked at.
	standbys     standbys
	standbyEvery time.Duration
	live         *live.View
	maps         mapServer
	drift        drift
	// evidence is what this process has measured of refresh.drift, nil before, and without the role refresh.
	evidence atomic.Pointer[measured.Evidence]

	// lease is the right to build generations. builder is the number of the last lease of another
	// process that was logged. Both belong to the goroutine that calls Run or UpToDate.
	lease   *lease.Lease
	builder int64
	// held is the generation of the last log line about one that is ready and not served.
	held int64
	// because is why the last generation was built here; it belongs to the same goroutine.
	because string
	// sources are the topics that are repartitioned, as of the start.
	sources map[string]sources.Topic
	// accepted is what losses of input topics this start accepts.
	accepted *acceptance
	// resent says that files are sent to the embedded broker, and began how large the graph was before.
	resent bool
	began  size

	// load: see Options.Load.
	load bool
	// draining > 0: shards commit as soon as they are caught up.
	draining atomic.Int32
	// awaited > 0: followers move their cursors at once.
	awaited atomic.Int32
	// finishing: this process is to come to an end by itself. What only a person can mend is an error
	// then.
	finishing atomic.Bool
	// wake signals the followers when there is a new generation or manifest.
	wake wakeups

	group  *errgroup.Group
	cancel context.CancelFunc
	// failed is closed when a part of the service has failed; failure returns the error.
	failed   chan struct{}
	failOnce sync.Once
	failErr  error
}

// Start opens everything a pipeline needs and begins to consume. It returns once the topics exist
// and shards are being assigned. The service runs until ctx ends or Close is called.
func Start(ctx context.Context, o Options) (_ *Service, err error) {
	s := &Service{cfg: o.Config, store: o.Store, log: o.Log, roles: cmp.Or(o.Roles, AllRoles()),
		device: o.Device, failed: make(chan struct{}), metrics: newMetrics(), level: o.Level, reload: o.Reload}
	s.settings.now.Store(o.Config)
	s.startTraces(ctx, o.spans)
	s.store = s.traces.Store(s.store)
	s.rows = recent.New(recentRows, commitlog.IsRows)
	s.live = s.newView(o)
	s.progress = &s.live.Progress
	s.maps.store, s.maps.current, s.maps.draw = s.store, s.Current, drawMap
	s.letters = deadletter.NewLog(s.log, time.Now)
	s.serving.asked = wiring.FormatOf(o.Config)
	s.standbyEvery = cmp.Or(o.standbyEvery, standbyEvery)
	s.metrics.registry.MustRegister(shardCollector{&s.watches, &s.standbys})
	s.topics = wiring.TopicsOf(o.Config)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeClients())
		}
	}()
	if s.accepted, err = accept(append(s.topics.Inputs(), s.topics.Sources()...), o.AcceptLoss,
		s.cfg.Kafka.Embedded(), o.Resent); err != nil {
		return nil, err
	}
	if err := sink.Probe(ctx, s.store); err != nil {
		return nil, err
	}
	s.removeProbes(ctx)
	if s.id, err = commitlog.EnsureIdentity(ctx, s.store, commitlog.Identity{Name: s.cfg.Pipeline,
		Shards: s.cfg.Shards, Undirected: s.cfg.Ingest.Undirected, Settings: wiring.GraphSettings(s.cfg)},
		o.AcceptSettings); err != nil {
		return nil, err
	}
	if s.lease, err = refreshLease(s.store, s.log); err != nil {
		return nil, err
	}
	s.load = o.Load
	if s.resent = o.Resent && s.cfg.Kafka.Embedded(); s.resent {
		if s.began, err = s.size(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if s.roles.Stream {
		if err := s.preflight(ctx); err != nil {
			return nil, err
		}
		if err := s.openSources(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.loadCurrent(ctx); err != nil {
		return nil, err
	}
	s.log.Info("pipeline started", "version", buildinfo.Read().String(), "pipeline", s.cfg.Pipeline, "id", s.id.ID,
		"shards", s.cfg.Shards, "roles", s.roles.String(), "store", s.store.URL(), "brokers", s.client.Brokers(),
		"topics", append(s.topics.Inputs(), s.topics.Embeddings, s.topics.DeadLetters), "http", s.cfg.HTTP.Listen)
	s.sayWhatDiffers()
	ctx, s.cancel = context.WithCancel(ctx)
	s.group, ctx = errgroup.WithContext(ctx)
	switch {
	case s.roles.Stream:
		s.group.Go(func() error { return s.fail(s.consume(ctx)) })
		s.group.Go(func() error { return s.watchFields(ctx) })
		if s.cfg.Stream.Standby > 0 {
			s.group.Go(func() error { return s.keepStandbys(ctx) })
		}
		if s.topics.Repartitioned() {
			s.group.Go(func() error { return s.fail(s.repartition(ctx)) })
			s.group.Go(func() error { return s.fail(s.watchSources(ctx)) })
		}
	case s.roles.Embed:
		s.group.Go(func() error { return s.fail(s.embed(ctx)) })
	}
	if s.roles.Build {
		s.group.Go(func() error { return s.fail(s.doTasks(ctx)) })
	}
	if s.roles.Refresh {
		s.group.Go(func() error { return s.fail(s.followDrift(ctx)) })
	}
	if s.roles.Serve {
		s.catalog = answer.New(answer.Options{Store: s.store, Log: logview.Tail{Store: s.store}, Shards: s.cfg.Shards,
			Generation: s.Current})
		s.group.Go(func() error { return s.fail(s.followCatalog(ctx)) })
	}
	s.metrics.registry.MustRegister(driftCollector{s})
	if s.broker != nil {
		s.group.Go(func() error { return s.watchBroker(ctx) })
	}
	if s.cfg.HTTP.Listen != "" {
		s.group.Go(func() error { return s.fail(s.serveHTTP(ctx)) })
	}
	return s, nil
}

// connect starts the embedded broker, if it is configured, and makes sure that the topics exist.
func (s *Service) connect(ctx context.Context) error {
	opts, err := wiring.ClientOptions(s.cfg)
	if err != nil {
		return err
	}
	if s.cfg.Kafka.Embedded() {
		if s.broker, err = broker.Start(broker.Options{Dir: s.cfg.Kafka.DataDir, Log: s.log}); err != nil {
			return err
		}
		opts.Brokers = s.broker.Addrs()
	}
	if s.client, err = client.New(opts); err != nil {
		return err
	}
	if err := wiring.EnsureTopics(ctx, s.client, s.cfg); err != nil {
		return err
	}
	if s.feeds, s.registry, err = wiring.FeedOf(s.cfg, s.client, s.log); err != nil {
		return err
	}
	if s.fields, err = newFieldCounts(s.feeds.Mapping, s.feeds.Limits); err != nil {
		return err
	}
	s.metrics.registry.MustRegister(s.fields)
	if s.feeds.Pipeline, err = mirror.ParsePipeline(s.id.ID); err != nil {
		return err
	}
	s.feeds.Bounds, s.feeds.Letters, s.feeds.Metrics = s.settings.bounds, s.letters, &s.metrics.feed
	s.feeds.NodeFields, s.feeds.EdgeFields = s.fields.nodeFields, s.fields.edgeFields
	s.feeds.Traces = s.traces.Records()
	format, err := embeddingtopic.ParseFormat(s.cfg.Sink.Format)
	if err != nil {
		return err
	}
	s.publisher = embeddingtopic.NewPublisher(s.client, s.topics.Embeddings, format)
	if s.topics.Canary != "" {
		s.canaryPublisher = embeddingtopic.NewPublisher(s.client, s.topics.Canary, format)
	}
	return nil
}

// brokerCheckEvery is how often a running service looks at the disk of its embedded broker.
const brokerCheckEvery = 5 * time.Second

// watchBroker says when the disk of the embedded broker is full: the shards and followers, which try again,
// only know that the broker has failed.
func (s *Service) watchBroker(ctx context.Context) error {
	tick := time.NewTicker(brokerCheckEvery)
	defer tick.Stop()
	full := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.broker.CheckSpace()
		if err != nil && !full {
			s.log.Error("nothing can be sent to the embedded broker", "error", err)
		}
		full = err != nil
	}
}

// Explain adds to an error of the service that the disk of its embedded broker is full, if it is. It may be
// called after Close.
func (s *Service) Explain(err error) error {
	if err == nil || s.broker == nil {
		return err
	}
	if full := s.broker.CheckSpace(); full != nil {
		return fmt.Errorf("%w (%w)", full, err)
	}
	return err
}

// preflight checks the input topics before they are consumed.
func (s *Service) preflight(ctx context.Context) error {
	former, err := commitlog.FormerShards(ctx, s.store)
	if err != nil {
		return err
	}
	warnings, err := preflight.Check(ctx, preflight.Options{Client: s.client, Topics: s.topics,
		Mapping: s.feeds.Mapping, Limits: s.feeds.Limits, Translators: s.feeds.Translators, Shards: s.cfg.Shards,
		Former: former})
	for _, w := range warnings {
		s.log.Warn(w)
	}
	if err == nil && s.topics.Mirror != "" {
		err = mirror.CheckOwner(ctx, s.client, s.topics.Mirror, s.feeds.Pipeline)
	}
	return err
}

// Client returns the service's connection to Kafka.
func (s *Service) Client() *client.Client { return s.client }

// Store returns the pipeline's object store.
func (s *Service) Store() sink.Store { return s.store }

// Identity returns what the store belongs to.
func (s *Service) Identity() commitlog.Identity { return s.id }

// Roles returns what this process does.
func (s *Service) Roles() Roles { return s.roles }

// Current returns the generation being served, nil before the first.
func (s *Service) Current() *generation.Generation { return s.serving.current.Load() }

// fail keeps the first error that stops the service.
func (s *Service) fail(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	s.failOnce.Do(func() {
		s.failErr = err
		close(s.failed)
	})
	return err
}

// failure returns why the service stopped; only after failed is closed.
func (s *Service) failure() error { return s.failErr }

// Close stops consuming, waits for work in flight, and releases everything. The next run reads
// again what was not committed.
func (s *Service) Close() error {
	s.cancel()
	err := s.group.Wait()
	s.letters.Close()
	return errors.Join(err, s.closeClients())
}

func (s *Service) closeClients() (err error) {
	for _, p := range []*embeddingtopic.Publisher{s.publisher, s.canaryPublisher} {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.broker != nil {
		err = errors.Join(err, s.broker.Close())
	}
	return errors.Join(err, s.traces.Close())
}
