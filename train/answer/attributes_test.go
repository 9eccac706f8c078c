package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/answer/filter"
	"giantstream/train/generation"
	"giantstream/train/generation/generationtest"
)

// history is a commit log of one shard: the n-th stretch ends with manifest n+1.
type history [][]Row

func (l *history) Stretches(_ context.Context, _ int, after int64) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		for i, all := range *l {
			rows := func(yield func(Row, error) bool) {
				for _, r := range all {
					if !yield(r, nil) {
						return
					}
				}
			}
			if int64(i) >= after && !yield(Stretch{To: int64(i + 1), Rows: rows}, nil) {
				return
			}
		}
	}
}

func (l *history) Offsets(_ context.Context, _ int, seq int64) (map[string]int64, error) {
	if int(seq) != len(*l) {
		return nil, nil
	}
	return map[string]int64{"nodes": seq * 10}, nil
}

func (l *history) Attributes(ctx context.Context, shard int) iter.Seq2[Stretch, error] {
	return l.Stretches(ctx, shard, 0)
}

func node(id, text, attributes string) Row {
	return Row{Row: rows.Row{NodeID: id, Text: text, Attributes: attributes}}
}

func alone(id, attributes string) Row {
	return Row{Row: rows.Row{NodeID: id, Attributes: attributes}, AttributesAlone: true}
}

// pricedShop is a catalog of someShop whose node i has the price i, and the brand "even" or none.
func pricedShop(t *testing.T) (*world, *history) {
	t.Helper()
	s, log := someShop(), &history{nil}
	for i, r := range s.Source {
		attributes := fmt.Sprintf(`{"price":%d}`, i)
		if i%2 == 0 {
			attributes = fmt.Sprintf(`{"brand":"even","price":%d}`, i)
		}
		(*log)[0] = append((*log)[0], node(r.NodeID, r.Text, attributes))
	}
	w := &world{store: &memstore.Store{}, shop: s}
	w.served = open(t, w.store, generationtest.Build(t, w.store, s, shopSettings()))
	w.Catalog = New(Options{Store: w.store, Log: log, Shards: 1, Complements: true, Exact: true,
		Attributes: []filter.Attribute{{Name: "price", Type: filter.Number}, {Name: "brand", Type: filter.String}},
		Generation: func() *generation.Generation { return w.served }})
	w.update(t)
	return w, log
}

func (w *world) update(t *testing.T) {
	t.Helper()
	if _, err := w.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func where(t *testing.T, short string) *filter.Expr {
	t.Helper()
	e, err := filter.Parse(short)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// likeFirst returns the ids of all nodes like node-0001 that match a filter.
func (w *world) likeFirst(t *testing.T, short string) (ids []string) {
	t.Helper()
	got, err := w.Similar([]Like{{ID: "node-0001", Weight: 1}}, Wanted{K: 1000, Where: where(t, short)})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range got.Neighbours {
		ids = append(ids, n.ID)
	}
	slices.Sort(ids)
	return ids
}

// Answers match the filter by the attributes of now, which come and go without a text, also under a new generation.
func TestAttributesFollowTheLog(t *testing.T) {
	w, log := pricedShop(t)
	check := func(short string, want ...string) {
		t.Helper()
		if got := w.likeFirst(t, short); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", short, got, want)
		}
	}
	check(`price<4`, "node-0000", "node-0002", "node-0003")
	check(`price<4 and not brand exists`, "node-0003")
	drift, _ := w.Drift()
	*log = append(*log, []Row{alone("node-0002", `{"brand":"even","price":1000}`), alone("node-0003", ``),
		alone("never there", `{"price":3}`), {Row: rows.Row{NodeID: "node-0000", Deleted: true}}})
	w.update(t)
	if after, _ := w.Drift(); after.Compared != drift.Compared {
		t.Errorf("a change of attributes is compared: %+v", after)
	}
	check(`price<4`)
	check(`price>=1000`, "node-0002")
	check(`not price exists`, "node-0003")
	*log = append(*log, []Row{node("new", w.shop.Source[4].Text, `{"price":2}`),
		node("node-0000", w.shop.Source[4].Text, ``)}, []Row{alone("node-0003", `{"price":2.5}`),
		node("node-0005", "topic1word1 topic1word2", `{"price":3}`)})
	w.update(t)
	for range 2 {
		check(`price<4`, "new", "node-0003", "node-0005")
		check(`not price exists`, "node-0000")
		check(`price in (2, 2.5, 1000) and brand!="odd"`, "node-0002")
		w.served = open(t, w.store, generationtest.Build(t, w.store, w.shop, shopSettings()))
		w.update(t)
	}
}

// A basket is answered as without a filter, without what does not match, and filled from the rest.
func TestGoesWithWhere(t *testing.T) {
	w, _ := pricedShop(t)
	for _, basket := range [][]string{{"node-0001", "node-0009"}, {"node-0201"}, {"node-0200"}} {
		all, err := w.GoesWith(basket, Wanted{K: 1000})
		if err != nil {
			t.Fatal(err)
		}
		all.Items = slices.DeleteFunc(all.Items, func(c Complement) bool { return strings.HasSuffix(c.ID, "5") })
		for _, k := range []int{3, 1000} {
			var short []string
			for i := 5; i < 240; i += 10 {
				short = append(short, fmt.Sprint("price!=", i))
			}
			got, err := w.GoesWith(basket, Wanted{K: k, Where: where(t, strings.Join(short, " and ")),
				Show: []string{"price", "brand"}})
			if want := min(k, len(all.Items)); err != nil || len(got.Items) != want {
				t.Fatalf("%v: %d answers, not %d, %v", basket, len(got.Items), want, err)
			}
			for i, c := range got.Items {
				// The index finds what is near by texts within its precision.
				if want := all.Items[i]; math.Abs(c.Score-want.Score) > 0.0005 || c.ID != want.ID && c.Partner != "" {
					t.Fatalf("%v: answer %d is %+v, want %+v", basket, i, c, want)
				}
				if c.Attributes["price"] == nil || strings.HasSuffix(c.ID, "5") {
					t.Errorf("%v: answer %d has %v", basket, i, c.Attributes)
				}
			}
		}
	}
}

func TestWhereOverHTTP(t *testing.T) {
	w, log := pricedShop(t)
	h := Handler(w.Catalog, Serving{})
	asked := url.QueryEscape(`price<=12 and brand="even"`)
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/similar/node-0001?k=1&show=price,brand&where=" + url.QueryEscape(`price=8`), "", 200,
			`"attributes":{"brand":"even","price":8}}]`},
		{"GET", "/similar/node-0002?where=" + asked, "", 200, `"results":[{"id":"node-00`},
		{"POST", "/similar", `{"id":"node-0001","k":3,"where":"price>900"}`, 200, `"results":[]`},
		{"POST", "/similar", `{"id":"node-0001","where":{"attribute":"price","op":"=","value":3},"show":["price"]}`, 200,
			`"attributes":{"price":3}`},
		{"GET", "/goes-with?id=node-0001&show=price&where=" + asked, "", 200, `"attributes":{"price":`},
		{"POST", "/goes-with", `{"ids":["node-0001"],"where":"price=3"}`, 200, `"id":"node-0003"`},
		{"GET", "/similar/node-0001?where=price%3C", "", 400, "column 7: the end where a value is due"},
		{"GET", "/similar/node-0001?where=prize%3C5", "", 400, "there are brand (string), price (number). Did you mean"},
		{"POST", "/similar", `{"id":"node-0001","where":"price^=\"5\""}`, 400, "price is of type number"},
		{"POST", "/similar", `{"id":"node-0001","where":{"nor":[]}}`, 400, "unknown field"},
		{"POST", "/similar", `{"id":"node-0001","where":5}`, 400,
			"the question: where: it is not an object, but of type number"},
		{"POST", "/similar", `{"id":"node-0001","k":"5"}`, 400, "the question: k is not a whole number"},
		{"GET", "/similar/node-0001?show=colour", "", 400, `there is no attribute \"colour\"`},
		{"GET", "/goes-with?id=node-0001&show=colour", "", 400, `there is no attribute \"colour\"`},
	} {
		if code, body := askGoesWith(t, h, c.method, c.path, c.body); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %s: %d %.300s, want %d %s", c.method, c.path, c.body, code, body, c.code, c.want)
		}
	}
	var short, long struct{ Results []match }
	_, body := askGoesWith(t, h, "GET", "/similar/node-0001?show=price&where="+asked, "")
	err := json.Unmarshal([]byte(body), &short)
	_, body = askGoesWith(t, h, "POST", "/similar", `{"id":"node-0001","show":["price"],"where":{"and":[{"attribute":`+
		`"price","op":"<=","value":12},{"attribute":"brand","op":"=","value":"even"}]}}`)
	if err = errors.Join(err, json.Unmarshal([]byte(body), &long)); err != nil || len(short.Results) != 7 ||
		fmt.Sprint(short) != fmt.Sprint(long) {
		t.Errorf("%v and %v, %v", short, long, err)
	}
	*log = append(*log, []Row{alone("node-0003", `{"price":`)})
	if _, err := w.Update(t.Context()); err == nil || !strings.Contains(err.Error(), `attributes of node "node-0003"`) {
		t.Errorf("damaged attributes: %v", err)
	}
}

// What is answered while attributes and nodes change matches as it is shown.
func TestAnswersBesideChanges(t *testing.T) {
	w, log := pricedShop(t)
	cheap := where(t, "price<100")
	done := make(chan error, 2)
	for range cap(done) {
		go func() {
			for i := range 300 {
				a, err := w.Similar([]Like{{Text: "topic1word1 topic2word2", Weight: 1}}, Wanted{K: 20, Where: cheap,
					Show: []string{"price"}, Explain: i%4 == 0})
				if errors.Is(err, ErrTexts) {
					err = nil
				}
				for _, n := range a.Neighbours {
					if price, ok := n.Attributes["price"].(float64); !ok || price >= 100 {
						err = fmt.Errorf("%s has the price %v", n.ID, n.Attributes["price"])
					}
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for i := range 60 {
		var changes []Row
		for n := range 240 {
			id, price := fmt.Sprintf("node-%04d", n), fmt.Sprintf(`{"price":%d}`, (n*i)%200)
			switch {
			case n%12 == 0 && i%2 == 0:
				changes = append(changes, Row{Row: rows.Row{NodeID: id, Deleted: true}})
			case n%12 == 0:
				changes = append(changes, node(id, w.shop.Source[239-n].Text, price))
			default:
				changes = append(changes, alone(id, price))
			}
		}
		*log = append(*log, changes)
		w.update(t)
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
