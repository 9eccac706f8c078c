package service

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/reshard"
	"giantstream/stream/shard"
	"giantstream/train/generation"
)

// resharding is a pipeline that goes from one number of shards to another.
type resharding struct {
	brokers   []string
	client    *client.Client
	from, to  *memstore.Store
	old, next config.Config
}

func newResharding(t *testing.T, before, after int, grown bool) *resharding {
	t.Helper()
	brokers, _ := testBroker(t)
	c, err := client.New(client.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := &resharding{brokers: brokers, client: c, from: &memstore.Store{Name: "from"}, to: &memstore.Store{Name: "into"}}
	r.old = reshardConfig(t, brokers, before)
	r.next = reshardConfig(t, brokers, after)
	r.next.Kafka.Topics.Mirror = "mirror-afterwards"
	if !grown {
		r.next.Kafka.Topics.Nodes, r.next.Kafka.Topics.Edges = "nodes-afterwards", "edges-afterwards"
		r.next.Ingest.Baskets.Topic = "orders-afterwards"
	}
	if err := wiring.EnsureTopics(t.Context(), c, &r.old); err != nil {
		t.Fatal(err)
	}
	return r
}

func reshardConfig(t *testing.T, brokers []string, shards int) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", shards, ""
	cfg.StateDir = filepath.Join(t.TempDir(), "state")
	cfg.Kafka.Brokers, cfg.Kafka.SessionTimeout = brokers, time.Second
	cfg.Window = config.Window{Changes: 50, Bytes: 1 << 20, Time: 100 * time.Millisecond}
	mapStatements(&cfg)
	cfg.Evaluate.HoldoutEdges, cfg.Evaluate.ProbeRates = 0, nil
	// Generations of pipelines that built others before them are to be equal.
	cfg.Refresh.Space = "new"
	cfg.Featurize.ProjectionDim, cfg.Embedding.Dim, cfg.Train.Encoder = 24, 16, "linear"
	return cfg
}

// upToDate runs a service on a store until everything is published.
func (r *resharding) upToDate(t *testing.T, cfg *config.Config, store sink.Store) {
	t.Helper()
	s, err := Start(t.Context(), Options{Config: cfg, Store: store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, []*Service{s})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func (r *resharding) run(t *testing.T) (*reshard.Result, error) {
	t.Helper()
	return r.runWith(t, func(*reshard.Options) {})
}

// runWith is run with other options.
func (r *resharding) runWith(t *testing.T, change func(*reshard.Options)) (*reshard.Result, error) {
	t.Helper()
	o, err := wiring.ReshardOptions(t.Context(), &r.next, r.client, r.from, r.to, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	o.Dir = filepath.Join(t.TempDir(), "states")
	change(&o)
	return reshard.Run(t.Context(), o)
}

func (r *resharding) published(t *testing.T) (n int64) {
	t.Helper()
	ends, err := r.client.EndOffsets(t.Context(), r.old.Kafka.Topics.Embeddings)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range ends[r.old.Kafka.Topics.Embeddings] {
		n += end
	}
	return n
}

// wholeGraph is the outcome of unsharded, which is computed once.
var wholeGraph struct {
	sync.Mutex
	portrait
}

// unsharded is what a pipeline makes of statementsOfAGraph that never had another number of shards.
func unsharded(t *testing.T) portrait {
	t.Helper()
	wholeGraph.Lock()
	defer wholeGraph.Unlock()
	if wholeGraph.hash == "" {
		r := newResharding(t, 2, 2, true)
		sendStatements(t, &r.old, r.client, statementsOfAGraph())
		r.upToDate(t, &r.old, r.from)
		wholeGraph.portrait = portray(t, &r.old, r.client, r.from)
	}
	return wholeGraph.portrait
}

// Another number of shards changes nothing that a user sees: the graph, the rows, the generation and what is
// published. Records that come afterwards find what was there before.
func TestReshard(t *testing.T) {
	if testing.Short() {
		t.Skip("runs several pipelines")
	}
	statements := statementsOfAGraph()
	half := len(statements) / 2
	want := unsharded(t)
	for _, c := range []struct{ before, after int }{{3, 8}, {8, 3}, {1, 4}} {
		t.Run(fmt.Sprintf("%d to %d", c.before, c.after), func(t *testing.T) {
			r := newResharding(t, c.before, c.after, false)
			sendStatements(t, &r.old, r.client, statements[:half])
			r.upToDate(t, &r.old, r.from)
			before, sent := portray(t, &r.old, r.client, r.from), r.published(t)

			result, err := r.run(t)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := generation.Current(t.Context(), r.to)
			if err != nil {
				t.Fatal(err)
			}
			if result.Hash != wholeHash(t, r.from, c.before) || doc.GraphHash != before.hash ||
				result.Generation != doc.Generation {
				t.Errorf("result %+v of a graph with hash %s", result, before.hash)
			}
			after := portray(t, &r.next, r.client, r.to)
			compare(t, "newest row", after.rows, before.rows)
			if after.orders != before.orders {
				t.Errorf("orders %s, want %s", after.orders, before.orders)
			}

			r.upToDate(t, &r.next, r.to)
			if again := r.published(t) - sent; again != 0 {
				t.Errorf("%d embeddings were published again", again)
			}
			if now, err := generation.Current(t.Context(), r.to); err != nil || now.Generation != doc.Generation {
				t.Errorf("generation %v, %v after a start; want %d still", now, err, doc.Generation)
			}

			sendStatements(t, &r.next, r.client, statements[half:])
			r.upToDate(t, &r.next, r.to)
			got := portray(t, &r.next, r.client, r.to)
			if got.hash != want.hash {
				t.Errorf("graph %s, want %s", got.hash, want.hash)
			}
			if got.orders != want.orders {
				t.Errorf("orders %s, want %s", got.orders, want.orders)
			}
			compare(t, "newest row", got.rows, want.rows)
			for id, e := range got.embeddings {
				e.Generation = want.embeddings[id].Generation // it is the second one here
				got.embeddings[id] = e
			}
			compare(t, "embedding", got.embeddings, want.embeddings)

			_, err = Start(t.Context(), Options{Config: &r.old, Store: r.from, Log: slog.New(slog.DiscardHandler)})
			if !errors.Is(err, commitlog.ErrResharded) || !strings.Contains(err.Error(), r.to.URL()) {
				t.Errorf("a worker of before started: %v", err)
			}
			if again, err := r.run(t); err != nil || !again.Already {
				t.Errorf("the same command once more: %+v, %v", again, err)
			}
		})
	}
}

// wholeHash is the fingerprint of nodes, links, orders and vectors.
func wholeHash(t *testing.T, store sink.Store, shards int) string {
	t.Helper()
	cut, err := commitlog.CurrentCut(t.Context(), store, shards)
	if err != nil {
		t.Fatal(err)
	}
	hasher := commitlog.NewGraphHasher()
	for p := range shards {
		for row, err := range cut.Facts(t.Context(), store, p) {
			if err != nil {
				t.Fatal(err)
			}
			hasher.Add(&row.Row)
		}
	}
	_, orders := ordersIn(t, store, shards)
	if err := hasher.Merge(orders); err != nil {
		t.Fatal(err)
	}
	_, vectors := vectorsIn(t, store, shards)
	if err := hasher.Merge(vectors); err != nil {
		t.Fatal(err)
	}
	return hasher.Sum()
}

// Partitions are added while workers run: they stop, naming the command, and with it the pipeline goes on.
func TestReshardAfterPartitionsWereAdded(t *testing.T) {
	if testing.Short() {
		t.Skip("runs several pipelines")
	}
	statements := statementsOfAGraph()
	half := len(statements) / 2
	want := unsharded(t)
	r := newResharding(t, 3, 8, true)
	sendStatements(t, &r.old, r.client, statements[:half])
	s, err := Start(t.Context(), Options{Config: &r.old, Store: r.from, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, []*Service{s})
	r.grow(t)
	if err := s.Run(t.Context()); !errors.Is(err, shard.ErrPartitions) || !strings.Contains(err.Error(),
		"giantstream reshard") {
		t.Fatalf("the service ended with %v", err)
	}
	_ = s.Close() // with the same error
	sendStatements(t, &r.next, r.client, statements[half:])
	result, err := r.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if result.Waiting == 0 {
		t.Error("no records are said to wait in the partitions of before")
	}
	r.upToDate(t, &r.next, r.to)
	got := portray(t, &r.next, r.client, r.to)
	if got.hash != want.hash {
		t.Errorf("graph %s, want %s", got.hash, want.hash)
	}
	compare(t, "newest row", got.rows, want.rows)
}

// grow gives the input topics the partitions of afterwards.
func (r *resharding) grow(t *testing.T) {
	t.Helper()
	admin := &kafka.Client{Addr: kafka.TCP(r.brokers...)}
	topics := []string{r.old.Kafka.Topics.Nodes, r.old.Kafka.Topics.Edges, r.old.Ingest.Baskets.Topic}
	for _, topic := range topics {
		res, err := admin.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(r.next.Shards)}}})
		if err == nil {
			err = res.Errors[topic]
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the topics have their new partitions", func() bool {
		ids, err := r.client.Identify(t.Context(), topics...)
		for _, id := range ids {
			if id.Partitions != r.next.Shards {
				return false
			}
		}
		return err == nil
	})
	// A client's producers use the number of partitions that it was told seconds ago.
	c, err := client.New(client.Options{Brokers: r.brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r.client = c
}

// A reshard that ends at any of its calls to either store is either to be run again or to be taken back. Until
// then no worker starts on a store that is not whole.
//
// GIANTSTREAM_EVERY_CALL=1 has each call fail, else it is some of them.
func TestReshardBrokenOffAtEveryCall(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the command dozens of times")
	}
	some := int64(6)
	if os.Getenv("GIANTSTREAM_EVERY_CALL") != "" {
		some = 1 << 40
	}
	statements := statementsOfAGraph()[:300]
	r := newResharding(t, 2, 3, false)
	sendStatements(t, &r.old, r.client, statements)
	r.upToDate(t, &r.old, r.from)
	hash := wholeHash(t, r.from, 2)
	for _, of := range []string{"from", "into"} {
		for _, after := range []bool{false, true} {
			calls := r.failAt(t, of, after, 0, hash)
			for n := int64(1); n <= calls; n += max(1, calls/some) {
				r.failAt(t, of, after, n, hash)
			}
		}
	}
	r.upToDate(t, &r.old, r.from) // every change was taken back
}

// failAt breaks a reshard off at a call to a store, 0 for none, and either runs it again or takes it back; in the
// end it is always taken back. It returns how many calls there were.
func (r *resharding) failAt(t *testing.T, of string, after bool, n int64, hash string) int64 {
	t.Helper()
	r.to = &memstore.Store{Name: "into"}
	store := r.from
	if of == "into" {
		store = r.to
	}
	var calls atomic.Int64
	fail := func(string, string) error {
		if calls.Add(1) == n {
			return errInjected
		}
		return nil
	}
	if store.Fail = fail; after {
		store.Fail, store.FailAfter = nil, fail
	}
	_, err := r.run(t)
	store.Fail, store.FailAfter = nil, nil
	counted := calls.Load()
	name := fmt.Sprintf("call %d to %s, after its effect: %t", n, of, after)
	if n > 0 && err == nil && !after {
		t.Logf("%s: it was tried again", name)
	}
	if n > 0 && err != nil && !errors.Is(err, errInjected) {
		t.Fatalf("%s: %v", name, err)
	}
	oldUsable, newUsable := commitlog.CheckReshard(t.Context(), r.from) == nil, r.usable(t)
	if oldUsable && newUsable {
		t.Fatalf("%s: workers may start on both stores", name)
	}
	if !newUsable && n%2 == 0 {
		again, err := r.run(t)
		if err != nil || !again.Already && again.Hash != hash {
			t.Fatalf("%s: run again: %+v, %v; want the graph %s", name, again, err, hash)
		}
		newUsable = r.usable(t)
		if !newUsable {
			t.Fatalf("%s: run again, and no worker may start on the new store", name)
		}
	}
	switch {
	case newUsable:
		if got := wholeHash(t, r.to, r.next.Shards); got != hash {
			t.Fatalf("%s: the new store has the graph %s, want %s", name, got, hash)
		}
		// What a person would do who does not want it after all.
		if err := commitlog.AbortReshard(t.Context(), r.from, r.to); err == nil {
			t.Fatalf("%s: a complete store was taken back", name)
		}
		if err := r.from.Delete(t.Context(), "reshard/into.json"); err != nil {
			t.Fatal(err)
		}
	case !oldUsable:
		if err := commitlog.AbortReshard(t.Context(), r.from, r.to); err != nil {
			t.Fatalf("%s: taking it back: %v", name, err)
		}
		for info, err := range r.to.List(t.Context(), "", "") {
			t.Fatalf("%s: %s is left, %v", name, info.Key, err)
		}
	}
	if err := commitlog.CheckReshard(t.Context(), r.from); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return counted
}

// usable reports whether workers may start on the new store and find a pipeline there.
func (r *resharding) usable(t *testing.T) bool {
	t.Helper()
	_, err := commitlog.LoadIdentity(t.Context(), r.to)
	return err == nil && commitlog.CheckReshard(t.Context(), r.to) == nil
}

// A reshard refuses what it would lose or harm, and says what to do.
func TestReshardRefuses(t *testing.T) {
	r := newResharding(t, 1, 2, false)
	sendStatements(t, &r.old, r.client, statementsOfAGraph()[:50])
	s, err := Start(t.Context(), Options{Config: &r.old, Store: r.from, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		if _, err := r.run(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if err := commitlog.CheckReshard(t.Context(), r.from); err != nil {
			t.Error(err)
		}
	}
	refused("has 1 members. Stop all workers")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.next.Kafka.Topics.Mirror = r.old.Kafka.Topics.Mirror
	refused("name a new one in kafka.topics.mirror")
	r.next.Kafka.Topics.Mirror = "mirror-afterwards"
	r.next.Ingest.Nodes.ID = "sku"
	refused(`ingest.nodes.id was "id" and is "sku"`)
	r.next.Ingest.Nodes.ID = r.old.Ingest.Nodes.ID
	r.next.Ingest.Baskets.Topic = ""
	refused(`ingest.baskets.topic was "orders" and is ""`)
	r.next.Ingest.Baskets.Topic = "orders-afterwards"
	sendStatements(t, &r.old, r.client, []statement{{ID: "late", Text: "not read yet", At: 1_750_000_000}})
	refused("1 records of kafka topic")
	r.upToDate(t, &r.old, r.from)
	if err := sink.PutBytes(t.Context(), r.to, "anything", []byte("x")); err != nil {
		t.Fatal(err)
	}
	refused("is not empty")
}
