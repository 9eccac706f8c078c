package answer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/pairs"
	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

// shop is the nodes and orders of a shop.
type shop struct {
	generationtest.Source
	orders []rows.Order
}

func (s shop) Orders() []rows.Order { return s.orders }

// someShop has nodes of four topics. Orders have up to five of a group of a topic, but for the last forty nodes. Every
// second of these has no text; and one order has a node of those without text and one of topic 1.
func someShop() shop {
	const nodes, topics, ordered = 240, 4, 200
	const groups = 5 // of the items of a topic that are ordered together, of which texts know nothing
	s := shop{Source: graphtest.Rows(nodes, topics)}
	for i := ordered; i < nodes; i += 2 {
		s.Source[i].Text = ""
	}
	r := numeric.NewRand(3, 'o')
	for k := range 900 {
		o := rows.Order{OrderID: fmt.Sprintf("order-%d", k)}
		for range 3 + r.IntN(3) {
			item := k/topics%groups*(ordered/topics/groups) + r.IntN(ordered/topics/groups)
			o.Items = append(o.Items, s.Source[item*topics+k%topics].NodeID)
		}
		o.Items = slices.Compact(slices.Sorted(slices.Values(o.Items)))
		s.orders = append(s.orders, o)
	}
	s.orders = append(s.orders, rows.Order{OrderID: "last", Items: []string{"node-0001", "node-0200"}})
	return s
}

func shopSettings() fit.Settings {
	return fit.Settings{Profile: "default", MaxDegree: 1000, ProjectionDim: 32, EmbeddingDim: 16,
		Weighting: "inverse_sqrt_degree", LabelFeatures: "pifa", LeafSize: 6, Branching: 3, Encoder: "linear", Seed: 1,
		EvalSeed: 1, FromOrders: &fit.FromOrders{Measure: pairs.Cosine, MinSupport: 1, MaxPartners: 10}}
}

// tail is what is committed after the cut of the first generation.
type tail []rows.Row

func (l tail) Stretches(_ context.Context, _ int, after int64) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		if len(l) == 0 || after > 1 {
			return
		}
		yield(Stretch{To: 2, Rows: func(yield func(Row, error) bool) {
			for _, r := range l {
				if !yield(Row{Row: r}, nil) {
					return
				}
			}
		}}, nil)
	}
}

func (tail) Offsets(context.Context, int, int64) (map[string]int64, error) {
	return nil, nil
}

func (l tail) Attributes(ctx context.Context, shard int) iter.Seq2[Stretch, error] {
	return l.Stretches(ctx, shard, 0)
}

type world struct {
	*Catalog
	store  sink.Store
	shop   shop
	served *generation.Generation
}

func open(t *testing.T, store sink.Store, doc *generation.Doc) *generation.Generation {
	t.Helper()
	g, err := generation.Open(t.Context(), store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newWorld(t *testing.T, s shop, after tail) *world {
	t.Helper()
	w := &world{store: &memstore.Store{}, shop: s}
	w.served = open(t, w.store, generationtest.Build(t, w.store, s, shopSettings()))
	w.Catalog = New(Options{Store: w.store, Log: after, Shards: 1, Complements: true, Exact: true,
		Generation: func() *generation.Generation { return w.served }})
	if _, err := w.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// plain is GoesWith of all nodes, by the rows of the store and the embeddings of the index.
func (w *world) plain(t *testing.T, basket []string, gone string) (all []Complement) {
	t.Helper()
	v, mean := make([]float32, w.now.Load().index.Dim()), make([]float32, w.now.Load().index.Dim())
	texts := false
	for _, id := range basket {
		if w.now.Load().index.Vector(id, v) {
			texts = true
			for i := range v {
				mean[i] += v[i]
			}
		}
	}
	for _, row := range w.shop.Source {
		if slices.Contains(basket, row.NodeID) || row.NodeID == gone {
			continue
		}
		c := Complement{ID: row.NodeID}
		best := float32(0)
		for r, err := range generation.Complements(t.Context(), w.store, w.served.Doc) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Item != row.NodeID || !slices.Contains(basket, r.Partner) {
				continue
			}
			c.Score, c.Support = c.Score+float64(r.Score), c.Support+int64(r.Support)
			if r.Score > best {
				best, c.Partner = r.Score, r.Partner
			}
		}
		if texts && w.now.Load().index.Vector(row.NodeID, v) {
			c.Score += 0.1 * numeric.Cosine(v, mean)
		} else if c.Support == 0 {
			continue
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Complement) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID))
	})
	return all
}

func TestGoesWithAddsUpWhatTheBasketSays(t *testing.T) {
	race.SkipComputing(t)
	after := tail{{NodeID: "node-0005", Deleted: true}, {NodeID: "node-0008", Text: "the topic0word1 topic0word2"}}
	w := newWorld(t, someShop(), after)
	for _, basket := range [][]string{{"node-0001"}, {"node-0001", "node-0009", "node-0017"}, {"node-0201"},
		{"node-0200"}, {"node-0001", "node-0201", "node-0202"}} {
		const k = 25
		got, err := w.GoesWith(basket, Wanted{K: k})
		if err != nil {
			t.Fatal(err)
		}
		want, own := w.plain(t, basket, "node-0005"), map[string]Complement{}
		for _, c := range want {
			own[c.ID] = c
		}
		want = want[:min(k, len(want))]
		if len(got.Items) != len(want) || got.Generation != 1 {
			t.Fatalf("%v: %d answers of generation %d, want %d", basket, len(got.Items), got.Generation, len(want))
		}
		for i, c := range got.Items {
			is := own[c.ID]
			if math.Abs(c.Score-is.Score) > 1e-6 || c.Support != is.Support || c.Partner != is.Partner {
				t.Fatalf("%v: answer %d is %+v, want %+v", basket, i, c, is)
			}
			// The index finds what is near by texts within its precision.
			if math.Abs(c.Score-want[i].Score) > 0.0005 || c.ID != want[i].ID && c.Partner != "" {
				t.Fatalf("%v: answer %d is %+v, and not %+v", basket, i, c, want[i])
			}
		}
		twice, err := w.GoesWith(append(slices.Clone(basket), basket...), Wanted{K: k})
		if err != nil || !reflect.DeepEqual(twice.Items, got.Items) {
			t.Errorf("%v twice: %v, %v", basket, twice, err)
		}
	}
	if got, err := w.GoesWith([]string{"node-0201"}, Wanted{K: 3}); err != nil || got.Items[0].Partner != "" ||
		got.Items[0].Support != 0 || got.Items[0].Score > 0.1001 {
		t.Errorf("a node without orders: %+v, %v", got, err)
	}
}

// A new generation takes the place of the one before, with orders or without.
func TestGoesWithFollowsTheGeneration(t *testing.T) {
	w := newWorld(t, someShop(), nil)
	s := w.shop
	s.orders = append(slices.Clone(s.orders), rows.Order{OrderID: "more", Items: []string{"node-0003", "node-0204"}})
	w.served = open(t, w.store, generationtest.Build(t, w.store, s, shopSettings()))
	if _, err := w.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := w.GoesWith([]string{"node-0204"}, Wanted{K: 1})
	if err != nil || got.Generation != 2 || len(got.Items) != 1 || got.Items[0].ID != "node-0003" {
		t.Errorf("by the second generation: %+v, %v", got, err)
	}
	s.orders = nil
	w.served = open(t, w.store, generationtest.Build(t, w.store, s, shopSettings()))
	if _, err := w.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.GoesWith([]string{"node-0204"}, Wanted{K: 1}); !errors.Is(err, generation.ErrNoOrders) {
		t.Errorf("by a generation without orders: %v", err)
	}
	if _, err := w.Similar([]Like{{ID: "node-0001", Weight: 1}}, Wanted{K: 1}); err != nil {
		t.Errorf("what is similar needs no orders: %v", err)
	}
}

func askGoesWith(t *testing.T, h http.Handler, method, path, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestGoesWithOverHTTP(t *testing.T) {
	s := someShop()
	s.Source = append(s.Source, rows.Row{NodeID: "a&b", Text: s.Source[1].Text})
	w := newWorld(t, s, nil)
	kinds := map[string]int{}
	h := Handler(w.Catalog, Serving{Observe: func(_ *http.Request, a Answered) {
		kinds[fmt.Sprint(a.Kind, " ", a.Status)]++
	}})
	const path = "/goes-with?id=node-0001&id=node-0009&k=4"
	code, body := askGoesWith(t, h, "GET", path, "")
	var got struct {
		Generation int64
		Results    []struct {
			ID, Partner string
			Score       float64
			Support     int64
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 || got.Generation != 1 ||
		len(got.Results) != 4 || got.Results[0].Partner == "" || got.Results[0].Support == 0 {
		t.Errorf("%d %s: %v", code, body, err)
	}
	if _, posted := askGoesWith(t, h, "POST", "/goes-with", `{"ids":["node-0009","node-0001"],"k":4}`); posted != body {
		t.Errorf("POST answers %s, and GET %s", posted, body)
	}
	many := make([]string, maxBasket+1)
	for i := range many {
		many[i] = s.Source[i%len(s.Source)].NodeID
	}
	manyOf := func(n int) string {
		b, err := json.Marshal(basketQuestion{IDs: many[:n]})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/goes-with?id=" + url.QueryEscape("a&b"), "", 200, `"results":[{`},
		{"POST", "/goes-with", manyOf(200), 200, `"results":[{`},
		{"POST", "/goes-with", manyOf(maxBasket), 200, `"results":[]`}, // all nodes are in the basket
		{"POST", "/goes-with", manyOf(maxBasket + 1), 400, "from 1 to 2000"},
		{"POST", "/goes-with", `{"ids":[]}`, 400, "from 1 to 2000"},
		{"GET", "/goes-with", "", 400, "0 ids"},
		{"GET", "/goes-with?id=node-0001&k=0", "", 400, "from 1 to 1000"},
		{"GET", "/goes-with?id=node-0001&k=x", "", 400, "no number"},
		{"POST", "/goes-with", `{"id":"node-0001"}`, 400, "did you mean ids? fields are distinct, exclude"},
		{"GET", "/goes-with?id=node-0001&id=nobody", "", 404, `no such node: \"nobody\"`},
		{"GET", "/goes-with?id=node-0202", "", 422, "no text"},
	} {
		if code, body := askGoesWith(t, h, c.method, c.path, c.body); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %.300s, want %d %s", c.method, c.path, code, body, c.code, c.want)
		}
	}
	if kinds["goes-with 200"] != 5 || kinds["goes-with 404"] != 1 {
		t.Errorf("observed %v", kinds)
	}
	s.orders = nil
	h = Handler(newWorld(t, s, nil).Catalog, Serving{})
	if code, body := askGoesWith(t, h, "GET", "/goes-with?id=node-0001", ""); code != 409 ||
		!strings.Contains(body, "built without orders") {
		t.Errorf("without orders: %d %s", code, body)
	}
	if code, body := askGoesWith(t, Handler(New(Options{}), Serving{}), "GET", "/goes-with?id=x", ""); code != 503 {
		t.Errorf("before the first generation: %d %s", code, body)
	}
}
