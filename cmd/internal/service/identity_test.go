package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/buildinfo"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/ingest/mirror"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
	"giantstream/train/generation"
)

// outliving is a pipeline whose broker and store outlive its service.
type outliving struct {
	t     *testing.T
	cfg   config.Config
	store *memstore.Store
	// tester has a client of its own.
	tester *Service
	admin  kafka.Client
}

func newOutliving(t *testing.T, edit ...func(*config.Config)) *outliving {
	t.Helper()
	brokers, _ := testBroker(t)
	cfg := config.Default()
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", 1, ""
	cfg.StateDir = filepath.Join(t.TempDir(), "state")
	cfg.Kafka.Brokers, cfg.Kafka.SessionTimeout = brokers, time.Second
	cfg.Window.Time = 50 * time.Millisecond
	for _, f := range edit {
		f(&cfg)
	}
	c, err := client.New(client.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o := &outliving{t: t, cfg: cfg, store: &memstore.Store{}, tester: &Service{client: c},
		admin: kafka.Client{Addr: kafka.TCP(brokers...)}}
	if err := wiring.EnsureTopics(t.Context(), c, &cfg); err != nil {
		t.Fatal(err)
	}
	return o
}

// send sends one node with an edge for each id, all with the same event time.
func (o *outliving) send(text string, from, to int) {
	o.t.Helper()
	p := o.tester.Client().NewProducer()
	defer p.Close()
	at := time.Unix(1_700_000_000, 0)
	for i := from; i < to; i++ {
		id := nodeID(i)
		for topic, value := range map[string]string{
			o.cfg.Kafka.Topics.Nodes: fmt.Sprintf(`{"id":%q,"text":"%s of %s"}`, id, text, id),
			o.cfg.Kafka.Topics.Edges: fmt.Sprintf(`{"src":%q,"dst":%q}`, id, nodeID(i+1)),
		} {
			if err := p.Send(o.t.Context(), kafka.Message{Topic: topic, Key: []byte(id), Value: []byte(value),
				Time: at}); err != nil {
				o.t.Fatal(err)
			}
		}
	}
	if err := p.Flush(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

// start starts a service.
func (o *outliving) start(edit ...func(*Options)) *Service {
	o.t.Helper()
	opts := Options{Config: &o.cfg, Store: o.store, Log: slog.New(slog.DiscardHandler)}
	for _, f := range edit {
		f(&opts)
	}
	s, err := Start(o.t.Context(), opts)
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// drain runs a service until everything is committed, and returns what it says to be lost.
func (o *outliving) drain(edit ...func(*Options)) ([]Lost, error) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	s := o.start(edit...)
	err := s.Drain(ctx)
	lost, lostErr := s.Lost(ctx)
	closed := s.Close()
	return lost, errors.Join(err, lostErr, unless(err != nil, closed))
}

func unless(skip bool, err error) error {
	if skip {
		return nil
	}
	return err
}

// drained is drain that must succeed without a loss.
func (o *outliving) drained(edit ...func(*Options)) {
	o.t.Helper()
	lost, err := o.drain(edit...)
	if err != nil {
		o.t.Fatal(err)
	}
	if len(lost) > 0 {
		o.t.Fatalf("lost: %v", lost)
	}
}

// recreate deletes a topic and creates it again.
func (o *outliving) recreate(topics ...string) {
	o.t.Helper()
	if _, err := o.admin.DeleteTopics(o.t.Context(), &kafka.DeleteTopicsRequest{Topics: topics}); err != nil {
		o.t.Fatal(err)
	}
	var configs []kafka.TopicConfig
	for _, topic := range topics {
		configs = append(configs, kafka.TopicConfig{Topic: topic, NumPartitions: o.cfg.Shards, ReplicationFactor: 1})
	}
	res, err := o.admin.CreateTopics(o.t.Context(), &kafka.CreateTopicsRequest{Topics: configs})
	if err != nil {
		o.t.Fatal(err)
	}
	for topic, err := range res.Errors {
		if err != nil {
			o.t.Fatal(topic, err)
		}
	}
}

// texts returns the texts of the live nodes, and links the number of labels, as the newest rows have
// them.
func (o *outliving) graph() (texts map[string]string, links int) {
	o.t.Helper()
	cut, err := commitlog.CurrentCut(o.t.Context(), o.store, o.cfg.Shards)
	if err != nil {
		o.t.Fatal(err)
	}
	texts = map[string]string{}
	for p := range o.cfg.Shards {
		for r, err := range cut.Newest(o.t.Context(), o.store, p) {
			if err != nil {
				o.t.Fatal(err)
			}
			if !r.Deleted {
				texts[r.NodeID] = r.Text
				links += len(r.Labels)
			}
		}
	}
	return texts, links
}

// checkTexts compares the texts of nodes [from, to).
func (o *outliving) checkTexts(text string, from, to int) {
	o.t.Helper()
	texts, _ := o.graph()
	for i := from; i < to; i++ {
		if want := fmt.Sprintf("%s of %s", text, nodeID(i)); texts[nodeID(i)] != want {
			o.t.Fatalf("the text of %s is %q, want %q", nodeID(i), texts[nodeID(i)], want)
		}
	}
}

func acceptLoss(topics ...string) func(*Options) {
	return func(o *Options) { o.AcceptLoss = topics }
}

func allInputs(o *outliving) []string { return wiring.TopicsOf(&o.cfg).Inputs() }

// Whatever a topic that was deleted and created again holds, and whether a service runs meanwhile,
// not one of its records passes for one of the old topic: the service stops and says which offsets
// nobody reads. Accepted on purpose, the new topic is read from its start, and its records win over
// those of the old one, although their offsets are lower and their event times the same.
func TestATopicThatWasCreatedAgainIsNoticed(t *testing.T) {
	for _, test := range []struct {
		what    string
		records int
		running bool
		all     bool // every input topic, not the nodes alone
	}{
		{"smaller", 10, false, false},
		{"as large", 30, false, false},
		{"larger", 50, false, true},
		{"empty", 0, false, false},
		{"smaller, while running", 10, true, false},
		{"larger, while running", 50, true, false},
		{"all larger, while running", 50, true, true},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			o := newOutliving(t)
			o.send("old", 0, 30)
			o.drained()
			topics := []string{o.cfg.Kafka.Topics.Nodes}
			if test.all {
				topics = allInputs(o)
			}
			var err error
			if test.running {
				s := o.start()
				eventually(t, "the shard has come", func() bool {
					here := s.watches.all()
					return len(here) == 1 && here[0].ready
				})
				o.recreate(topics...)
				o.send("new", 0, test.records)
				<-s.failed
				err = s.failure()
				if why := s.unready(t.Context()); why == "" {
					t.Error("the service is ready")
				}
				_ = s.Close() // the same failure
			} else {
				o.recreate(topics...)
				o.send("new", 0, test.records)
				_, err = o.drain()
			}
			if !errors.Is(err, shard.ErrInputReplaced) {
				t.Fatalf("the run ends with %v", err)
			}
			wants := []string{`"nodes"`, "offset 30", "--accept-loss", fmt.Sprintf("offsets 0 to %d", test.records)}
			if test.running {
				wants = wants[:3] // the shard may notice while the new topic is still empty
			}
			for _, want := range wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			o.checkTexts("old", 0, 30)

			o.drained(acceptLoss(topics...))
			o.checkTexts("new", 0, test.records)
			o.checkTexts("old", test.records, 30)
			o.drained()
			o.send("newest", 0, 5)
			o.drained()
			o.checkTexts("newest", 0, 5)
			_ = os.RemoveAll(o.cfg.StateDir) // and a new disk changes nothing
			o.send("last", 5, 9)
			o.drained()
			o.checkTexts("last", 5, 9)
			o.checkTexts("newest", 0, 5)
			// A chain: each link is a label of both ends. The end of the chain is no node.
			if _, links := o.graph(); links != 2*max(30, test.records)-1 {
				t.Errorf("%d labels, want %d", links, 2*max(30, test.records)-1)
			}
		})
	}
}

func TestPartitionsThatAreAddedAreNoticed(t *testing.T) {
	o := newOutliving(t, listen(t))
	o.send("old", 0, 30)
	s := o.start()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := o.admin.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: o.cfg.Kafka.Topics.Nodes, Count: 2}}})
	if err != nil || res.Errors[o.cfg.Kafka.Topics.Nodes] != nil {
		t.Fatal(err, res)
	}
	o.send("new", 30, 60)
	<-s.failed
	if err := s.failure(); !errors.Is(err, shard.ErrPartitions) || !strings.Contains(err.Error(), "has 2") {
		t.Errorf("the service stops with %v", err)
	}
	for _, path := range []string{"/readyz", "/healthz"} {
		// The service has stopped: it answers that it is not well, or no more.
		if code, body := get(t, &o.cfg, path); code == http.StatusOK {
			t.Errorf("%s answers %d %s", path, code, body)
		}
	}
	_ = s.Close() // the same failure
	// A process that does not stream says it as well, and how many records it is about.
	other := &Service{cfg: &o.cfg, store: o.store, client: o.tester.client, topics: wiring.TopicsOf(&o.cfg)}
	eventually(t, "the records that nobody reads are counted", func() bool {
		_, err := other.backlog(t.Context())
		return err != nil && strings.Contains(err.Error(), "read by nobody")
	})
	if why := other.unready(t.Context()); !strings.Contains(why, "in partitions 1 to 1") {
		t.Errorf("not ready because %q", why)
	}
}

// The state and its checkpoints are lost, and the topics have deleted what they were made from, or
// the state is there, and records were deleted that nobody had read.
func TestLostRecordsStayToldUntilTheyAreAccepted(t *testing.T) {
	for _, test := range []struct {
		what     string
		state    bool // is kept
		from, to string
	}{
		{"with the state", true, "offsets 30 to 39", ""},
		{"without the state", false, "offsets 0 to 39", ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			o := newOutliving(t, func(c *config.Config) { c.State.CheckpointEvery = 0 })
			o.send("old", 0, 30)
			o.drained()
			o.send("more", 30, 45)
			if !test.state {
				if err := os.RemoveAll(o.cfg.StateDir); err != nil {
					t.Fatal(err)
				}
			}
			o.deleteRecords(o.cfg.Kafka.Topics.Nodes, 40)
			for range 2 {
				lost, err := o.drain()
				if err != nil {
					t.Fatal(err)
				}
				if len(lost) != 1 || !strings.Contains(lost[0].String(), test.from) {
					t.Fatalf("lost: %v", lost)
				}
			}
			s := o.start()
			eventually(t, "it is not ready, because of the loss", func() bool {
				return strings.Contains(s.unready(t.Context()), "records were lost")
			})
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			o.checkTexts("more", 40, 45)
			o.drained(acceptLoss(o.cfg.Kafka.Topics.Nodes))
			o.drained()
		})
	}
}

// deleteRecords deletes the records of partition 0 before an offset.
func (o *outliving) deleteRecords(topic string, before int64) {
	o.t.Helper()
	deleteRecords(o.t, o.cfg.Kafka.Brokers, topic, before)
}

// A sink topic that was emptied, created again or renamed gets all embeddings again.
func TestAnotherSinkTopicGetsEverything(t *testing.T) {
	for what, change := range map[string]func(o *outliving){
		"emptied": func(o *outliving) {
			deleteRecords(o.t, o.cfg.Kafka.Brokers, o.cfg.Kafka.Topics.Embeddings, -1)
		},
		"created again": func(o *outliving) { o.recreate(o.cfg.Kafka.Topics.Embeddings) },
		"renamed":       func(o *outliving) { o.cfg.Kafka.Topics.Embeddings = "renamed" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o := newOutliving(t, func(c *config.Config) {
				c.Evaluate.HoldoutEdges, c.Evaluate.ProbeRates = 0, nil
				c.Featurize.ProjectionDim, c.Embedding.Dim, c.Train.Encoder = 24, 16, "linear"
			})
			produceGraph(t, o.tester, &o.cfg)
			for range 2 {
				if err := upToDateOnce(t.Context(), &o.cfg, o.store); err != nil {
					t.Fatal(err)
				}
				if got := len(sinkTopic(t, o.tester, &o.cfg)); got != nodes {
					t.Fatalf("%d nodes on the sink topic, want %d", got, nodes)
				}
				change(o)
			}
		})
	}
}

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

	// The mirror topic tells.
	_, err := Start(t.Context(), Options{Config: &second.cfg, Store: second.store, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, mirror.ErrForeign) {
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

// Files that were sent to a topic are sent again to the topic that takes its place.
func TestABackfillToATopicThatWasCreatedAgainSendsEverything(t *testing.T) {
	o := newOutliving(t)
	path := filepath.Join(t.TempDir(), "nodes.jsonl")
	if err := os.WriteFile(path, []byte(`{"id":"a","text":"a"}`+"\n"+`{"id":"b","text":"b"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []backfill.Stats{{Nodes: 2}, {Resumed: 2}, {Nodes: 2}} {
		inputs, err := backfill.Files(path)
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			o.recreate(o.cfg.Kafka.Topics.Nodes)
		}
		got, err := wiring.Backfill(t.Context(), &o.cfg, o.tester.client, inputs, nil, nil)
		if err != nil || got.Nodes != want.Nodes || got.Resumed != want.Resumed {
			t.Errorf("backfill %d: %+v, %v; want %+v", i, got, err, want)
		}
	}
}

// Of topics that are repartitioned the same holds: one that was created again is noticed, and what
// it deletes before it is copied is told. Partitions that are added are copied.
func TestATopicThatIsCopiedIsNoticed(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprintf("running %t", running), func(t *testing.T) {
			t.Parallel()
			o := newOutliving(t, func(c *config.Config) { c.Ingest.Repartition = true })
			topic := o.cfg.Kafka.Topics.Nodes
			o.send("old", 0, 30)
			o.drained()
			var err error
			if running {
				s := o.start()
				if err := s.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				o.recreate(topic)
				o.send("new", 0, 50)
				err = s.Drain(t.Context())
				_ = s.Close() // may be the same failure
			} else {
				o.recreate(topic)
				o.send("new", 0, 50)
				_, startErr := Start(t.Context(), Options{Config: &o.cfg, Store: o.store,
					Log: slog.New(slog.DiscardHandler)})
				err = startErr
			}
			if !errors.Is(err, shard.ErrInputReplaced) || !strings.Contains(err.Error(), "--accept-loss nodes") {
				t.Fatalf("the run ends with %v", err)
			}
			o.drained(acceptLoss(topic))
			o.checkTexts("new", 0, 50)
			o.send("newest", 0, 5)
			o.drained()
			o.checkTexts("newest", 0, 5)

			o.send("more", 50, 70)
			deleteRecords(t, o.cfg.Kafka.Brokers, topic, 65)
			for range 2 {
				if lost, err := o.drain(); err != nil || len(lost) != 1 || lost[0].Offsets != 10 {
					t.Fatalf("lost: %v, %v", lost, err)
				}
			}
			o.drained(acceptLoss(topic))
			o.drained()
			o.checkTexts("more", 61, 70)
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
	due, why, err := s.refreshDue(t.Context())
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
