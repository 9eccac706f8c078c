package service

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/config"
	"giantstream/ingest/external"
	"giantstream/internal/canary"
	"giantstream/internal/race"
	"giantstream/sink/memstore"
)

// sentenceModel is an endpoint of OpenAI's protocol. Its vectors say what a text is about (the row of words that it has
// words of), and differ by text and by answer, as those of real models do by batch.
type sentenceModel struct {
	*httptest.Server
	down atomic.Bool
	// key, if not "", is asked of all requests.
	key string
	// knows, if not nil, is what the first numbers of a text's vector are in the place of what it is about.
	knows func(text string, v []float32)

	mu     sync.Mutex
	asked  []string
	answer int
}

func startModel(t *testing.T) *sentenceModel {
	t.Helper()
	m := &sentenceModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || m.down.Load() {
			http.Error(w, `{"error":"no memory"}`, http.StatusServiceUnavailable)
			return
		}
		if m.key != "" && r.Header.Get("Authorization") != "Bearer "+m.key {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"no such key: %s"}}`, r.Header.Get("Authorization"))
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked, m.answer = append(m.asked, q.Input...), m.answer+1
		var data []any
		for i, text := range q.Input {
			h := fnv.New32a()
			_, _ = h.Write([]byte(text))
			v := make([]float32, 8)
			for k := range v {
				v[k] = float32(h.Sum32()>>(4*k)%16)/200 + float32(m.answer)/1e5
			}
			if m.knows != nil {
				m.knows(text, v)
			}
			for about, of := range words {
				if slices.ContainsFunc(of, func(word string) bool { return len(text) >= len(word) && text[:len(word)] == word }) {
					v[about]++
				}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(m.Close)
	return m
}

// take returns the texts that were asked for since the last call.
func (m *sentenceModel) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked
	m.asked = nil
	slices.Sort(asked)
	return asked
}

func (m *sentenceModel) configure(c *config.Config) {
	c.Ingest.External.URL, c.Ingest.External.Model, c.Ingest.External.Dimensions = m.URL, "m", 8
}

// Each text is asked for once, whatever states it again and whichever process asks; a failure waits and loses nothing;
// and the rows are what the topics say, although the model never says the same twice.
func TestEachTextIsAskedForOnce(t *testing.T) {
	m := startModel(t)
	store, dir := &memstore.Store{}, t.TempDir()
	// with runs a process until the test of a step is over.
	with := func(step string, edit func(*config.Config), test func(*testing.T, *Service, *config.Config)) {
		t.Run(step, func(t *testing.T) {
			s, cfg := startService(t, Options{Store: store, Log: slog.New(slog.DiscardHandler), AcceptSettings: true},
				func(c *config.Config) {
					c.StateDir, c.Kafka.DataDir = filepath.Join(dir, "state"), filepath.Join(dir, "broker")
					c.Refresh.MinNodes = 1 << 30
					m.configure(c)
					edit(c)
				})
			test(t, s, cfg)
		})
	}
	same := func(*config.Config) {}
	record := func(i int, text string) map[string]any { return map[string]any{"id": nodeID(i), "text": text} }
	drain := func(t *testing.T, s *Service) map[string]string {
		t.Helper()
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		have, _ := vectorsIn(t, store, 2)
		return have[2]
	}
	with("an export, twice", same, func(t *testing.T, s *Service, cfg *config.Config) {
		produceGraph(t, s, cfg)
		have := drain(t, s)
		if asked := m.take(); len(asked) != nodes || len(slices.Compact(asked)) != nodes || len(have) != nodes {
			t.Fatalf("asked for %d texts; %d nodes of %d have a vector", len(asked), len(have), nodes)
		}
		again := map[string]any{}
		for i := range nodes {
			again[nodeID(i)] = record(i, text(i, i%4))
		}
		again[nodeID(0)], again[nodeID(1)] = record(0, "a new text"), record(1, "a new text")
		again[nodeID(2)], again[nodeID(3)] = nil, record(3, "")
		produce(t, s, cfg.Kafka.Topics.Nodes, again)
		now := drain(t, s)
		if asked := m.take(); len(slices.Compact(asked)) != 1 || asked[0] != "a new text" {
			t.Errorf("an export with one new text asked for %q", asked)
		}
		if now[nodeID(0)] == have[nodeID(0)] || now[nodeID(2)] != "" || now[nodeID(3)] != "" ||
			now[nodeID(4)] != have[nodeID(4)] {
			t.Error("an edited text has its old vector, or one that is gone has any, or one that stays has another")
		}
	})
	with("the model is away", same, func(t *testing.T, s *Service, cfg *config.Config) {
		m.down.Store(true)
		produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{nodeID(5): record(5, "while it is away")})
		eventually(t, "the text is in the graph without its vector", func() bool {
			left, err := s.ingest.Await()(t.Context())
			return err == nil && left == 1
		})
		eventually(t, "the service is ready, though the model is away", func() bool { return s.ingest.Unready() == "" })
	})
	m.down.Store(false)
	with("another process", same, func(t *testing.T, s *Service, cfg *config.Config) {
		drain(t, s)
		if asked := m.take(); !slices.Equal(asked, []string{"while it is away"}) {
			t.Errorf("asked for %q", asked)
		}
		if d := againstTopics(t, s, cfg, store); d.Total > 0 || d.Vectors != nodes-2 {
			t.Errorf("against the topics: %+v", d)
		}
		if letters := recordsOf(t, s, cfg.DeadLetters()); len(letters) != 0 {
			t.Errorf("%d dead letters", len(letters))
		}
	})
	// Another model has a topic of its own, and is asked for everything.
	other := func(c *config.Config) { c.Ingest.External.Model = "other" }
	with("another model", other, func(t *testing.T, s *Service, cfg *config.Config) {
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if asked := m.take(); len(asked) < nodes-3 {
			t.Errorf("asked for %d texts", len(asked))
		}
		if got := recordsOf(t, s, cfg.ExternalVectors()); len(got) != nodes-2 {
			t.Errorf("%d vectors of the other model", len(got))
		}
	})
}

// The consumer group of those who ask is moved while nobody runs, by a person or because the broker forgets its
// offsets: no text stays without its vector, and none that has one is asked for.
func TestAGroupOfTextsThatIsMovedLeavesNoneOut(t *testing.T) {
	const asked, sent = 20, 30
	for what, to := range map[string]int64{"forward": sent, "back": 5, "forgotten": -1} {
		t.Run(what, func(t *testing.T) {
			m := startModel(t)
			o := newOutliving(t, m.configure)
			o.send("old", 0, asked)
			o.drained()
			m.take()
			o.send("new", asked, sent)
			moveGroup(t, o, groupOf(t, o, "giantstream-test-external-"), o.cfg.Kafka.Topics.Nodes, to)
			o.drained()
			have, _ := vectorsIn(t, o.store, 1)
			if texts := m.take(); len(texts) != sent-asked || len(have[2]) != sent {
				t.Errorf("asked for %q; %d nodes of %d have a vector", texts, len(have[2]), sent)
			}
		})
	}
}

// groupOf returns the consumer group with a prefix.
func groupOf(t *testing.T, o *outliving, prefix string) string {
	t.Helper()
	res, err := o.admin.ListGroups(t.Context(), &kafka.ListGroupsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range res.Groups {
		if strings.HasPrefix(g.GroupID, prefix) {
			return g.GroupID
		}
	}
	t.Fatalf("no group is called %s…: %v", prefix, res.Groups)
	return ""
}

// A process that is to come to an end does not wait for another key, and says so without the one that it has. A service
// waits.
func TestAWrongKeyEndsWhatIsToEnd(t *testing.T) {
	m := startModel(t)
	m.key = "right"
	wrong := canary.New(1)
	cfg := configured(t, m.configure, func(c *config.Config) {
		c.Refresh.MinNodes, c.Ingest.External.APIKey = 1<<30, config.Secret(wrong)
	})
	s, err := Start(t.Context(), Options{Config: cfg, Store: &memstore.Store{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // which returns the error again
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{"a": map[string]any{"id": "a", "text": "router"}})
	eventually(t, "the text waits for its vector", func() bool {
		left, err := s.ingest.Await()(t.Context())
		return err == nil && left == 1
	})
	err = s.Drain(t.Context())
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized") ||
		!strings.Contains(err.Error(), "is ingest.external.api_key right?") {
		t.Fatalf("got %v", err)
	}
	if how := canary.Find(err.Error(), wrong); how != "" {
		t.Errorf("the key shows %s in %v", how, err)
	}
}

// A second pipeline has the embeddings of the first as a view: both ends of the protocol are ours.
func TestOnePipelineIsAnothersModel(t *testing.T) {
	roles := AllRoles()
	roles.Serve = true
	first, its := testServiceWith(t, &memstore.Store{}, roles, listen(t),
		func(c *config.Config) { c.Shards, c.Embedding.Dim = 1, 16 })
	produceGraph(t, first, its)
	if err := first.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := first.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first answers", func() bool { code, _ := get(t, its, "/readyz"); return code == http.StatusOK })

	store := &memstore.Store{}
	second, cfg := testService(t, store, func(c *config.Config) {
		e := &c.Ingest.External
		e.URL, e.Model, e.Dimensions, e.Batch = "http://"+its.HTTP.Listen+"/v1/embeddings", "giantstream", 8, 7
		c.Train.Encoder, c.Refresh.MinNodes = "hybrid", 1<<30
	})
	produceGraph(t, second, cfg)
	produce(t, second, cfg.Kafka.Topics.Nodes, map[string]any{"strange": map[string]any{"id": "strange", "text": "zzz"}})
	if err := second.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	have, _ := vectorsIn(t, store, cfg.Shards)
	if len(have[2]) != nodes || have[2]["strange"] != "" {
		t.Errorf("%d nodes have a vector, of which the first knows %d", len(have[2]), nodes)
	}
	metrics, err := second.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics {
		if m.GetName() == "giantstream_external_without_total" && m.GetMetric()[0].GetCounter().GetValue() != 1 {
			t.Errorf("%v texts went without a vector", m.GetMetric()[0].GetCounter().GetValue())
		}
	}
}

// A model that knows of texts what their words do not say, and links do, weighs in the encoder and makes it better; one
// of noise weighs nothing. Where it weighs, a question's text finds what the model knows. The answer says so where the
// model is away.
func TestAModelThatKnowsMore(t *testing.T) {
	race.SkipComputing(t)
	const items, kinds = 400, 8
	text := func(i int) string { // three common words, and a name that says nothing
		h := fnv.New64a()
		fmt.Fprint(h, i)
		s := h.Sum64()
		return fmt.Sprintf("common%d common%d common%d %016x", s%7, s/7%7, s/49%7, s)
	}
	kind := map[string]int{}
	for i := range items + 100 { // of which the last are in questions alone
		kind[text(i)] = i % kinds
	}
	for name, knows := range map[string]func(string, []float32){
		"knows": func(text string, v []float32) { v[kind[text]] += 0.5 },
		"noise": func(string, []float32) {},
	} {
		t.Run(name, func(t *testing.T) {
			m := startModel(t)
			m.knows = knows
			roles := AllRoles()
			roles.Serve = true
			s, cfg := testServiceWith(t, &memstore.Store{}, roles, listen(t), m.configure, func(c *config.Config) {
				c.Shards, c.Train.Encoder, c.Train.Epochs, c.Embedding.Dim = 1, "hybrid", 1, 32
			})
			records, links := map[string]any{}, map[string]any{}
			for i := range items {
				records[nodeID(i)] = map[string]any{"id": nodeID(i), "text": text(i)}
			}
			produce(t, s, cfg.Kafka.Topics.Nodes, records)
			for k := 1; k <= 8; k++ {
				for i := range items {
					links[nodeID(i)] = map[string]any{"src": nodeID(i), "dst": nodeID((i + k*k*kinds) % items)}
				}
				produce(t, s, cfg.Kafka.Topics.Edges, links)
			}
			if err := s.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			doc, _, err := s.UpToDate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			view := doc.Graph.Vectors[0]
			t.Logf("%+v", view)
			if known := name == "knows"; (view.Weight > 0) != known || known && view.With < view.Without+0.1 {
				t.Errorf("the view is %+v", view)
			}
			eventually(t, "it answers", func() bool { code, _ := get(t, cfg, "/readyz"); return code == http.StatusOK })
			m.take()
			found := func() (n int, without string) {
				for i := items; i < items+100; i++ {
					_, body := ask(t, cfg, "POST", "/similar", fmt.Sprintf(`{"text":%q,"k":5}`, text(i)))
					var got struct {
						Results []struct{ ID string }
						Without string
					}
					if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Results) != 5 {
						t.Fatalf("%s: %v", body, err)
					}
					for _, one := range got.Results {
						var node int
						if _, err := fmt.Sscanf(one.ID, "node-%d", &node); err == nil && node%kinds == i%kinds {
							n++
						}
					}
					without = got.Without
				}
				return n, without
			}
			right, without := found()
			asked := len(m.take())
			t.Logf("%d of 500 answers are of the question's kind", right)
			if name == "noise" {
				if asked > 0 || without != "" {
					t.Errorf("a view that weighs nothing asked for %d texts, and lacks %q", asked, without)
				}
				return
			}
			if right < 400 || asked != 100 || without != "" {
				t.Errorf("%d of 500 answers are of the question's kind; asked for %d texts of 100; without %q", right,
					asked, without)
			}
			m.down.Store(true)
			if right, without = found(); right > 150 || without != external.Name {
				t.Errorf("without the model, %d of 500 answers are of the question's kind; without %q", right, without)
			}
			if code, _ := get(t, cfg, "/readyz"); code != http.StatusOK {
				t.Errorf("/readyz says %d of a question that was answered", code)
			}
			m.down.Store(false)
		})
	}
}
