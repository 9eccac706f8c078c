package service

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/verify"
)

const verifiedNodes = 40

// pipeline is one that has run, and its store.
type pipeline struct {
	cfg   config.Config
	store *memstore.Store
	// rounds is how often the graph was sent.
	rounds int
	seed   int
}

// fullBlocks reports whether every shard has enough manifests for a merged block, and some after it.
func (p *pipeline) fullBlocks(t *testing.T) bool {
	t.Helper()
	for shard := range p.cfg.Shards {
		head, err := commitlog.Head(t.Context(), p.store, shard)
		if err != nil {
			t.Fatal(err)
		}
		if head == nil || head.Seq < 80 {
			return false
		}
	}
	return p.rounds > 1
}

// newPipeline runs a pipeline on an embedded broker: many windows, merged blocks, checkpoints, and two generations. It
// was started twice. Pipelines of different seeds differ in their texts.
func newPipeline(t *testing.T, seed int) *pipeline {
	t.Helper()
	cfg := config.Default()
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", 2, ""
	dir := t.TempDir()
	cfg.StateDir, cfg.Kafka.DataDir = filepath.Join(dir, "state"), filepath.Join(dir, "broker")
	cfg.Window.Changes, cfg.Window.Time = 1, 50*time.Millisecond
	cfg.Evaluate.HoldoutEdges, cfg.Train.Encoder = 0, "linear"
	cfg.Refresh.MinChanges = 1e9 // generations are made when the test wants them
	cfg.Ingest.Repartition = true
	cfg.Sink.CanaryTopic = "canary"
	p := &pipeline{cfg: cfg, store: &memstore.Store{}, seed: seed}
	p.run(t, func(s *Service) {
		p.send(t, s, 1)
		p.upToDate(t, s)
	})
	p.run(t, func(s *Service) {
		for round := 2; !p.fullBlocks(t); round++ {
			p.send(t, s, round)
			p.rounds = round
			if err := s.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.upToDate(t, s)
	})
	for shard := range cfg.Shards {
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: p.store})
		if merged, err := c.Merge(t.Context()); err != nil || merged == 0 {
			t.Fatalf("shard %d: %d blocks merged (%v)", shard, merged, err)
		}
	}
	identity, err := commitlog.LoadIdentity(t.Context(), p.store)
	if err != nil {
		t.Fatal(err)
	}
	// as if its first release had written format 1
	id, err := seal.JSON(map[string]string{"id": identity.ID}, sink.PlaceOf(p.store, "pipeline-id"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.store, "pipeline-id", id)
	return p
}

// run runs the pipeline's service for the time of a call.
func (p *pipeline) run(t *testing.T, do func(*Service)) {
	t.Helper()
	s, err := Start(t.Context(), Options{Config: &p.cfg, Store: p.store,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	do(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func (p *pipeline) upToDate(t *testing.T, s *Service) {
	t.Helper()
	err := s.Drain(t.Context())
	if err == nil {
		_, _, err = s.UpToDate(t.Context())
	}
	if err == nil {
		err = s.WaitPublished(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// send sends one node and two edges after another, each flushed, so that windows are small.
func (p *pipeline) send(t *testing.T, s *Service, round int) {
	t.Helper()
	producer := s.Client().NewProducer()
	defer producer.Close() //nolint:errcheck // flushed below
	put := func(topic, key string, value any) {
		data, err := json.Marshal(value)
		if err == nil {
			err = producer.Send(t.Context(), kafka.Message{Topic: topic, Key: []byte(key), Value: data,
				Time: time.Unix(1_700_000_000+int64(round), 0)})
		}
		if err == nil {
			err = producer.Flush(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	words := []string{"router packet socket", "matrix vector tensor", "flour butter oven", "goal match league"}
	for i := range verifiedNodes {
		id := fmt.Sprintf("n%03d", i)
		put(p.cfg.Kafka.Topics.Nodes, id, map[string]any{"id": id, "label": fmt.Sprint(i % 4),
			"text": fmt.Sprintf("%s %s %d %d", words[i%4], words[(i+round)%4], i/8, round+100*p.seed)})
		for _, far := range []int{4 * (1 + round%4), 24} {
			put(p.cfg.Kafka.Topics.Edges, id, map[string]any{"src": id, "dst": fmt.Sprintf("n%03d", (i+far)%verifiedNodes)})
		}
	}
}

// copyOf returns a store with the same objects.
func copyOf(t *testing.T, store sink.Store) (*memstore.Store, []string) {
	t.Helper()
	var keys []string
	out := &memstore.Store{}
	out.SetPipeline(store.Pipeline()) // or what is written to the copy would not say whose it is
	for info, err := range store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := sink.ReadAll(t.Context(), store, info.Key)
		if err == nil {
			err = sink.PutBytes(t.Context(), out, info.Key, data)
		}
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return out, keys
}

func read(t *testing.T, store sink.Store, key string) []byte {
	t.Helper()
	data, err := sink.ReadAll(t.Context(), store, key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, store sink.Store, key string, data []byte) {
	t.Helper()
	if err := sink.PutBytes(t.Context(), store, key, data); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, store sink.Store, o verify.Options) (*audit.Audit, []verify.Graph) {
	t.Helper()
	o.Store, o.Generations = store, wiring.Generations{Store: store}
	found, graphs, err := verify.Store(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return found, graphs
}

// findingsAbout are the findings about an object.
func findingsAbout(found *audit.Audit, key string) (about []audit.Finding) {
	for _, f := range found.Findings {
		if f.Object == key {
			about = append(about, f)
		}
	}
	return about
}

func TestVerify(t *testing.T) {
	p := newPipeline(t, 0)
	t.Run("a whole store", func(t *testing.T) {
		found, graphs := check(t, p.store, verify.Options{Deep: true})
		for _, f := range found.Findings {
			if f.Kind != audit.Orphan { // a file of the first checkpoint, say
				t.Errorf("%+v", f)
			}
		}
		for _, g := range graphs {
			if g.Damage != "" || g.Nodes != verifiedNodes {
				t.Errorf("%v", g)
			}
		}
		if len(graphs) != 3 || found.Objects < 200 || found.Unsealed > 0 {
			t.Errorf("%d graphs, %d objects, %d without checksum", len(graphs), found.Objects, found.Unsealed)
		}
	})
	t.Run("every flipped bit is found", func(t *testing.T) { everyFlip(t, p) })
	t.Run("a store that takes no writes", func(t *testing.T) { readOnly(t, p) })
	t.Run("what is derived is repaired", func(t *testing.T) { everyRepair(t, p) })
	t.Run("a generation without its document", func(t *testing.T) { noDocument(t, p) })
	t.Run("a gap in the log", func(t *testing.T) { gap(t, p) })
	t.Run("a log that lost its end", func(t *testing.T) { lostEnd(t, p) })
	t.Run("a manifest of another log", func(t *testing.T) { swapped(t, p) })
	t.Run("rewritten rows train no generation", func(t *testing.T) { rewritten(t, p) })
	t.Run("against the topics", func(t *testing.T) { against(t, p) })
}

func against(t *testing.T, p *pipeline) {
	in, detach, err := wiring.OpenSource(t.Context(), &p.cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer detach() //nolint:errcheck // a test's
	topics := verify.Topics{Inputs: in.Feed.Topics.Stating(), Source: in,
		Undirected: p.cfg.Ingest.Undirected}
	d, err := verify.Against(t.Context(), p.store, p.cfg.Shards, topics, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.Total != 0 || d.Nodes != verifiedNodes ||
		d.Records != int64(3*verifiedNodes*p.rounds) || d.Open != 0 || len(d.Gone) > 0 {
		t.Errorf("%+v", d)
	}
}
