package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/sinks"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/ingest/mirror"
	"giantstream/ingest/owner"
	"giantstream/sink/memstore"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
	"giantstream/stream/commitlog"
)

var ownerSeeds = flag.Int("owner-seeds", 6, "pairs of pipelines in TestPipelinesThatShare")

// party is one of two pipelines, with a sink.
type party struct {
	cfg   config.Config
	store *memstore.Store
	db    *vectordbtest.Memory
}

// shareable are what two pipelines may have in common. Each makes it that of the first one.
var shareable = map[string]func(mine, first *party){
	"name":         func(mine, first *party) { mine.cfg.Pipeline = first.cfg.Pipeline },
	"inputs":       func(mine, first *party) { shareInputs(mine, first) },
	"embeddings":   func(mine, first *party) { mine.cfg.Kafka.Topics.Embeddings = first.cfg.Kafka.Topics.Embeddings },
	"mirror":       func(mine, first *party) { mine.cfg.Kafka.Topics.Mirror = first.cfg.Mirror() },
	"dead letters": func(mine, first *party) { mine.cfg.Kafka.Topics.DeadLetters = first.cfg.DeadLetters() },
	"canary": func(mine, first *party) {
		mine.cfg.Sink.CanaryTopic, first.cfg.Sink.CanaryTopic = "next", "next"
	},
	"canary of embeddings": func(mine, first *party) { mine.cfg.Sink.CanaryTopic = first.cfg.Kafka.Topics.Embeddings },
	"group":                func(mine, first *party) { mine.cfg.Kafka.Group = first.cfg.Group() },
	"store":                func(mine, first *party) { mine.store = first.store },
	"state":                func(mine, first *party) { mine.cfg.StateDir = first.cfg.StateDir },
	"table":                func(mine, first *party) { mine.db = first.db },
}

func shareInputs(mine, first *party) {
	mine.cfg.Kafka.Topics.Nodes = first.cfg.Kafka.Topics.Nodes
	mine.cfg.Kafka.Topics.Edges = first.cfg.Kafka.Topics.Edges
}

func newParty(t *testing.T, brokers []string, name string) *party {
	p := &party{cfg: config.Default(), store: &memstore.Store{}, db: vectordbtest.NewMemory()}
	c := &p.cfg
	c.Pipeline, c.Shards, c.HTTP.Listen = name, 1, ""
	c.StateDir = filepath.Join(t.TempDir(), name)
	c.Kafka.Brokers, c.Kafka.SessionTimeout, c.Window.Time = brokers, time.Second, 20*time.Millisecond
	c.Kafka.Topics.Nodes, c.Kafka.Topics.Edges = name+".nodes", name+".edges"
	c.Kafka.Topics.Embeddings = name + ".embeddings"
	c.Train.Encoder, c.Evaluate.HoldoutEdges, c.Embedding.Dim, c.Refresh.MinNodes = "linear", 0, 4, 2
	c.Sink.ControlRecords = true
	return p
}

// send sends the items of a pipeline, which have the same ids and other texts than those of another.
func (p *party) send(t *testing.T, c *client.Client, word string) {
	t.Helper()
	if err := wiring.EnsureTopics(t.Context(), c, &p.cfg); err != nil {
		t.Fatal(err)
	}
	producer := c.NewProducer()
	defer producer.Close()
	at := time.Unix(1_700_000_000, 0)
	if word == "blue" {
		at = at.Add(time.Second) // where both send to one topic, these win
	}
	for i := range 12 {
		id := fmt.Sprint("n", i)
		if i >= 8 {
			id = word + id
		}
		for topic, value := range map[string]string{
			p.cfg.Kafka.Topics.Nodes: fmt.Sprintf(`{"id":%q,"text":"%s shoe number %d"}`, id, word, i),
			p.cfg.Kafka.Topics.Edges: fmt.Sprintf(`{"src":%q,"dst":"n%d"}`, id, (i+1)%8),
		} {
			if err := producer.Send(t.Context(), kafka.Message{Topic: topic, Key: []byte(id), Value: []byte(value),
				Time: at}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// run publishes everything and lets the sink follow; it returns what refused the pipeline or its sink.
func (p *party) run(ctx context.Context, c *client.Client) error {
	if err := upToDateOnce(ctx, &p.cfg, p.store); err != nil {
		return err
	}
	for {
		err := sinks.Run(ctx, sinks.Options{Config: &p.cfg, Index: p.db.Process(), Client: c, UntilCaughtUp: true,
			Every: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, vectordb.ErrTakenOver) {
			return err
		}
	}
}

// refuses reports whether an error says that two pipelines must not share something.
func refuses(err error) bool {
	for _, one := range []error{owner.ErrForeign, mirror.ErrForeign, commitlog.ErrIdentity, commitlog.ErrSettings,
		vectordb.ErrOwner, vectordb.ErrTopic} {
		if errors.Is(err, one) {
			return true
		}
	}
	return strings.Contains(err.Error(), "belongs to another pipeline") || // its group
		strings.Contains(err.Error(), "the workers of a group are of one pipeline") || // which the other one has left
		strings.Contains(err.Error(), "another process") // the state's lock
}

// published is what a topic or a table has, by node.
type published map[string]string

func publishedOn(t *testing.T, s *Service, topic string) published {
	out := published{}
	for id, r := range newestOf(t, s, topic) {
		if !r.Deleted {
			out[id] = fmt.Sprint(r.Generation, vectordbtest.Literal(r.Vector))
		}
	}
	return out
}

func (p *party) readable() published {
	out := published{}
	for id, r := range p.db.Rows() {
		out[id] = fmt.Sprint(r.Generation, r.Vector)
	}
	return out
}

// alone returns what a pipeline publishes that shares nothing, from the items of one or of both.
func alone(t *testing.T, words ...string) published {
	o := newOutliving(t)
	p := newParty(t, o.cfg.Kafka.Brokers, "alone")
	for _, word := range words {
		p.send(t, o.tester.client, word)
	}
	if err := p.run(t.Context(), o.tester.client); err != nil {
		t.Fatal(err)
	}
	if topic := publishedOn(t, o.tester, p.cfg.Kafka.Topics.Embeddings); !maps.Equal(topic, p.readable()) {
		t.Fatalf("the table is not the topic: %v, %v", p.readable(), topic)
	}
	return p.readable()
}

// Two pipelines share any of what two pipelines may share by mistake. Either one is refused, or each ends with what it
// publishes alone, on its topic and in the table of its sink. What a refused one leaves does not change that.
func TestPipelinesThatShare(t *testing.T) {
	if testing.Short() {
		t.Skip("runs several pairs of pipelines")
	}
	expected := map[string]published{"red": alone(t, "red"), "blue": alone(t, "blue"), "both": alone(t, "red", "blue")}
	for seed := range *ownerSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { share(t, uint64(seed), expected) })
	}
}

func share(t *testing.T, seed uint64, expected map[string]published) {
	rnd := rand.New(rand.NewPCG(seed, 33))
	o := newOutliving(t)
	first, second := newParty(t, o.cfg.Kafka.Brokers, "first"), newParty(t, o.cfg.Kafka.Brokers, "second")
	testers := map[*party]*Service{first: o.tester, second: o.tester}
	apart := rnd.IntN(3) == 0 // names of two clusters are not the same topics and groups
	if apart {
		elsewhere := newOutliving(t)
		second.cfg.Kafka.Brokers, testers[second] = elsewhere.cfg.Kafka.Brokers, elsewhere.tester
	}
	if rnd.IntN(2) == 0 {
		first.cfg.Ingest.Repartition, second.cfg.Ingest.Repartition = true, true
	}
	names := slices.Sorted(maps.Keys(shareable))
	rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	shared := names[:rnd.IntN(5)]
	if apart {
		shared = append(shared, "embeddings", "table")
	}
	if slices.Contains(shared, "store") { // with the name as well it would be one pipeline with two workers
		shared = slices.DeleteFunc(shared, func(name string) bool { return name == "name" })
	}
	for _, name := range shared {
		shareable[name](second, first)
	}
	if second.cfg.Sink.CanaryTopic == second.cfg.Kafka.Topics.Embeddings {
		return // refused by the configuration
	}
	want := map[*party]published{first: expected["red"], second: expected["blue"]}
	if slices.Contains(shared, "inputs") && !apart {
		want = map[*party]published{first: expected["both"], second: expected["both"]}
	}
	first.send(t, testers[first].client, "red")
	second.send(t, testers[second].client, "blue")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	refused := map[*party]error{}
	var mu sync.Mutex
	run := func(p *party) {
		if err := p.run(ctx, testers[p].client); err != nil {
			mu.Lock()
			defer mu.Unlock()
			if refused[p] = err; !refuses(err) {
				t.Errorf("shared %q: pipeline %s fails, and does not say that it is not alone: %v", shared,
					p.cfg.Pipeline, err)
			}
		}
	}
	how := "one after the other"
	if apart {
		how = "on two clusters"
	}
	if rnd.IntN(2) == 0 {
		how += ", at once"
		var both sync.WaitGroup
		both.Go(func() { run(first) })
		both.Go(func() { run(second) })
		both.Wait()
	} else {
		run(first)
		run(second)
	}
	// The one that is left goes on as if nothing had been.
	for _, p := range []*party{first, second} {
		if refused[p] == nil {
			run(p)
		}
	}
	for _, p := range []*party{first, second} {
		if refused[p] != nil {
			continue
		}
		if got := publishedOn(t, testers[p], p.cfg.Kafka.Topics.Embeddings); !maps.Equal(got, want[p]) {
			t.Errorf("shared %q, %s: pipeline %s has published\n%v\nand alone\n%v", shared, how, p.cfg.Pipeline, got,
				want[p])
		}
		if got := p.readable(); !maps.Equal(got, want[p]) {
			t.Errorf("shared %q, %s: readers of pipeline %s see\n%v\nand alone\n%v", shared, how, p.cfg.Pipeline, got,
				want[p])
		}
	}
	t.Logf("shared %q, %s: %v", shared, how, slices.Collect(maps.Values(refused)))
}
