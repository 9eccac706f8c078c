package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/service"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
	"giantstream/train"
	"giantstream/train/generation"
)

const nodes = 40

// pipeline is one that has run, and its store.
type pipeline struct {
	cfg   config.Config
	store *memstore.Store
	// rounds is how often the graph was sent.
	rounds int
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
// was started twice, so group commits come in two sessions, of which the first has a seal.
func newPipeline(t *testing.T, commit string) *pipeline {
	t.Helper()
	cfg := config.Default()
	cfg.Stream.Commit = commit
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", 2, ""
	dir := t.TempDir()
	cfg.StateDir, cfg.Kafka.DataDir = filepath.Join(dir, "state"), filepath.Join(dir, "broker")
	cfg.Window.Changes, cfg.Window.Time = 1, 50*time.Millisecond
	cfg.Evaluate.HoldoutEdges, cfg.Train.Encoder = 0, "linear"
	cfg.Refresh.MinChanges = 1e9 // generations are made when the test wants them
	cfg.Ingest.Repartition = true
	p := &pipeline{cfg: cfg, store: &memstore.Store{}}
	p.run(t, func(s *service.Service) {
		p.send(t, s, 1)
		p.upToDate(t, s)
	})
	p.run(t, func(s *service.Service) {
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
	id, err := seal.JSON(map[string]string{"id": identity.ID}) // as if its first release had written format 1
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.store, "pipeline-id", id)
	return p
}

// run runs the pipeline's service for the time of a call.
func (p *pipeline) run(t *testing.T, do func(*service.Service)) {
	t.Helper()
	s, err := service.Start(t.Context(), service.Options{Config: &p.cfg, Store: p.store,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	do(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func (p *pipeline) upToDate(t *testing.T, s *service.Service) {
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
func (p *pipeline) send(t *testing.T, s *service.Service, round int) {
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
	for i := range nodes {
		id := fmt.Sprintf("n%03d", i)
		put(p.cfg.Kafka.Topics.Nodes, id, map[string]any{"id": id, "label": fmt.Sprint(i % 4),
			"text": fmt.Sprintf("%s %s %d %d", words[i%4], words[(i+round)%4], i/8, round)})
		for _, far := range []int{4 * (1 + round%4), 24} {
			put(p.cfg.Kafka.Topics.Edges, id, map[string]any{"src": id, "dst": fmt.Sprintf("n%03d", (i+far)%nodes)})
		}
	}
}

// copyOf returns a store with the same objects.
func copyOf(t *testing.T, store sink.Store) (*memstore.Store, []string) {
	t.Helper()
	var keys []string
	out := &memstore.Store{}
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

// named is copyOf, but its keys are without orphans, such as files of the first checkpoint.
func named(t *testing.T, store sink.Store) (*memstore.Store, []string) {
	t.Helper()
	out, keys := copyOf(t, store)
	found, _ := check(t, out, Options{})
	return out, slices.DeleteFunc(keys, func(key string) bool { return len(about(found, key)) > 0 })
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

func check(t *testing.T, store sink.Store, o Options) (*audit.Audit, []Graph) {
	t.Helper()
	o.Store = store
	found, graphs, err := Store(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return found, graphs
}

// glance is one look of check, which takes two: enough where nothing else writes to the store.
func glance(t *testing.T, store sink.Store) *audit.Audit {
	t.Helper()
	found, _, err := look(t.Context(), Options{Store: store, Progress: train.OrDiscard(nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// about are the findings about an object.
func about(found *audit.Audit, key string) (about []audit.Finding) {
	for _, f := range found.Findings {
		if f.Object == key {
			about = append(about, f)
		}
	}
	return about
}

func TestVerify(t *testing.T) {
	for _, commit := range []string{config.CommitShard, config.CommitGroup} {
		t.Run(commit, func(t *testing.T) { verifies(t, newPipeline(t, commit)) })
	}
}

func verifies(t *testing.T, p *pipeline) {
	t.Run("a whole store", func(t *testing.T) {
		found, graphs := check(t, p.store, Options{Deep: true})
		for _, f := range found.Findings {
			if f.Kind != audit.Orphan { // a file of the first checkpoint, say
				t.Errorf("%+v", f)
			}
		}
		for _, g := range graphs {
			if g.Damage != "" || g.Nodes != nodes {
				t.Errorf("%v", g)
			}
		}
		if len(graphs) != 3 || found.Objects < 200 || found.Unsealed > 0 {
			t.Errorf("%d graphs, %d objects, %d without checksum", len(graphs), found.Objects, found.Unsealed)
		}
	})
	t.Run("every flipped bit is found", func(t *testing.T) { everyFlip(t, p) })
	t.Run("every missing object is found", func(t *testing.T) { everyLoss(t, p) })
	t.Run("what is derived is repaired", func(t *testing.T) { everyRepair(t, p) })
	t.Run("a gap in the log", func(t *testing.T) { gap(t, p) })
	t.Run("a log that lost its end", func(t *testing.T) { lostEnd(t, p) })
	if p.cfg.Stream.Commit == config.CommitGroup {
		t.Run("a manifest of another session", func(t *testing.T) { swappedSessions(t, p) })
	} else {
		t.Run("a manifest of another log", func(t *testing.T) { swapped(t, p) })
	}
	t.Run("rewritten rows train no generation", func(t *testing.T) { rewritten(t, p) })
	t.Run("against the topics", func(t *testing.T) { against(t, p) })
}

// everyFlip flips random bits, one at a time, in objects of all kinds.
func everyFlip(t *testing.T, p *pipeline) {
	store, keys := named(t, p.store)
	rng := rand.New(rand.NewPCG(1, 1))
	kinds := map[string][]string{} // so that the few objects of a kind get their share
	for _, key := range keys {
		kind := strings.TrimRight(strings.Split(key, "-")[0], "0123456789.jsonparquet")
		kinds[kind] = append(kinds[kind], key)
	}
	names := make([]string, 0, len(kinds))
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	const flips = 200 // of the objects of each kind of commit
	for n := range flips {
		of := kinds[names[n%len(names)]]
		key := of[rng.IntN(len(of))]
		good := read(t, store, key)
		if len(good) == 0 {
			continue
		}
		bad := bytes.Clone(good)
		bit := rng.IntN(8 * len(bad))
		bad[bit/8] ^= 1 << (bit % 8)
		write(t, store, key, bad)
		if found := glance(t, store); found.Damage() == 0 {
			t.Errorf("bit %d of byte %d of %s: unnoticed", bit%8, bit/8, key)
		} else if len(about(found, key)) == 0 {
			t.Errorf("bit %d of byte %d of %s: found elsewhere: %+v", bit%8, bit/8, key, found.Findings[0])
		}
		write(t, store, key, good)
	}
	t.Logf("%d flips in objects of %d kinds: %v", flips, len(names), names)
}

// expendable are objects that nobody misses: without them they are made again, or nothing says that they were.
func expendable(store sink.Store, key string) bool {
	return key == stampKey || key == "pipeline-id" || strings.HasPrefix(key, "sources/") || strings.HasPrefix(key, "lease/") || strings.HasSuffix(key, "/published.json") ||
		strings.Contains(key, "/compacted/") && strings.HasSuffix(key, ".json") ||
		strings.Contains(key, "/state/checkpoints/") || strings.HasSuffix(key, "/generation.json")
}

func everyLoss(t *testing.T, p *pipeline) {
	store, keys := named(t, p.store)
	rng := rand.New(rand.NewPCG(2, 2))
	for range 120 {
		key := keys[rng.IntN(len(keys))]
		merged := strings.Contains(key, "/rows/") && !strings.Contains(key, "/compacted/")
		if expendable(store, key) || merged {
			continue // merged rows may be gone
		}
		good := read(t, store, key)
		if err := store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if found := glance(t, store); len(about(found, key)) == 0 {
			t.Errorf("%s deleted: %d findings, none about it", key, len(found.Findings))
		}
		write(t, store, key, good)
	}
}

// everyRepair damages objects that are derived. After the repair the store is whole, or says that a new
// generation is due.
func everyRepair(t *testing.T, p *pipeline) {
	_, keys := copyOf(t, p.store)
	pick := func(contains, suffix string) string {
		for _, key := range slices.Backward(keys) {
			if strings.Contains(key, contains) && strings.HasSuffix(key, suffix) {
				return key
			}
		}
		t.Fatalf("the store has no %s…%s", contains, suffix)
		return ""
	}
	for _, key := range []string{pick("/compacted/1-", ".json"), pick("/compacted/rows/1-", ".parquet"),
		pick("/state/checkpoints/", ".json"), pick("/state/files/", ""), pick("/published.json", ""),
		pick("lease/", "")} {
		store, _ := copyOf(t, p.store)
		bad := read(t, store, key)
		bad[len(bad)/2] ^= 1
		write(t, store, key, bad)
		if strings.Contains(key, "/compacted/1-") { // readers take the parts
			if _, graphs := check(t, store, Options{Deep: true}); graphs[len(graphs)-1].Damage != "" {
				t.Errorf("%s damaged: %v", key, graphs)
			}
		}
		found, _ := check(t, store, Options{Repair: true})
		if len(about(found, key)) == 0 || found.Damage() > 0 {
			t.Errorf("%s: %d not repaired: %+v", key, found.Damage(), found.Findings)
		}
		if again, _ := check(t, store, Options{Deep: true}); again.Damage() > 0 {
			t.Errorf("%s: after the repair: %+v", key, again.Findings)
		}
	}
	store, _ := copyOf(t, p.store)
	key := pick("generations/000002/tree", "")
	write(t, store, key, []byte("garbage"))
	found, _ := check(t, store, Options{Repair: true})
	if len(about(found, key)) == 0 || found.Damage() > 0 {
		t.Errorf("%s: %+v", key, found.Findings)
	}
	if doc, err := generation.Current(t.Context(), store); err != nil || doc.Generation != 1 {
		t.Errorf("current generation %v (%v), want 1", doc, err)
	}
}

// keyOf is the object of a manifest of shard 0.
func keyOf(t *testing.T, store sink.Store, seq int64) string {
	t.Helper()
	m, err := commitlog.ReadManifest(t.Context(), store, 0, seq)
	if err != nil {
		t.Fatal(err)
	}
	return m.Key()
}

func gap(t *testing.T, p *pipeline) {
	store, _ := copyOf(t, p.store)
	newest, err := commitlog.Head(t.Context(), store, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []int64{1, 31, 63, 77} { // 31 and 63 are where the search for the head looks
		key := keyOf(t, store, seq)
		good := read(t, store, key)
		if err := store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		found, _ := check(t, store, Options{})
		if f := about(found, key); len(f) == 0 || f[0].Kind != audit.Lost {
			t.Errorf("manifest %d deleted: %+v", seq, found.Findings)
		}
		// Whoever took an older head for the newest one would write a second history.
		m, err := commitlog.Head(t.Context(), store, 0)
		if !errors.Is(err, commitlog.ErrDamaged) && (err != nil || m.Seq != newest.Seq) {
			t.Errorf("manifest %d deleted: the head is %+v (%v)", seq, m, err)
		}
		write(t, store, key, good)
	}
}

// lostEnd removes the newest manifests. The objects that know of them are the evidence, which a repair
// leaves alone, and no worker goes on before them.
func lostEnd(t *testing.T, p *pipeline) {
	newest, err := commitlog.Head(t.Context(), p.store, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1, 2, newest.Seq} {
		store, _ := copyOf(t, p.store)
		for seq := newest.Seq; seq > newest.Seq-n; seq-- {
			if err := store.Delete(t.Context(), keyOf(t, p.store, seq)); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := copyOf(t, store)
		found, _ := check(t, store, Options{Repair: true})
		f := about(found, keyOf(t, p.store, newest.Seq-n+1))
		if len(f) != 1 || f[0].Kind != audit.Lost || f[0].Repaired != "" {
			t.Errorf("the newest %d manifests deleted: %+v", n, found.Findings)
		}
		for info, err := range before.List(t.Context(), "shards/0/", "") {
			if err != nil {
				t.Fatal(err)
			}
			orphan := len(about(found, info.Key)) > 0 && about(found, info.Key)[0].Kind == audit.Orphan
			if _, err := sink.ReadAll(t.Context(), store, info.Key); err != nil && !orphan {
				t.Errorf("the newest %d manifests deleted: the repair removed %s", n, info.Key)
			}
		}
		if m, err := commitlog.Head(t.Context(), store, 0); !errors.Is(err, commitlog.ErrDamaged) {
			t.Errorf("the newest %d manifests deleted: the head is %+v (%v)", n, m, err)
		}
	}
}

// swapped puts a manifest that is whole into a chain that it is not of.
func swapped(t *testing.T, p *pipeline) {
	store, _ := copyOf(t, p.store)
	m, err := commitlog.ReadManifest(t.Context(), store, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	m.Writer += "-other"
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, store, commitlog.ManifestKey(0, 10), data)
	brokenAt(t, store, commitlog.ManifestKey(0, 11))
}

// swappedSessions does so with a group manifest.
func swappedSessions(t *testing.T, p *pipeline) {
	store, _ := copyOf(t, p.store)
	key := keyOf(t, store, 10)
	g, err := commitlog.DecodeGroup(read(t, store, key))
	if err != nil {
		t.Fatal(err)
	}
	g.Writer += "-other"
	parts := g.Parts()
	for _, m := range parts {
		m.Writer += "-other"
	}
	data, err := g.Encode(parts)
	if err != nil {
		t.Fatal(err)
	}
	write(t, store, key, data)
	brokenAt(t, store, keyOf(t, p.store, 11))
}

// brokenAt checks that verify finds the chain broken at an object.
func brokenAt(t *testing.T, store sink.Store, key string) {
	t.Helper()
	found, _ := check(t, store, Options{})
	if f := about(found, key); len(f) == 0 || !strings.Contains(f[0].What, "digest") {
		t.Errorf("%+v", found.Findings)
	}
}

// rewritten replaces rows by others that are a good file.
func rewritten(t *testing.T, p *pipeline) {
	store, keys := copyOf(t, p.store)
	for _, key := range keys {
		if !strings.HasPrefix(key, "generations/") && strings.HasSuffix(key, ".parquet") {
			rowstest.Put(t, store, key, []rows.Row{{NodeID: "n000", Text: "poison", Labels: []string{"n001"}}})
		}
	}
	source, err := service.SourceAt(t.Context(), store, p.cfg.Shards, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = nil
	for row, rowErr := range source.Rows(t.Context()) {
		if err = rowErr; err == nil && row.Text == "poison" {
			t.Fatal("a rewritten row was read")
		}
	}
	if !errors.Is(err, sink.ErrDamaged) {
		t.Errorf("rows of rewritten objects: %v, want ErrDamaged", err)
	}
}

func against(t *testing.T, p *pipeline) {
	topics := []string{wiring.TopicsOf(&p.cfg).Nodes, wiring.TopicsOf(&p.cfg).Edges}
	log := slog.New(slog.DiscardHandler)
	d, err := Against(t.Context(), &p.cfg, p.store, topics, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	if d.Total != 0 || d.Nodes != nodes || d.Records != int64(3*nodes*p.rounds) || d.Open != 0 || len(d.Gone) > 0 {
		t.Errorf("%v", d)
	}
	if _, err := Against(t.Context(), &p.cfg, p.store, topics[:1], nil, log); err == nil {
		t.Error("one topic of two was enough")
	}
}

// Each way in which a row can be wrong is told.
func TestDifferences(t *testing.T) {
	store := &memstore.Store{}
	commit(t, store, rows.Row{NodeID: "a", Text: "x", Labels: []string{"b"}, EventTime: 1},
		rows.Row{NodeID: "b", Text: "y", Labels: []string{"a"}, EventTime: 1})
	put := func(id, text, class string, at int64) mutation.Mutation {
		return mutation.Mutation{Op: mutation.PutNode, ID: id, Text: text, Class: class,
			Version: mutation.Version{EventTime: at}}
	}
	edge := mutation.Mutation{Op: mutation.PutEdge, ID: "a", Other: "b",
		Version: mutation.Version{EventTime: 1, Rank: 1}}
	for _, c := range []struct {
		name  string
		all   []mutation.Mutation
		total int
		words string
	}{
		{"equal", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1), edge}, 0, ""},
		{"a link less", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1)}, 2, "has 1 that they do not"},
		{"another text", []mutation.Mutation{put("a", "z", "", 1), put("b", "y", "", 1), edge}, 1, "another text"},
		{"another class", []mutation.Mutation{put("a", "x", "c", 1), put("b", "y", "", 1), edge}, 1, "class"},
		{"another time", []mutation.Mutation{put("a", "x", "", 2), put("b", "y", "", 1), edge}, 1, "event time"},
		{"a node more", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1), put("c", "", "", 1), edge}, 1,
			"no row was committed"},
		{"a node less", []mutation.Mutation{put("a", "x", "", 1), edge}, 1, "do not state it"},
	} {
		graph := oracle.New(true)
		for _, m := range c.all {
			graph.Add(m)
		}
		d := &Differences{}
		if err := d.compare(context.Background(), store, commitlog.Cut{0: 1}, graph.Rows(), discard{}); err != nil {
			t.Fatal(err)
		}
		if d.Total != c.total || c.total > 0 && !strings.Contains(d.String(), c.words) {
			t.Errorf("%s: %v", c.name, d)
		}
	}
}

type discard struct{}

func (discard) Stage(string, int64) {}
func (discard) Add(int64)           {}

// commit commits rows as the only window of shard 0.
func commit(t *testing.T, store sink.Store, all ...rows.Row) {
	t.Helper()
	key := commitlog.RowKey(0, 1, "w", 0)
	info := rowstest.Put(t, store, key, all)
	m := &commitlog.Manifest{Format: commitlog.ManifestFormat, Seq: 1, Writer: "w", Rows: info.Rows,
		Objects: []commitlog.Object{{Key: key, Rows: info.Rows, Bytes: info.Bytes, CRC32C: info.CRC32C}}}
	m.Follow(nil)
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, store, commitlog.ManifestKey(0, 1), data)
}
