package service

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/service/heads"
	"giantstream/cmd/internal/service/ingesting"
	"giantstream/cmd/internal/service/membership"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/internal/retry"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

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
					here := s.ingest.Watches.States()
					return len(here) == 1 && here[0].Ready
				})
				o.recreate(topics...)
				o.send("new", 0, test.records)
				<-s.failed
				err = s.failure()
				if why := s.Unready(t.Context()); why == "" {
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
			wants := []string{`"nodes"`, "offset 30", "--accept-loss"}
			if test.records > 0 {
				wants = append(wants, fmt.Sprintf("offsets 0 to %d of now", test.records-1))
			} else if strings.Contains(err.Error(), "of now") {
				t.Errorf("the error tells of records of an empty topic: %v", err)
			}
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
	id, err := commitlog.LoadIdentity(t.Context(), o.store)
	if err != nil {
		t.Fatal(err)
	}
	feeds, _, err := wiring.FeedOf(&o.cfg, o.tester.client, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	other := &ingesting.Ingest{Config: &o.cfg, Store: o.store, Identity: id, Topics: wiring.TopicsOf(&o.cfg),
		Feeds:  feeds,
		Groups: membership.Membership{Client: o.tester.client}, Heads: &heads.Heads{Store: o.store,
			Shards: o.cfg.Shards},
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}
	if err := other.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the records that nobody reads are counted", func() bool {
		_, err := other.Await()(t.Context())
		return err != nil && strings.Contains(err.Error(), "read by nobody")
	})
	if why := other.Behind(t.Context()); !strings.Contains(why, "in partitions 1 to 1") {
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
				return strings.Contains(s.Unready(t.Context()), "records were lost")
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
		got, err := wiring.Backfill(t.Context(), &o.cfg, o.tester.client, backfill.Sources{Nodes: inputs}, nil)
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
			s := o.start()
			err = retry.Poll(t.Context(), 100*time.Millisecond, func() (bool, error) {
				families, err := s.metrics.Gather()
				for _, f := range families { // without it as long as the process has no shard
					if f.GetName() == "giantstream_lost_records" && f.GetMetric()[0].GetGauge().GetValue() == 10 {
						return true, err
					}
				}
				return false, err
			})
			if err != nil {
				t.Fatalf("the metric does not say that 10 records are lost: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.drained(acceptLoss(topic))
			o.drained()
			o.checkTexts("more", 61, 70)
		})
	}
}

// The consumer group of a copier is moved while nobody runs, by a person or because the broker forgets its offsets: no
// record is left out, and what the topic has deleted is lost only if it was not copied.
func TestAGroupOfCopiesThatIsMovedLosesNothing(t *testing.T) {
	const copied, sent = 30, 50
	for _, test := range []struct {
		what   string
		to     int64 // negative: the broker forgets the offset
		before int64 // the topic deletes the records before it
		lost   int64
	}{
		{"forward", sent, 0, 0},
		{"forward, and the records are gone", sent, 40, 10},
		{"back", 10, 0, 0},
		{"back, and the records that were copied are gone", 10, 25, 0},
		{"back, and others are gone, too", 10, 40, 10},
		{"forgotten", -1, 0, 0},
		{"forgotten, and the records that were copied are gone", -1, 25, 0},
		{"forgotten, and others are gone, too", -1, 40, 10},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			o := newOutliving(t, func(c *config.Config) { c.Ingest.Repartition = true })
			topic := o.cfg.Kafka.Topics.Nodes
			o.send("old", 0, copied)
			o.drained()
			o.send("new", copied, sent)
			if test.before > 0 {
				deleteRecords(t, o.cfg.Kafka.Brokers, topic, test.before)
			}
			moveGroup(t, o, "giantstream-test-rekey-nodes", topic, test.to)
			lost, err := o.drain()
			if err != nil {
				t.Fatal(err)
			}
			var offsets int64
			for _, l := range lost {
				offsets += l.Offsets
			}
			if offsets != test.lost {
				t.Errorf("lost: %v, want %d records", lost, test.lost)
			}
			o.checkTexts("old", 0, copied)
			o.checkTexts("new", int(max(copied, test.before)), sent)
			// The group stands where its copier has committed again.
			if again, err := o.drain(); err != nil || len(again) != len(lost) {
				t.Errorf("once more: lost %v, %v", again, err)
			}
		})
	}
}

// moveGroup commits an offset to a consumer group without members, as tools do, or makes the broker forget it.
func moveGroup(t *testing.T, o *outliving, group, topic string, to int64) {
	t.Helper()
	if to < 0 {
		forgetOffset(t, o.cfg.Kafka.Brokers, group, topic)
		return
	}
	res, err := o.admin.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1,
		Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 0, Offset: to}}}})
	if err != nil || res.Topics[topic][0].Error != nil {
		t.Fatal(err, res)
	}
}
