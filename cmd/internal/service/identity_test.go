package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/config"
	"giantstream/ingest/mirror"
	"giantstream/ingest/owner"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// A second pipeline, with a store of its own, under the names of the first one.
func TestASecondPipelineOfTheSameNamesIsRefused(t *testing.T) {
	o := newOutliving(t)
	second := *o
	second.store, second.cfg.StateDir = &memstore.Store{}, filepath.Join(t.TempDir(), "second")
	first := o.start()
	o.send("old", 0, 30)
	if err := first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The embeddings topic has an owner.
	start := func() error {
		_, err := Start(t.Context(),
			Options{Config: &second.cfg, Store: second.store, Log: slog.New(slog.DiscardHandler)})
		return err
	}
	if err := start(); !errors.Is(err, owner.ErrForeign) || !strings.Contains(err.Error(), first.id.ID) {
		t.Errorf("with the embeddings topic of the first pipeline, it starts: %v", err)
	}

	// With a topic of its own, the mirror topic tells.
	second.cfg.Kafka.Topics.Embeddings = "second.embeddings"
	if err := start(); !errors.Is(err, mirror.ErrForeign) {
		t.Errorf("with the mirror topic of the first pipeline, it starts: %v", err)
	}

	// With a mirror topic of its own, or none, it is the group.
	second.cfg.Kafka.Topics.Mirror = "second.mirror"
	if _, err := second.drain(); err == nil || !strings.Contains(err.Error(), "belongs to another pipeline") ||
		!strings.Contains(err.Error(), first.id.ID) {
		t.Errorf("in the group of the first pipeline: %v", err)
	}
	o.send("new", 0, 30)
	if err := first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.checkTexts("new", 0, 30)
	if err := first.Close(); err != nil {
		t.Error(err)
	}

	// With a group of its own, it is a pipeline of its own.
	second.cfg.Kafka.Group = "second"
	second.drained()
	second.checkTexts("new", 0, 30)
}

// Two workers of one pipeline that would publish to other topics, or other vectors, would each publish a part.
func TestWorkersThatPublishOtherThingsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"kafka.topics.embeddings": func(c *config.Config) { c.Kafka.Topics.Embeddings = "others" },
		"sink.canary_topic":       func(c *config.Config) { c.Sink.CanaryTopic = "canaries" },
		"sink.embedding_type":     func(c *config.Config) { c.Sink.EmbeddingType = "float16" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOutliving(t)
			second := *o
			second.cfg.StateDir = filepath.Join(t.TempDir(), "second")
			change(&second.cfg)
			first := o.start()
			o.send("old", 0, 30)
			if err := first.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			other := second.start()
			if err := run(t, other); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("beside a worker with another one, it runs: %v", err)
			}
			_ = other.Close() // what it failed with
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			second.drained() // after it, everything is published as it says
		})
	}
}

// What decides how records become the graph cannot change by accident.
func TestOtherSettingsAreRefusedByName(t *testing.T) {
	for name, change := range map[string]struct {
		edit func(*config.Config)
		says string
	}{
		"mapping": {func(c *config.Config) { c.Ingest.Nodes.Text = config.List{"title", "body"} },
			`ingest.nodes.text was "text" and is "title, body"`},
		"mode": {func(c *config.Config) { c.Ingest.Edges.Mode = "replace" },
			`ingest.edges.mode was "add" and is "replace"`},
		"topic": {func(c *config.Config) { c.Kafka.Topics.Nodes = "others" },
			`kafka.topics.nodes was "nodes" and is "others"`},
		"repartition": {func(c *config.Config) { c.Ingest.Repartition = true },
			`ingest.repartition was "false" and is "true"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOutliving(t)
			o.send("old", 0, 3)
			o.drained()
			change.edit(&o.cfg)
			_, err := Start(t.Context(), Options{Config: &o.cfg, Store: o.store, Log: slog.New(slog.DiscardHandler)})
			if !errors.Is(err, commitlog.ErrSettings) || !strings.Contains(err.Error(), change.says) {
				t.Fatalf("it starts, or does not say why not: %v", err)
			}
			o.drained(func(o *Options) { o.AcceptSettings = true })
			o.drained()
		})
	}
}

// A worker whose mapping differs from that of one that runs does not join, and the running one goes on.
func TestAWorkerWithAnotherMappingDoesNotJoin(t *testing.T) {
	o := newOutliving(t)
	first := o.start()
	o.send("old", 0, 3)
	if err := first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := o.cfg
	other.StateDir = filepath.Join(t.TempDir(), "second")
	other.Ingest.Nodes.Text = config.List{"title"}
	_, err := Start(t.Context(), Options{Config: &other, Store: o.store, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, commitlog.ErrSettings) ||
		!strings.Contains(err.Error(), `ingest.nodes.text was "text" and is "title"`) {
		t.Errorf("the second worker: %v", err)
	}
	o.send("new", 0, 3)
	if err := first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.checkTexts("new", 0, 3)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

// Of two workers with different mappings that start at once on an empty store, one runs and the other one does not
// join. A running worker stops once another one has replaced the settings and joins.
func TestTwoFirstWorkersWithDifferentMappings(t *testing.T) {
	o := newOutliving(t)
	cfgs := [2]config.Config{o.cfg, o.cfg}
	cfgs[1].StateDir = filepath.Join(t.TempDir(), "second")
	cfgs[1].Ingest.Nodes.Text = config.List{"title"}
	var services [2]*Service
	var errs [2]error
	var starts sync.WaitGroup
	for i := range cfgs {
		starts.Go(func() {
			services[i], errs[i] = Start(t.Context(), Options{Config: &cfgs[i], Store: o.store,
				Log: slog.New(slog.DiscardHandler)})
		})
	}
	starts.Wait()
	// The settings of the one that has joined are those of the store. The other one has not started, or stops.
	var claimed commitlog.Identity
	for !claimed.Claimed {
		var err error
		if claimed, err = commitlog.LoadIdentity(t.Context(), o.store); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	winner := 0
	if claimed.Settings["ingest.nodes.text"] == "title" {
		winner = 1
	}
	err := errs[1-winner]
	if s := services[1-winner]; s != nil {
		<-s.failed
		err = s.Close()
	}
	if errs[winner] != nil || !errors.Is(err, commitlog.ErrSettings) ||
		!strings.Contains(err.Error(), "ingest.nodes.text was") {
		t.Fatalf("the winner: %v, the loser: %v; want one that says what differs", errs[winner], err)
	}
	o.send("old", 0, 3)
	first := services[winner]
	if err := first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := Start(t.Context(), Options{Config: &cfgs[1-winner], Store: o.store, AcceptSettings: true,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	<-first.failed
	if err := first.Close(); !errors.Is(err, commitlog.ErrSettings) {
		t.Errorf("the first worker ends with %v", err)
	}
	o.send("new", 0, 3)
	if err := second.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// The first line of the log says which build runs where, on what.
func TestTheStartSaysWhatRunsWhere(t *testing.T) {
	o := newOutliving(t)
	var log bytes.Buffer
	s := o.start(func(o *Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	var line struct {
		Msg, Version, Pipeline, ID, Roles, Store string
		Shards                                   int
		Brokers, Topics                          []string
	}
	for text := range strings.Lines(log.String()) {
		if strings.Contains(text, "pipeline started") {
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if line.Version != buildinfo.Read().String() || line.Pipeline != o.cfg.Pipeline || line.ID != s.id.ID ||
		line.Shards != o.cfg.Shards || line.Roles != "stream,refresh,embed" || line.Store != o.store.URL() ||
		!slices.Equal(line.Brokers, o.cfg.Kafka.Brokers) || !slices.Contains(line.Topics, o.cfg.Kafka.Topics.Nodes) ||
		!slices.Contains(line.Topics, o.cfg.Kafka.Topics.Embeddings) {
		t.Errorf("%+v in\n%s", line, log.String())
	}
}

// Settings that decide the embeddings make a new generation where a command brings them up to date, once. A
// service says what differs and keeps its generation.
func TestOtherSettingsOfEmbeddingsAreNotIgnored(t *testing.T) {
	o := newOutliving(t, func(c *config.Config) {
		c.Evaluate.HoldoutEdges, c.Evaluate.ProbeRates = 0, nil
		c.Featurize.ProjectionDim, c.Embedding.Dim, c.Train.Encoder = 24, 16, "linear"
	})
	produceGraph(t, o.tester, &o.cfg)
	newest := func() *generation.Doc {
		t.Helper()
		latest, err := generation.Newest(t.Context(), o.store)
		if err != nil {
			t.Fatal(err)
		}
		return latest.Current
	}
	for _, want := range []struct {
		generation int64
		edit       func(*config.Config)
	}{
		{1, func(*config.Config) {}},
		{1, func(c *config.Config) { c.Evaluate.ProbeRates = []float64{0.5} }},          // of the report alone
		{1, func(c *config.Config) { c.Sink.EmbeddingType = "int8" }},                   // narrowed when published
		{1, func(c *config.Config) { c.Train.BERT.MaxTokens, c.Window.Changes = 7, 9 }}, // of another encoder
		{2, func(c *config.Config) { c.Embedding.Dim = 8 }},
		{2, func(*config.Config) {}},
		{3, func(c *config.Config) { c.Sink.EmbeddingType = "float32" }},
	} {
		want.edit(&o.cfg)
		if err := upToDateOnce(t.Context(), &o.cfg, o.store); err != nil {
			t.Fatal(err)
		}
		if doc := newest(); doc.Generation != want.generation {
			t.Fatalf("generation %d, want %d", doc.Generation, want.generation)
		}
	}
	o.cfg.Train.Seed = 77
	var log bytes.Buffer
	s := o.start(func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	due, why, err := s.refresh.Due(t.Context())
	if err != nil || due {
		t.Errorf("a service refreshes at once: %q, %v", why, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if says := log.String(); !strings.Contains(says, "giantstream rebuild") || !strings.Contains(says, "generation=3") ||
		!strings.Contains(says, "train.seed was") {
		t.Errorf("the start does not say what differs:\n%s", says)
	}
	if doc := newest(); doc.Generation != 3 {
		t.Errorf("generation %d", doc.Generation)
	}
}
