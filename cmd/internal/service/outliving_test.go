package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
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
func (o *outliving) drain(edit ...func(*Options)) ([]commitlog.ShardLost, error) {
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

// deleteRecords deletes the records of partition 0 before an offset.
func (o *outliving) deleteRecords(topic string, before int64) {
	o.t.Helper()
	deleteRecords(o.t, o.cfg.Kafka.Brokers, topic, before)
}
