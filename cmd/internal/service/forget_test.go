package service

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/service/refreshing"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/forget"
	"giantstream/stream/reshard"
	"giantstream/train/generation"
)

// What is planted, and forgotten.
const (
	plantedID   = "planted-4711"
	plantedText = "quixotic zyxwvut harpsichord for planted nobody else"
)

// longText is one that a state keeps apart from its keys.
var longText = plantedText + strings.Repeat(" again", 40)

// plant sends a node, links to it and from it, and a record of it that becomes a dead letter.
func plant(t *testing.T, cfg *config.Config, c *client.Client) {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	message := func(topic, key string, value any) kafka.Message {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return kafka.Message{Topic: topic, Key: []byte(key), Value: data, Time: at}
	}
	ns, es := cfg.Kafka.Topics.Nodes, cfg.Kafka.Topics.Edges
	sendAll(t, c,
		message(ns, plantedID, map[string]any{"id": plantedID, "text": plantedText, "label": "1",
			"price": 4711, "image": []float32{47, 11}}),
		// min_df of the vocabulary is two texts; this one goes as well.
		message(ns, plantedID+"b", map[string]any{"id": plantedID + "b", "text": longText}),
		message(es, plantedID, map[string]any{"src": plantedID, "dst": nodeID(1), "kind": "also_bought"}),
		message(es, nodeID(2), map[string]any{"src": nodeID(2), "dst": plantedID, "kind": "accessory_of"}),
		message(ns, plantedID, map[string]any{"id": plantedID, "text": []any{plantedText, map[string]int{}}}),
		message(cfg.Ingest.Baskets.Topic, "of-both", map[string]any{"order": "of-both",
			"items": []string{nodeID(3), plantedID}}),
		message(cfg.Ingest.Baskets.Topic, "alone", map[string]any{"order": "alone", "items": []string{plantedID}}),
	)
}

// plantedIDs are the planted nodes.
func plantedIDs() map[string]bool { return map[string]bool{plantedID: true, plantedID + "b": true} }

// deletePlanted deletes the planted nodes and all links, as the command does.
func (r *resharding) deletePlanted(t *testing.T) {
	t.Helper()
	known, err := forget.ReadKnown(t.Context(), r.from, r.old.Shards, plantedIDs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{plantedText, longText}
	slices.Sort(want)
	if known.Live != 2 || len(known.Links) != 2 || !slices.Equal(known.Texts, want) {
		t.Errorf("known: %+v", known)
	}
	messages, err := wiring.Deletions(&r.old, plantedIDs(), known, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sendAll(t, r.client, messages...)
}

func sendAll(t *testing.T, c *client.Client, all ...kafka.Message) {
	t.Helper()
	p := c.NewProducer()
	defer p.Close() //nolint:errcheck // flushed
	if err := p.Send(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// scan looks for what was planted in a store and in all topics of its pipeline.
func (r *resharding) scan(t *testing.T, cfg *config.Config, store sink.Store) forget.Report {
	t.Helper()
	texts := []string{plantedText, longText}
	ids := slices.Sorted(maps.Keys(plantedIDs()))
	vocabulary, err := wiring.OpenVocabularies(t.Context(), store, cfg.Shards, texts,
		plantedIDs())
	if err != nil {
		t.Fatal(err)
	}
	s := forget.NewScanner(forget.Targets{IDs: ids, Texts: texts, Vocabulary: vocabulary})
	if err := s.Store(t.Context(), store, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, folder := range wiring.ScannedFolders(cfg) {
		if err := s.Folder(t.Context(), folder[0], folder[1], nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range wiring.ScannedTopics(cfg) {
		if err := s.Topic(t.Context(), wiring.TopicRecords{Client: r.client}, topic[0], topic[1], nil); err != nil {
			t.Fatal(err)
		}
	}
	return s.Report()
}

// TestForgottenMeansGone plants nodes with texts in a pipeline, and lets a scanner find them in every kind of place.
// Then the nodes are deleted, a generation is built from scratch, and the store is written again without them: nothing
// of them is left in it, and the pipeline goes on.
func TestForgottenMeansGone(t *testing.T) {
	if testing.Short() {
		t.Skip("runs several pipelines")
	}
	for encoder, change := range map[string]func(*config.Config){
		"linear": func(cfg *config.Config) { cfg.Train.Encoder = "linear" },
		"hybrid": func(cfg *config.Config) { cfg.Train.Encoder, cfg.Train.Epochs = "hybrid", 1 },
		"bert": func(cfg *config.Config) {
			cfg.Train.Encoder, cfg.Train.Epochs, cfg.Train.CheckpointEvery = "bert", 1, time.Nanosecond
			cfg.Train.BERT = config.BERT{Model: "../../../train/encoders/bert/testdata/tiny", Pooling: "mean",
				MaxTokens: 16}
		},
		"hybrid beside bert": func(cfg *config.Config) {
			cfg.Train.Encoder, cfg.Train.Epochs = "bert", 0
			cfg.Train.BERT = config.BERT{Model: "../../../train/encoders/bert/testdata/tiny", Pooling: "mean",
				MaxTokens: 16, NGrams: 512}
		},
	} {
		t.Run(encoder, func(t *testing.T) {
			r := newResharding(t, 2, 2, true)
			for _, cfg := range []*config.Config{&r.old, &r.next} {
				change(cfg)
			}
			r.forget(t)
		})
	}
}

func (r *resharding) forget(t *testing.T) {
	t.Helper()
	sendStatements(t, &r.old, r.client, statementsOfAGraph())
	plant(t, &r.old, r.client)
	r.upToDate(t, &r.old, r.from)
	if r.old.Train.Encoder == "linear" { // merged rows and folded logs do not depend on it
		r.merge(t)
	}

	found := map[string][]string{}
	report := r.scan(t, &r.old, r.from)
	for _, f := range report.Findings {
		place := f.Kind
		if place == "parquet" {
			place = strings.Trim(strings.Split(f.Place, "/")[2], "0123456789.-")
		}
		found[place] = append(found[place], f.Where...)
	}
	want := map[string]string{
		"rows": "text in column text", "dataset": "text in column text", "embeddings": "id in column node_id",
		"labels.parquet": "id in column node_id", "vocabulary": "n-grams of the forgotten texts alone",
		"table of a checkpoint": "id in entries", "values of a checkpoint": "text in values",
		"other file of a checkpoint": "id in the list of tables",
		"local state":                "text in values",
		"embeddings topic":           "id in keys", "dead letters": "text in values", "mirror topic": "id in values",
		"input": "text in values",
	}
	if r.old.Train.Encoder == "linear" {
		want["compacted"] = "text in column text"
		delete(want, "rows") // which were merged, and are removed
	}
	for place, what := range want {
		if !slices.Contains(found[place], what) {
			t.Errorf("%s: %q, want %q", place, slices.Compact(slices.Sorted(slices.Values(found[place]))), what)
		}
	}
	t.Logf("found in %v", slices.Sorted(maps.Keys(found)))
	t.Logf("opened %v", report.Kinds)

	withIDs := func(o *reshard.Options) { o.Forget = plantedIDs() }
	if _, err := r.runWith(t, withIDs); err == nil || !strings.Contains(err.Error(), "built before the deletion") {
		t.Errorf("written again with live nodes to forget: %v", err)
	}
	oldest := oldestDeleted(statementsOfAGraph(), r.old.Train.Encoder == "linear")
	if since := notForgotten(t, r.from, r.old.Shards); !since.Equal(oldest) {
		t.Errorf("the oldest deletion was at %v, want %v", since, oldest)
	}
	// The refusal has not closed the store.
	r.deletePlanted(t)
	r.drain(t)
	if _, err := r.runWith(t, withIDs); err == nil || !strings.Contains(err.Error(), "built before the deletion") {
		t.Errorf("written again with a generation that knows the nodes: %v", err)
	}
	r.upToDate(t, &r.old, r.from) // with a generation of what is left
	before := portray(t, &r.old, r.client, r.from)
	if left := r.scan(t, &r.old, r.from).Findings; len(left) == 0 {
		t.Error("nothing is left after a mere deletion: what does the rest prove?")
	}
	result, err := r.runWith(t, withIDs)
	if err != nil {
		t.Fatal(err)
	}
	if after := portray(t, &r.next, r.client, r.to); after.hash != before.hash || after.orders == before.orders ||
		result.Hash != wholeHash(t, r.to, r.next.Shards) {
		t.Errorf("%+v: graph %s, want %s; orders %s and %s", result, after.hash, before.hash, after.orders, before.orders)
	}
	was, _ := ordersIn(t, r.from, r.old.Shards)
	if left, _ := ordersIn(t, r.to, r.next.Shards); left != was-1 { // one had nothing else
		t.Errorf("%d orders are left of %d", left, was)
	}
	if since := notForgotten(t, r.to, r.next.Shards); !since.Equal(oldest) {
		t.Errorf("the oldest deletion of a node that is not forgotten was at %v, want %v", since, oldest)
	}
	if since := notForgotten(t, &memstore.Store{}, 1); !since.IsZero() {
		t.Errorf("a deletion at %v in an empty store", since)
	}
	s := r.checkGone(t, "")
	if s.Kinds["table of a checkpoint"] == 0 || s.Kinds["parquet"] < 6 || s.Kinds["vocabulary"] != 1 {
		t.Errorf("the scan has opened %v", s.Kinds)
	}
	if found := look(t, r.to); found.Damage() > 0 {
		t.Errorf("%+v", found.Findings)
	}
	sent := r.published(t)
	r.upToDate(t, &r.next, r.to)
	if again := r.published(t) - sent; again != 0 {
		t.Errorf("%d embeddings were published again", again)
	}
	sendStatements(t, &r.next, r.client, []statement{{ID: nodeID(0), Text: text(0, 1), At: 1_700_002_000}})
	r.upToDate(t, &r.next, r.to)
	if s := r.checkGone(t, "after the pipeline has gone on"); s.Kinds["local state"] == 0 {
		t.Errorf("the scan has opened %v", s.Kinds)
	}
}

// oldestDeleted is the event time of the oldest deletion of a node that no later statement, or merge, revives.
func oldestDeleted(all []statement, merged bool) (oldest time.Time) {
	newest := map[string]statement{}
	for _, s := range all {
		if old := newest[s.ID]; s.ID != "" && s.At > old.At {
			newest[s.ID] = s
		}
	}
	if merged {
		for n := range 4 {
			delete(newest, nodeID(n))
		}
	}
	for _, s := range newest {
		if at := time.Unix(s.At, 0); s.Deleted && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

// notForgotten returns when the oldest deletion was that a store has, which the metric tells; zero for none.
func notForgotten(t *testing.T, store sink.Store, shards int) time.Time {
	t.Helper()
	registry := prometheus.NewRegistry()
	refresh := &refreshing.Refresh{Store: store, Shards: shards, Registry: registry, Served: &generation.Served{}}
	refresh.Open()
	const name = "giantstream_deleted_not_forgotten_seconds"
	if err := refresh.LookForDeletions(t.Context()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	oldest, err := forget.OldestDeletion(t.Context(), store, shards)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			if age := f.GetMetric()[0].GetGauge().GetValue(); age > 0 == oldest.IsZero() {
				t.Errorf("%s is %v, and the oldest deletion was at %v", name, age, oldest)
			}
			return oldest
		}
	}
	t.Errorf("there is no %s", name)
	return oldest
}

// checkGone fails if anything of what was planted is left in the new store and its pipeline's local states. What the
// topics have is their owners' and the broker's.
func (r *resharding) checkGone(t *testing.T, when string) forget.Report {
	t.Helper()
	s := r.scan(t, &r.next, r.to)
	for _, f := range s.Findings {
		if !strings.Contains(f.Kind, "topic") && f.Kind != "input" && f.Kind != "dead letters" {
			t.Errorf("left %s: %+v", when, f)
		}
	}
	return s
}

// drain commits what was sent, and builds no generation.
func (r *resharding) drain(t *testing.T) {
	t.Helper()
	cfg := r.old
	cfg.Refresh.MinChanges = 1e9
	s, err := Start(t.Context(), Options{Config: &cfg, Store: r.from, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = errors.Join(s.Drain(t.Context()), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// merge makes as many manifests as are merged, merges their rows, and folds the manifests. What was planted is behind
// the boundary then.
// oldestCheckpoint is the manifest of the oldest checkpoint that is kept of any shard, 0 without one.
func (r *resharding) oldestCheckpoint(t *testing.T) int64 {
	t.Helper()
	oldest := int64(math.MaxInt64)
	for shard := range r.old.Shards {
		kept, _, err := checkpoint.Kept(t.Context(), r.from, shard)
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) == 0 {
			return 0
		}
		for _, c := range kept {
			oldest = min(oldest, c.Seq)
		}
	}
	return oldest
}

func (r *resharding) merge(t *testing.T) {
	t.Helper()
	s, err := Start(t.Context(), Options{Config: &r.old, Store: r.from, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	// Two checkpoints are kept, which must be behind the manifests of the block that is to be folded. How often one is
	// made depends on how long the upload of another takes.
	const block = 64
	for i := 0; i < block || r.oldestCheckpoint(t) <= block; i++ {
		var again []statement
		for n := range 4 { // in both shards
			again = append(again, statement{ID: nodeID(n), Text: text(n, i%4), At: 1_700_001_000 + int64(i)})
		}
		sendStatements(t, &r.old, r.client, again)
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.upToDate(t, &r.old, r.from) // a generation that needs none of these manifests
	newest, err := generation.Newest(t.Context(), r.from)
	if err != nil {
		t.Fatal(err)
	}
	for shard := range r.old.Shards {
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: shard, Store: r.from, Grace: time.Nanosecond})
		if _, err := c.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		merged, err := c.Remove(t.Context(), newest.Current.Cut[shard])
		if err != nil {
			t.Fatal(err)
		}
		folded, err := c.Fold(t.Context(), commitlog.FoldOptions{Keep: newest.Current.Cut[shard], History: time.Nanosecond})
		if err != nil || merged.Objects == 0 || folded.Objects == 0 {
			t.Fatalf("shard %d: %d objects merged and removed, %d manifests folded: %v", shard, merged.Objects,
				folded.Objects, err)
		}
	}
}
