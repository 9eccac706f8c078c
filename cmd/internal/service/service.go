package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/sync/errgroup"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/live"
	"giantstream/cmd/internal/service/answering"
	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/ingesting"
	"giantstream/cmd/internal/service/ingesting/standby"
	"giantstream/cmd/internal/service/membership"
	"giantstream/cmd/internal/service/process"
	"giantstream/cmd/internal/service/publishing"
	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/service/settings"
	"giantstream/cmd/internal/telemetry"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/deadletter"
	"giantstream/ingest/embeddingtopic"
	"giantstream/ingest/external"
	"giantstream/ingest/owner"
	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/recent"
	"giantstream/stream/commitlog"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
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
	Progress ambient.Progress
	// AcceptLoss names input topics of which losses are accepted: that they are not the topics that
	// were read, and that records are gone.
	AcceptLoss []string
	// AllowUnmatched lets a pipeline begin although none of the first records of a topic has a field of the mapping.
	AllowUnmatched bool
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
	cfg      *config.Config // as of the start
	settings *settings.Settings
	store    sink.Store
	id       commitlog.Identity
	log      *slog.Logger
	roles    Roles

	broker  *broker.Broker // nil unless it is embedded
	client  *client.Client
	topics  ingest.Topics
	letters *deadletter.Log
	metrics *prometheus.Registry
	traces  *telemetry.Traces // nil unless somebody has asked for them
	live    *live.View

	// The parts, and what joins them.
	heads   *heads.Heads
	served  *generation.Served
	ingest  *ingesting.Ingest
	refresh *refreshing.Refresh
	publish *publishing.Publish
	answer  *answering.Answer

	group  *errgroup.Group
	cancel context.CancelFunc
	// failed is closed when a part of the service has failed; failure returns the error.
	failed   chan struct{}
	failOnce sync.Once
	failErr  error
}

// recentRows bounds the row objects that the process keeps in memory after it has stored them.
const recentRows = 32 << 20

// Start opens everything a pipeline needs and begins to consume. It returns once the topics exist
// and shards are being assigned. The service runs until ctx ends or Close is called.
func Start(ctx context.Context, o Options) (_ *Service, err error) {
	if err := process.CheckOpenFiles(); err != nil {
		return nil, err
	}
	s := &Service{cfg: o.Config, log: o.Log, roles: cmp.Or(o.Roles, AllRoles()), failed: make(chan struct{}),
		metrics: newRegistry(), topics: wiring.TopicsOf(o.Config), served: &generation.Served{},
		letters: deadletter.NewLog(o.Log, time.Now)}
	s.settings = settings.New(o.Config, s.metrics)
	s.settings.Level, s.settings.Read, s.settings.Log = o.Level, o.Reload, o.Log
	s.startTraces(ctx, o.spans)
	s.store = recent.New(recentRows, commitlog.IsRows).Store(s.traces.Store(o.Store))
	s.heads = &heads.Heads{Store: s.store, Shards: s.cfg.Shards}
	s.live = s.newView(o)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeClients())
		}
	}()
	if err := sink.Probe(ctx, s.store); err != nil {
		return nil, err
	}
	s.removeProbes(ctx)
	if s.id, err = commitlog.EnsureIdentity(ctx, s.store, wiring.IdentityOf(s.cfg), o.AcceptSettings); err != nil {
		return nil, err
	}
	if s.roles.Embed {
		if err := commitlog.CheckRemap(ctx, s.store); err != nil {
			return nil, err
		}
	}
	s.topics = s.topics.Ranked(s.id.Inputs)
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.openParts(ctx, o); err != nil {
		return nil, err
	}
	if err := s.refresh.Load(ctx); err != nil && !errors.Is(err, generation.ErrChoiceDamaged) {
		return nil, err // a damaged choice is no reason not to ingest
	}
	s.log.Info("pipeline started", "version", buildinfo.Read().String(), "pipeline", s.cfg.Pipeline, "id", s.id.ID,
		"shards", s.cfg.Shards, "roles", s.roles.String(), "store", s.store.URL(), "brokers", s.client.Brokers(),
		"topics", append(s.topics.Inputs(), s.topics.Embeddings, s.topics.DeadLetters), "http", s.cfg.HTTP.Listen)
	s.refresh.SayWhatDiffers()
	s.runParts(ctx)
	return s, nil
}

// openParts makes the parts, and opens them in the order in which they need each other.
func (s *Service) openParts(ctx context.Context, o Options) error {
	pipeline, err := wiring.OwnerOf(ctx, s.cfg, s.store, s.id)
	if err != nil {
		return err
	}
	if err := s.makeParts(o, pipeline); err != nil {
		return err
	}
	s.joinParts()
	s.refresh.Open()
	s.publish.Open()
	s.answer.Open()
	if s.roles.Embed {
		if err := s.publish.Claim(ctx); err != nil {
			return err
		}
	}
	if err := s.claimTopics(ctx, pipeline); err != nil {
		return err
	}
	return s.ingest.Open(ctx)
}

// makeParts makes the parts, each with what the configuration says of it.
func (s *Service) makeParts(o Options, pipeline owner.Pipeline) error {
	feeds, schemas, err := wiring.FeedOf(s.cfg, s.client, s.log)
	if err != nil {
		return err
	}
	feeds.Topics = s.topics
	var model *external.Client
	if s.roles.Stream {
		if model, err = wiring.ExternalOf(s.cfg, s.log); err != nil {
			return err
		}
	}
	records, err := embeddingtopic.ParseFormat(s.cfg.Sink.Format)
	if err != nil {
		return err
	}
	right, err := refreshing.OpenLease(s.store, s.log)
	if err != nil {
		return err
	}
	texts, err := wiring.TextModelOf(s.cfg, s.id.Inputs, s.log)
	if err != nil {
		return err
	}
	attributes := slices.Sorted(slices.Values(s.cfg.Sinks.Attributes))
	groups := s.membership(attributes)
	s.ingest = &ingesting.Ingest{Config: s.cfg, Settings: s.settings, Store: s.store, Identity: s.id, Groups: groups,
		Topics: s.topics, Feeds: feeds, Schemas: schemas, Letters: s.letters, External: model, Features: s.served,
		Heads: s.heads, Streams: s.roles.Stream, Live: s.live, Progress: &s.live.Progress, Traces: s.traces,
		Load: o.Load, Resent: o.Resent, AcceptLoss: o.AcceptLoss, AllowUnmatched: o.AllowUnmatched,
		StandbyEvery: cmp.Or(o.standbyEvery, standby.Every),
		Registry:     s.metrics, Log: s.log}
	s.refresh = &refreshing.Refresh{Config: s.cfg, Settings: s.settings, Store: s.store, Shards: s.cfg.Shards,
		Undirected: s.id.Undirected, Orders: s.topics.Orders, Served: s.served, Heads: s.heads, Lease: right,
		Queue: wiring.TaskQueue(s.cfg, s.client, s.log), Builds: s.roles.Refresh, Format: wiring.FormatOf(s.cfg),
		CanaryTopic: s.topics.Canary, Device: o.Device, Progress: &s.live.Progress, Traces: s.traces,
		Registry: s.metrics, Log: s.log}
	s.publish = &publishing.Publish{Store: s.store, Shards: s.cfg.Shards, Groups: groups, Topics: s.topics,
		Pipeline: pipeline, Served: s.served, Heads: s.heads, Format: wiring.FormatOf(s.cfg), Records: records,
		Attributes: attributes, Embeds: s.roles.Embed, ControlRecords: s.cfg.Sink.ControlRecords, Poll: pollAlone,
		Exemplars: s.cfg.Telemetry.Traces.Exemplars, Registry: s.metrics,
		Fail: func(err error) { _ = s.fail(err) }, Log: s.log}
	teller, err := s.teller()
	if err != nil {
		return err
	}
	s.answer = &answering.Answer{Store: s.store, Served: s.served, Settings: s.settings, HTTP: s.cfg.HTTP, Health: s,
		Texts: texts, Teller: teller, Live: s.live, Registry: s.metrics,
		Exemplars: s.cfg.Telemetry.Traces.Exemplars, Log: s.log}
	return nil
}

// teller is how this process tells what items are ordered with, nil without orders, or if it does not follow them.
func (s *Service) teller() (*answering.Teller, error) {
	if s.topics.Ordered == "" || !s.roles.Serve {
		return nil, nil
	}
	right, err := process.Lease(s.store, answering.OrderedLease, s.log)
	return &answering.Teller{Topic: s.topics.Ordered, Client: s.client, Right: right, Log: s.log}, err
}

// membership is that of this process in its consumer groups. Its members publish the same attributes.
func (s *Service) membership(attributes []string) membership.Membership {
	published := fmt.Sprintf("%q, %q, %s", s.topics.Embeddings, s.topics.Canary, wiring.FormatOf(s.cfg))
	if len(attributes) > 0 {
		published += ", " + strings.Join(attributes, ", ")
	}
	return membership.Membership{Client: s.client, Pipeline: s.id.ID, Group: s.cfg.Group(), Published: published,
		SessionTimeout: s.cfg.Kafka.SessionTimeout}
}

// joinParts gives parts each other, as the roles of the process want it.
func (s *Service) joinParts() {
	s.refresh.Backlog, s.refresh.Moved = s.ingest, s.answer.Drift
	s.publish.Damage = s.refresh
	if s.roles.Stream {
		s.publish.Poll = pollBeside
		if s.roles.Embed {
			s.ingest.Follower = s.publish
		}
	}
	if s.roles.Serve {
		s.answer.Shards = s.cfg.Shards
		if !s.topics.Repartitioned() {
			s.answer.Ends = func(ctx context.Context) (map[string][]int64, error) {
				return s.client.EndOffsets(ctx, s.topics.Given()...)
			}
		}
	}
}

// claimTopics makes the pipeline the owner of the topics that it fills for its shards. Another pipeline of its name
// would send others there.
func (s *Service) claimTopics(ctx context.Context, pipeline owner.Pipeline) error {
	if !s.roles.Stream {
		return nil
	}
	for _, topic := range s.topics.Filled() {
		_, claimed, err := owner.Ensure(ctx, s.client, topic, pipeline)
		if err != nil {
			return err
		}
		if claimed {
			s.log.Info("the topic belongs to this pipeline from now on", "topic", topic, "pipeline", pipeline.String())
		}
	}
	return nil
}

const (
	// pollBeside is the interval at which a follower looks for manifests in the process that streams the shard, which
	// wakes it for each; pollAlone, in another process, which is not woken.
	pollBeside = 5 * time.Second
	pollAlone  = 500 * time.Millisecond
)

// runParts runs the parts that the process has, until ctx ends or one of them fails.
func (s *Service) runParts(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	s.group, ctx = errgroup.WithContext(ctx)
	for _, part := range []struct {
		here bool
		run  func(context.Context) error
	}{
		{s.roles.Stream, s.ingest.Run},
		{s.roles.Embed && !s.roles.Stream, s.publish.Run},
		{s.roles.Build, s.refresh.DoTasks},
		{s.roles.Refresh, s.refresh.Measure},
		{s.roles.Refresh, s.refresh.WatchDeletions},
		{true, s.answer.Run},
		{s.broker != nil, s.watchBroker},
	} {
		if part.here {
			s.group.Go(func() error { return s.fail(part.run(ctx)) })
		}
	}
}

// Run serves until ctx ends or the service fails: embeddings follow the changes, and a new generation starts by itself
// once enough has changed (refreshing.Refresh.Run).
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := s.whileAlive(ctx)
	defer stop()
	return s.refresh.Run(ctx)
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
	return wiring.EnsureTopics(ctx, s.client, s.cfg)
}

// startTraces begins to send traces, if they are asked for. Without a collector, or with one that is not understood,
// the pipeline does its work all the same.
func (s *Service) startTraces(ctx context.Context, to sdktrace.SpanExporter) {
	var err error
	s.traces, err = telemetry.Start(ctx, telemetry.Options{Ratio: s.cfg.Telemetry.Traces.Ratio,
		Version: buildinfo.Read().Version, Pipeline: s.cfg.Pipeline, Instance: process.Name(), Log: s.log,
		Exporter: to})
	if err != nil {
		s.log.Error("no traces are sent", "error", err)
	}
}

// newView returns what the page at / shows of this process.
func (s *Service) newView(o Options) *live.View {
	p := live.Process{Pipeline: s.cfg.Pipeline, Name: process.Name(), Roles: strings.Split(s.roles.String(), ","),
		Metrics: s.metrics, Unready: s.Unready, Index: func() *live.Index { return s.answer.Index() },
		Drift: func() *live.Drift { return s.refresh.Drift() }}
	if o.Status != nil {
		p.Status = func(ctx context.Context) (any, error) { return o.Status(ctx, s) }
	}
	return live.New(p, o.Progress)
}

// probeAge is the age at which the object of a probe is certainly left over. A probe takes seconds,
// and the clocks of a store and its users agree within minutes.
const probeAge = time.Hour

// removeProbes removes the objects that probes of killed processes have left.
func (s *Service) removeProbes(ctx context.Context) {
	if err := sink.RemoveProbes(ctx, s.store, time.Now().Add(-probeAge)); err != nil {
		s.log.Warn("left-over probe objects not removed; the next start tries again", "error", err)
	}
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

// Client returns the service's connection to Kafka.
func (s *Service) Client() *client.Client { return s.client }

// Store returns the pipeline's object store.
func (s *Service) Store() sink.Store { return s.store }

// Identity returns what the store belongs to.
func (s *Service) Identity() commitlog.Identity { return s.id }

// Roles returns what this process does.
func (s *Service) Roles() Roles { return s.roles }

// Current returns the generation being served, nil before the first.
func (s *Service) Current() *generation.Generation { return s.served.Current() }

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

// whileAlive returns a context that ends with ctx, or when the service fails, which is its cause then.
func (s *Service) whileAlive(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.failed:
			cancel(s.failure())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Close stops consuming, waits for work in flight, and releases everything. The next run reads
// again what was not committed.
func (s *Service) Close() error {
	s.cancel()
	err := s.group.Wait()
	s.letters.Close()
	return errors.Join(err, s.closeClients())
}

func (s *Service) closeClients() (err error) {
	if s.publish != nil {
		err = s.publish.Close()
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.broker != nil {
		err = errors.Join(err, s.broker.Close())
	}
	return errors.Join(err, s.traces.Close())
}
