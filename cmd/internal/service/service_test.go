package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/service/servicetest"
	"giantstream/config"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
)

const nodes = 160

var eventually = servicetest.Eventually

// words of the four topics that the test's nodes write about.
var words = [4][]string{
	{"router", "packet", "socket", "network", "address"},
	{"matrix", "vector", "tensor", "gradient", "kernel"},
	{"flour", "butter", "oven", "sugar", "dough"},
	{"goal", "match", "league", "keeper", "striker"},
}

func text(node, about int) string {
	w := words[about]
	return fmt.Sprintf("%s %s %s %s n%d", w[node%5], w[(node/5)%5], w[(node/7)%5], w[(node/3)%5], node)
}

func nodeID(i int) string { return fmt.Sprintf("node-%03d", i) }

// testService starts a pipeline on an embedded broker and a store in memory.
func testService(t *testing.T, store sink.Store, edit ...func(*config.Config)) (*Service, *config.Config) {
	t.Helper()
	return testServiceWith(t, store, AllRoles(), edit...)
}

func testServiceWith(t *testing.T, store sink.Store, roles Roles,
	edit ...func(*config.Config)) (*Service, *config.Config) {
	t.Helper()
	return startService(t, Options{Store: store, Roles: roles, Log: slog.New(slog.DiscardHandler)}, edit...)
}

// startService starts a service with these options on a configuration for tests.
func startService(t *testing.T, o Options, edit ...func(*config.Config)) (*Service, *config.Config) {
	t.Helper()
	cfg := configured(t, edit...)
	o.Config = cfg
	o.Status = func(_ context.Context, s *Service) (any, error) {
		return map[string]string{"hello": "<b>& " + s.Identity().Name}, nil
	}
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, cfg
}

// configured is a configuration for tests.
func configured(t *testing.T, edit ...func(*config.Config)) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Pipeline = "test"
	cfg.Shards = 2
	cfg.StateDir = filepath.Join(t.TempDir(), "state")
	cfg.Kafka.DataDir = filepath.Join(t.TempDir(), "broker")
	cfg.HTTP.Listen = ""
	cfg.Window.Time = 100 * time.Millisecond
	cfg.Evaluate.HoldoutEdges = 0
	cfg.Train.Encoder = "linear"
	cfg.Refresh.MinChanges = 0.2
	for _, f := range edit {
		f(&cfg)
	}
	return &cfg
}

func produce(t *testing.T, s *Service, topic string, records map[string]any) {
	t.Helper()
	p := s.Client().NewProducer()
	defer p.Close()
	for key, value := range records {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if value == nil {
			data = nil
		}
		if err := p.Send(t.Context(), kafka.Message{Topic: topic, Key: []byte(key), Value: data,
			Time: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func produceGraph(t *testing.T, s *Service, cfg *config.Config) {
	t.Helper()
	texts, edges := map[string]any{}, map[string]any{}
	for i := range nodes {
		texts[nodeID(i)] = map[string]any{"id": nodeID(i), "text": text(i, i%4), "label": fmt.Sprint(i % 4)}
		edges[nodeID(i)] = map[string]any{"src": nodeID(i), "dst": nodeID((i + 4) % nodes)}
	}
	produce(t, s, cfg.Kafka.Topics.Nodes, texts)
	produce(t, s, cfg.Kafka.Topics.Edges, edges)
	chords := map[string]any{}
	for i := range nodes {
		chords[nodeID(i)] = map[string]any{"src": nodeID(i), "dst": nodeID((i + 24) % nodes)}
	}
	produce(t, s, cfg.Kafka.Topics.Edges, chords)
}

// sinkTopic returns the newest record of every key on the embeddings topic.
func sinkTopic(t *testing.T, s *Service, cfg *config.Config) map[string]embedding.Record {
	t.Helper()
	return newestOf(t, s, cfg.Kafka.Topics.Embeddings)
}

// newestOf returns the newest record of every key on a topic of embeddings.
func newestOf(t *testing.T, s *Service, topic string) map[string]embedding.Record {
	t.Helper()
	newest := map[string]embedding.Record{}
	for _, m := range recordsOf(t, s, topic) {
		if embeddingtopic.IsControl(m) {
			continue
		}
		r, err := embeddingtopic.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		newest[r.NodeID] = r
	}
	return newest
}

// recordsOf returns what a topic has now, partition by partition.
func recordsOf(t *testing.T, s *Service, topic string) (records []kafka.Message) {
	t.Helper()
	ends, err := s.Client().EndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for p, end := range ends[topic] {
		for m, err := range s.Client().Range(t.Context(), topic, p, 0, end) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, m)
		}
	}
	return records
}

func TestGenerationsStartByThemselvesAndChangesAreServedMeanwhile(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := testService(t, store)
	produceGraph(t, s, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- s.Run(ctx) }()

	eventually(t, "generation 1 is current", func() bool { return s.served.Number() == 1 })
	eventually(t, "every node has an embedding of generation 1", func() bool {
		return len(sinkTopic(t, s, cfg)) == nodes
	})

	// One change is below min_changes: served by generation 1, within a window.
	before := sinkTopic(t, s, cfg)[nodeID(0)]
	produce(t, s, cfg.Kafka.Topics.Nodes,
		map[string]any{nodeID(0): map[string]any{"id": nodeID(0), "text": text(0, 2)}, nodeID(1): nil})
	eventually(t, "the changed node has a new embedding, the deleted one a tombstone", func() bool {
		now := sinkTopic(t, s, cfg)
		return now[nodeID(0)].Seq > before.Seq && now[nodeID(1)].Deleted
	})
	if g := sinkTopic(t, s, cfg)[nodeID(0)].Generation; g != 1 {
		t.Errorf("the changed node was embedded by generation %d, want 1", g)
	}

	// A third of the nodes changes: a new generation, by itself.
	changed := map[string]any{}
	for i := 2; i < nodes; i += 3 {
		changed[nodeID(i)] = map[string]any{"id": nodeID(i), "text": text(i, (i+1)%4)}
	}
	produce(t, s, cfg.Kafka.Topics.Nodes, changed)
	eventually(t, "generation 2 is current", func() bool { return s.served.Number() >= 2 })
	eventually(t, "every live node has an embedding of the new generation", func() bool {
		for _, r := range sinkTopic(t, s, cfg) {
			if !r.Deleted && r.Generation < 2 {
				return false
			}
		}
		return true
	})
	doc, err := generation.Current(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Graph.Nodes != nodes-1 || doc.Graph.Deleted != 1 || doc.Parent == 0 {
		t.Errorf("generation %d: graph %+v, parent %d", doc.Generation, doc.Graph, doc.Parent)
	}
	cancel()
	if err := <-running; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func TestUpToDateDoesNothingTwice(t *testing.T) {
	store := &memstore.Store{}
	s, cfg := testService(t, store)
	produceGraph(t, s, cfg)
	for _, wantBuilt := range []bool{true, false} {
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		doc, built, err := s.UpToDate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if doc.Generation != 1 || built != wantBuilt {
			t.Errorf("generation %d, built %v; want 1, %v", doc.Generation, built, wantBuilt)
		}
		if err := s.WaitPublished(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(sinkTopic(t, s, cfg)); got != nodes {
		t.Errorf("%d nodes on the sink topic, want %d", got, nodes)
	}
}

func TestEmptyTopicsAreAnErrorThatSaysWhatToLookAt(t *testing.T) {
	s, _ := testService(t, &memstore.Store{})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.UpToDate(t.Context()); err == nil {
		t.Error("no error")
	} else {
		t.Log(err)
	}
}
