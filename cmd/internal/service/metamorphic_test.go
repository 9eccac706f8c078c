package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/backfill"
	"giantstream/ingest/client"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// How records come in, and by whom and in what portions they are worked on, shows nowhere: not in
// the graph, not in the rows, not in the embeddings.
func TestOutcomeIsAFunctionOfTheRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a dozen pipelines")
	}
	type variant struct {
		name            string
		workers, shards int
		window          config.Window
		restarts        int
		backfill        bool
		order           string // of the records: as written, reversed, shuffled
	}
	plain := variant{workers: 1, shards: 2, window: config.Window{Changes: 50, Bytes: 1 << 20,
		Time: 100 * time.Millisecond}}
	with := func(name string, change func(*variant)) variant {
		v := plain
		v.name = name
		change(&v)
		return v
	}
	variants := []variant{
		with("plain", func(*variant) {}),
		with("windows of one change", func(v *variant) { v.window.Changes = 1 }),
		with("windows of a kilobyte", func(v *variant) { v.window.Bytes = 1 << 10 }),
		with("one window for all", func(v *variant) {
			v.window = config.Window{Changes: 1e6, Bytes: 1 << 30,
				Time: time.Hour}
		}),
		with("one shard", func(v *variant) { v.shards = 1 }),
		with("two workers", func(v *variant) { v.workers = 2 }),
		with("three workers, five shards", func(v *variant) { v.workers, v.shards = 3, 5 }),
		with("restarted once", func(v *variant) { v.restarts = 1 }),
		with("restarted four times, two workers", func(v *variant) { v.restarts, v.workers = 4, 2 }),
		with("backfill", func(v *variant) { v.backfill = true }),
		with("backfill, restarted, large windows", func(v *variant) {
			v.backfill, v.restarts, v.window.Changes = true, 2,
				1e6
		}),
		with("reversed", func(v *variant) { v.order = "reversed" }),
		with("shuffled, two workers, restarted",
			func(v *variant) { v.order, v.workers, v.restarts = "shuffled", 2, 1 }),
	}
	var want portrait
	for i, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			brokers, _ := testBroker(t)
			c, err := client.New(client.Options{Brokers: brokers})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			store := &memstore.Store{}
			crew := make([]config.Config, v.workers)
			for i := range crew {
				cfg := config.Default()
				cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", v.shards, ""
				cfg.StateDir = filepath.Join(t.TempDir(), "state")
				cfg.Kafka.Brokers, cfg.Kafka.SessionTimeout = brokers, time.Second
				cfg.Window = v.window
				mapStatements(&cfg)
				cfg.Evaluate.HoldoutEdges, cfg.Evaluate.ProbeRates = 0, nil
				cfg.Featurize.ProjectionDim, cfg.Embedding.Dim, cfg.Train.Encoder = 24, 16, "linear"
				crew[i] = cfg
			}
			if err := wiring.EnsureTopics(t.Context(), c, &crew[0]); err != nil {
				t.Fatal(err)
			}
			statements := statementsOfAGraph()
			switch v.order {
			case "reversed":
				slices.Reverse(statements)
			case "shuffled":
				rand.New(rand.NewPCG(3, 3)).Shuffle(len(statements), func(i, j int) {
					statements[i], statements[j] = statements[j], statements[i]
				})
			}
			for part := range v.restarts + 1 {
				services := startAll(t, crew, store)
				from, to := part*len(statements)/(v.restarts+1), (part+1)*len(statements)/(v.restarts+1)
				if v.backfill {
					backfillStatements(t, &crew[0], c, statements[from:to])
				} else {
					sendStatements(t, &crew[0], c, statements[from:to])
				}
				if part == v.restarts {
					finish(t, services)
				}
				for _, s := range services { // the others in the middle of it
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := portray(t, &crew[0], c, store)
			if i == 0 {
				if len(got.rows) < 100 || len(got.embeddings) < 100 {
					t.Fatalf("%d rows and %d embeddings: too few to show anything", len(got.rows), len(got.embeddings))
				}
				want = got
			}
			if got.hash != want.hash {
				t.Errorf("graph %s, want %s", got.hash, want.hash)
			}
			if got.orders != want.orders {
				t.Errorf("orders %s, want %s", got.orders, want.orders)
			}
			if got.vectors != want.vectors {
				t.Errorf("vectors %s, want %s", got.vectors, want.vectors)
			}
			compare(t, "newest row", got.rows, want.rows)
			compare(t, "embedding", got.embeddings, want.embeddings)
		})
	}
}

// statement is a record; no two about the same thing have the same time.
type statement struct {
	ID      string `json:"id,omitempty"`
	Text    string `json:"text,omitempty"`
	Label   string `json:"label,omitempty"`
	Src     string `json:"src,omitempty"`
	Dst     string `json:"dst,omitempty"`
	At      int64  `json:"at"`
	Deleted bool   `json:"deleted,omitempty"`

	Weight *float32 `json:"weight,omitempty"` // of an edge
	Kind   string   `json:"kind,omitempty"`

	Order  string   `json:"order,omitempty"`
	Placed int64    `json:"placed,omitempty"`
	Items  []string `json:"items,omitempty"`

	Price float64   `json:"price,omitempty"`
	Image []float32 `json:"image,omitempty"`
}

// mapStatements maps the fields of statements.
func mapStatements(cfg *config.Config) {
	cfg.Ingest.Nodes.EventTime, cfg.Ingest.Edges.EventTime = "at", "at"
	cfg.Ingest.Nodes.Attributes = config.List{"price:number"}
	cfg.Ingest.Nodes.Vectors = config.List{"image=image:2"}
	cfg.Ingest.Edges.Weight, cfg.Ingest.Edges.Kind = "weight", "kind"
	cfg.Ingest.Edges.Directed = []string{"accessory_of"}
	b := &cfg.Ingest.Baskets
	b.Topic, b.ID, b.Items, b.EventTime = "orders", config.List{"order"}, "items[*]", "at"
}

// statementsOfAGraph are several about many nodes and edges, some of which go and some of which
// come back.
func statementsOfAGraph() []statement {
	random := rand.New(rand.NewPCG(4, 4))
	var all []statement
	for i := range 900 {
		at := 1_700_000_000 + int64((i*7919)%900) // each time once, in no order
		n := random.IntN(nodes)
		if i%4 == 0 { // of few items, so that some are often together; some orders are corrected or deleted
			o := statement{Order: fmt.Sprint("o", i%600), At: at, Deleted: i%44 == 0}
			for k := range 2 + i%3 {
				o.Items = append(o.Items, nodeID((i%5*7+k*k)%nodes))
			}
			all = append(all, o)
		}
		if random.IntN(5) < 2 {
			m := (n + 4*(1+random.IntN(6))) % nodes
			s := statement{Src: nodeID(n), Dst: nodeID(m), At: at, Deleted: random.IntN(8) == 0}
			if i%3 > 0 {
				s.Weight = new(float32(i%7) / 4)
			}
			s.Kind = []string{"", "also_bought", "accessory_of"}[i%5%3]
			all = append(all, s)
			continue
		}
		s := statement{ID: nodeID(n), At: at, Deleted: random.IntN(12) == 0}
		if !s.Deleted {
			s.Text, s.Label = text(n, random.IntN(4)), fmt.Sprint(n%4)
			if i%5 > 0 {
				s.Price = float64(i%7) + 0.5
			}
			if i%6 > 1 {
				s.Image = []float32{float32(i + 1), float32(n%4) - 0.5}
			}
		}
		all = append(all, s)
	}
	return all
}

func startAll(t *testing.T, crew []config.Config, store *memstore.Store) []*Service {
	t.Helper()
	var all []*Service
	for i := range crew {
		s, err := Start(t.Context(), Options{Config: &crew[i], Store: store, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// finish brings everything up to date, as `run --until-idle` does in each process of a pipeline.
func finish(t *testing.T, services []*Service) {
	t.Helper()
	done := make(chan error, len(services))
	for _, s := range services {
		go func() {
			err := s.Drain(t.Context())
			if err == nil {
				_, _, err = s.UpToDate(t.Context())
			}
			if err == nil {
				err = s.WaitPublished(t.Context())
			}
			done <- err
		}()
	}
	var errs []error
	for range services {
		errs = append(errs, <-done)
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func sendStatements(t *testing.T, cfg *config.Config, c *client.Client, statements []statement) {
	t.Helper()
	p := c.NewProducer()
	for _, s := range statements {
		value, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		m := kafka.Message{Topic: cfg.Kafka.Topics.Nodes, Key: []byte(s.ID), Value: value}
		if s.Src != "" {
			m.Topic, m.Key = cfg.Kafka.Topics.Edges, []byte(s.Src)
		} else if s.Order != "" {
			m.Topic, m.Key = cfg.Ingest.Baskets.Topic, []byte(s.Order)
		}
		if err := p.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(p.Flush(t.Context()), p.Close()); err != nil {
		t.Fatal(err)
	}
}

func backfillStatements(t *testing.T, cfg *config.Config, c *client.Client, statements []statement) {
	t.Helper()
	var lines [3][]byte // nodes, edges, orders
	for _, s := range statements {
		value, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		of := 0
		if s.Src != "" {
			of = 1
		} else if s.Order != "" {
			of = 2
		}
		lines[of] = append(append(lines[of], value...), '\n')
	}
	var inputs [3][]backfill.Input
	dir := t.TempDir()
	for i, name := range []string{"nodes.jsonl", "edges.jsonl", "orders.jsonl"} {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, lines[i], 0o600)
		if err == nil {
			inputs[i], err = backfill.Files(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files := backfill.Sources{Nodes: inputs[0], Edges: inputs[1],
		Orders: map[string][]backfill.Input{cfg.Ingest.Baskets.Topic: inputs[2]}}
	if _, err := wiring.Backfill(t.Context(), cfg, c, files, nil); err != nil {
		t.Fatal(err)
	}
}

// portrait is all that a pipeline says, but for where in the store it stands.
type portrait struct {
	hash       string
	orders     string // hash of them
	vectors    string // hash of them
	rows       map[string]rows.Row
	embeddings map[string]embedding.Record
}

func portray(t *testing.T, cfg *config.Config, c *client.Client, store *memstore.Store) portrait {
	t.Helper()
	doc, err := generation.Current(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	_, orders := ordersIn(t, store, cfg.Shards)
	_, vectors := vectorsIn(t, store, cfg.Shards)
	p := portrait{doc.GraphHash, orders, vectors, map[string]rows.Row{}, sinkTopic(t, &Service{client: c}, cfg)}
	for id, r := range p.embeddings {
		if r.Seq, r.Shard = 0, 0; r.Deleted { // whether it ever had one depends on when it was deleted
			delete(p.embeddings, id)
			continue
		}
		p.embeddings[id] = r
	}
	cut, err := commitlog.CurrentCut(t.Context(), store, cfg.Shards)
	if err != nil {
		t.Fatal(err)
	}
	for shard := range cfg.Shards {
		for r, err := range cut.Newest(t.Context(), store, shard) {
			if err != nil {
				t.Fatal(err)
			}
			// Features are those of the generation when the row was committed.
			p.rows[r.NodeID] = rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, Labels: r.Labels,
				EventTime: r.EventTime, Deleted: r.Deleted, Attributes: r.Attributes,
				LinkEnds: r.LinkEnds, LinkWeights: r.LinkWeights, LinkTimes: r.LinkTimes,
				LinkKinds: r.LinkKinds}
		}
	}
	return p
}
