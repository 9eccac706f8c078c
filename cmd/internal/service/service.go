package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/config"
	"giantstream/ingest"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"
	"giantstream/ingest/feed"
	"giantstream/ingest/schema"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/lease"
	"giantstream/stream"
	"giantstream/train"
	"giantstream/train/generation"
)

// Options of a Service.
type Options struct {
	Config *config.Config
	Store  sink.Store
	Log    *slog.Logger
	// Roles of this process; none means all.
	Roles Roles
	// Progress shows long work; nil shows nothing.
	Progress train.Progress
}

// Service is one running process of a pipeline.
type Service struct {
	cfg      *config.Config
	store    sink.Store
	log      *slog.Logger
	roles    Roles
	progress train.Progress

	broker    *broker.Broker
	client    *client.Client
	registry  *schema.Registry // nil unless values name their schema
	topics    ingest.Topics
	feeds     feed.Config
	publisher *embedding.Publisher
	serving   serving
	heads     heads
	metrics   *metrics
	watches   watches

	// lease is the right to build generations; builder is the number of
	// another process's holding of it that was logged last. Both belong to the
	// goroutine that calls Run or UpToDate.
	lease   *lease.Lease
	builder int64

	// draining > 0: shards commit as soon as they are caught up.
	draining atomic.Int32
	// wake tells the followers of a new generation or manifest.
	wake wakeups

	group  *errgroup.Group
	cancel context.CancelFunc
	// failed is closed when a part of the service has stopped for good;
	// failure returns why.
	failed   chan struct{}
	failOnce sync.Once
	failErr  error
}

// Start opens everything a pipeline needs and begins to consume. It returns
// once the topics are there and shards are being assigned; ctx bounds the
// life of the service, Close ends it.
func Start(ctx context.Context, o Options) (_ *Service, err error) {
	s := &Service{cfg: o.Config, store: o.Store, log: o.Log, roles: cmp.Or(o.Roles, AllRoles()), progress: train.OrDiscard(o.Progress),
		failed: make(chan struct{}), metrics: newMetrics()}
	s.metrics.registry.MustRegister(shardCollector{&s.watches})
	s.topics = TopicsOf(o.Config)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeClients())
		}
	}()
	if err := sink.Probe(ctx, s.store); err != nil {
		return nil, err
	}
	s.removeProbes(ctx)
	if err := stream.EnsureIdentity(ctx, s.store, stream.Identity{
		Name: s.cfg.Pipeline, Shards: s.cfg.Shards, Undirected: s.cfg.Ingest.Undirected}); err != nil {
		return nil, err
	}
	if s.lease, err = refreshLease(s.store, s.log); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if s.roles.Stream {
		if err := s.preflight(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.loadCurrent(ctx); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.group, ctx = errgroup.WithContext(ctx)
	switch {
	case s.roles.Stream:
		s.group.Go(func() error { return s.fail(s.consume(ctx)) })
		if s.topics.Rekeyed() {
			s.group.Go(func() error { return s.fail(s.rekey(ctx)) })
		}
	case s.roles.Embed:
		s.group.Go(func() error { return s.fail(s.embed(ctx)) })
	}
	if s.cfg.HTTP.Listen != "" {
		s.group.Go(func() error { return s.fail(s.serveHTTP(ctx)) })
	}
	return s, nil
}

// connect starts the embedded broker if the configuration wants it, and makes
// sure of the topics.
func (s *Service) connect(ctx context.Context) error {
	opts, err := clientOptions(s.cfg)
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
	if err := EnsureTopics(ctx, s.client, s.cfg); err != nil {
		return err
	}
	var translators map[string]*schema.Translator
	if s.registry, translators, err = openSchemas(s.cfg); err != nil {
		return err
	}
	mapping, limits := MappingOf(s.cfg)
	s.feeds = feed.Config{Client: s.client, Topics: s.topics, Mapping: mapping, Limits: limits, Translators: translators, Rekeyed: s.topics.Rekeyed(),
		Shards: s.cfg.Shards, Clock: time.Now, Log: s.log, Metrics: &s.metrics.feed}
	format, err := embedding.ParseFormat(s.cfg.Sink.Format)
	if err != nil {
		return err
	}
	s.publisher = embedding.NewPublisher(
		embedding.NewWriter(s.client.Brokers(), s.topics.Embeddings, s.client.Transport()), format)
	return nil
}

// Client returns the service's connection to Kafka.
func (s *Service) Client() *client.Client { return s.client }

// Store returns the pipeline's object store.
func (s *Service) Store() sink.Store { return s.store }

// Roles returns what this process does.
func (s *Service) Roles() Roles { return s.roles }

// Current returns the generation being served, nil before the first.
func (s *Service) Current() *generation.Generation { return s.serving.current.Load() }

// Wait returns when the service has failed or its context has ended.
func (s *Service) Wait() error { return s.group.Wait() }

// fail notes the first error that stops the service.
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

// Close stops consuming, lets what is in flight finish, and releases
// everything. What was not committed is read again by the next run.
func (s *Service) Close() error {
	s.cancel()
	return errors.Join(s.group.Wait(), s.closeClients())
}

func (s *Service) closeClients() (err error) {
	if s.publisher != nil {
		err = s.publisher.Close()
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.broker != nil {
		err = errors.Join(err, s.broker.Close())
	}
	return err
}

// TopicsOf returns the names of a pipeline's topics.
func TopicsOf(cfg *config.Config) ingest.Topics {
	t := ingest.Topics{Nodes: cfg.Kafka.Topics.Nodes, Edges: cfg.Kafka.Topics.Edges,
		Embeddings: cfg.Kafka.Topics.Embeddings, DeadLetters: cfg.DeadLetters()}
	if cfg.Ingest.Undirected {
		t.Mirror = cfg.Mirror()
	}
	if cfg.Ingest.Repartition {
		t.SourceNodes, t.SourceEdges = t.Nodes, t.Edges
		t.Nodes, t.Edges = cfg.KeyedNodes(), cfg.KeyedEdges()
	}
	return t
}

// MappingOf returns how records become nodes and edges, and their limits.
func MappingOf(cfg *config.Config) (decode.Mapping, decode.Limits) {
	in := cfg.Ingest
	return decode.Mapping{
			Nodes: decode.NodeMapping{ID: in.Nodes.ID, Text: in.Nodes.Text, Label: in.Nodes.Label,
				EventTime: in.Nodes.EventTime, Edges: in.Nodes.Edges, Deleted: deletedField},
			Edges: decode.EdgeMapping{Src: in.Edges.Src, Dst: in.Edges.Dst, EventTime: in.Edges.EventTime,
				Mode: decode.Mode(in.Edges.Mode), Deleted: deletedField},
		}, decode.Limits{RecordBytes: int(in.Limits.RecordBytes), TextBytes: int(in.Limits.TextBytes),
			EdgesPerRecord: in.Limits.EdgesPerRecord}
}

// deletedField in a record deletes the node or the edge, besides a null value.
const deletedField = "deleted"

// EnsureTopics creates the pipeline's topics where they are missing and
// checks that the inputs are partitioned alike.
func EnsureTopics(ctx context.Context, c *client.Client, cfg *config.Config) error {
	topics := TopicsOf(cfg)
	specs := topics.Specs(cfg.Shards)
	for i := range specs {
		if n := specs[i].Name; topics.Rekeyed() && (n == topics.Nodes || n == topics.Edges) {
			specs[i].MaxMessageBytes = keyedMessageBytes(cfg)
		}
	}
	return c.EnsureTopics(ctx, specs...)
}

// Check reports what only the packages below can tell of a configuration:
// whether the field paths of the mapping and the topic names make sense.
func Check(cfg *config.Config) error {
	mapping, limits := MappingOf(cfg)
	_, nodes := decode.Nodes(mapping.Nodes, limits, cfg.Shards)
	_, edges := decode.Edges(mapping.Edges, limits, cfg.Shards)
	return errors.Join(nodes, edges, TopicsOf(cfg).Validate())
}

// clientOptions says how to reach the cluster that the configuration names.
func clientOptions(cfg *config.Config) (client.Options, error) {
	o := client.Options{Brokers: cfg.Kafka.Brokers, ClientID: "giantstream-" + cfg.Pipeline}
	if cfg.Kafka.Embedded() {
		return o, nil
	}
	if t := cfg.Kafka.TLS; t.Enabled {
		var err error
		if o.TLS, err = tlsConfig("kafka.tls", t.CAFile, t.CertFile, t.KeyFile); err != nil {
			return o, err
		}
		o.TLS.InsecureSkipVerify = t.InsecureSkipVerify //nolint:gosec // asked for by name
	}
	if s := cfg.Kafka.SASL; s.Mechanism != "" {
		o.SASL = &client.SASL{Mechanism: s.Mechanism, Username: s.Username, Password: string(s.Password)}
	}
	return o, nil
}
