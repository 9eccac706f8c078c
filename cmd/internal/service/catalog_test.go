package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/cmd/internal/logview"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink/memstore"
	"giantstream/train/answer"
)

// ask sends a request to the service, and returns the status and the body.
func ask(t *testing.T, cfg *config.Config, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+cfg.HTTP.Listen+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.HTTP.Token != "" {
		req.Header.Set("Authorization", "Bearer "+string(cfg.HTTP.Token))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, out.String()
}

type reply struct {
	Generation int64 `json:"generation"`
	Results    []struct {
		ID     string  `json:"id"`
		Cosine float64 `json:"cosine"`
	} `json:"results"`
}

// matches asks, and returns the ids of the answer.
func matches(t *testing.T, cfg *config.Config, method, path, body string) (ids []string) {
	t.Helper()
	code, text := ask(t, cfg, method, path, body)
	var r reply
	if err := json.Unmarshal([]byte(text), &r); code != 200 || err != nil {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	for i, m := range r.Results {
		ids = append(ids, m.ID)
		if i > 0 && m.Cosine > r.Results[i-1].Cosine {
			t.Errorf("%s: not in order: %s", path, text)
		}
	}
	return ids
}

// about returns which of the four topics most of some nodes write about. Nodes of other ids, which may come between, do
// not count.
func about(ids []string) int {
	var count [4]int
	for _, id := range ids {
		var i int
		if _, err := fmt.Sscanf(id, "node-%d", &i); err == nil {
			count[i%4]++
		}
	}
	return slices.Index(count[:], slices.Max(count[:]))
}

// attributesAreServed asks for attributes, which are those of the newest window, and change without an embedding.
func attributesAreServed(t *testing.T, s *Service, cfg *config.Config) {
	t.Helper()
	if ids := matches(t, cfg, "GET", "/similar/node-010?k=5&where="+url.QueryEscape(`topic="1"`), ""); len(ids) != 5 ||
		slices.ContainsFunc(ids, func(id string) bool { return about([]string{id}) != 1 }) {
		t.Errorf("like node-010 with topic 1: %v", ids)
	}
	before, _ := s.answer.Catalog.Drift()
	const cheap = "/similar/node-010?show=price&where=price%3C10"
	for _, price := range []float64{9.5, 8.5} {
		produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{"node-001": map[string]any{"id": "node-001",
			"text": text(1, 1), "label": "1", "price": price}})
		eventually(t, "the price is known", func() bool {
			_, body := ask(t, cfg, "GET", cheap, "")
			return strings.Contains(body, fmt.Sprintf(`"attributes":{"price":%v}}]`, price))
		})
	}
	if ids := matches(t, cfg, "GET", cheap, ""); !slices.Equal(ids, []string{"node-001"}) {
		t.Errorf("cheap: %v", ids)
	}
	if after, err := s.answer.Catalog.Drift(); err != nil || after.Compared != before.Compared {
		t.Errorf("a price was encoded: %+v, %+v, %v", before, after, err)
	}
}

// The role serve answers what is similar, follows changes and deletions, and says why it cannot answer. A process that
// starts later gives the same answers.
func TestSimilarItemsAreServed(t *testing.T) {
	store := &memstore.Store{}
	roles := AllRoles()
	roles.Serve = true
	s, cfg := testServiceWith(t, store, roles, listen(t), func(c *config.Config) {
		c.HTTP.Token = "s3cret"
		c.Refresh.MinChanges = 1 // one generation
		c.Ingest.Nodes.Attributes = config.List{"topic=label", "price:number"}
	})
	eventually(t, "no embeddings yet", func() bool {
		code, body := ask(t, cfg, "GET", "/similar/node-000", "")
		return code == 503 && strings.Contains(body, "no embeddings yet")
	})
	produceGraph(t, s, cfg)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.UpToDate(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the embeddings are read", func() bool {
		code, _ := ask(t, cfg, "GET", "/similar/node-000", "")
		return code == 200
	})
	if ids := matches(t, cfg, "GET", "/similar/node-002?k=20", ""); len(ids) != 20 || about(ids) != 2 ||
		slices.Contains(ids, "node-002") {
		t.Errorf("like node-002: %v", ids)
	}
	ids := matches(t, cfg, "POST", "/similar", `{"text":"butter and sugar and dough"}`)
	if len(ids) != 10 || about(ids) != 2 {
		t.Errorf("like dough: %v", ids)
	}

	// A change, a deletion and a new node arrive.
	produce(t, s, cfg.Kafka.Topics.Nodes, map[string]any{
		"node-002": map[string]any{"id": "node-002", "text": text(2, 3)},
		"node-006": nil,
		"a/b c":    map[string]any{"id": "a/b c", "text": text(10, 2)},
		"mute":     map[string]any{"id": "mute", "text": "..."},
	})
	eventually(t, "node-002 is about matches now", func() bool {
		return about(matches(t, cfg, "POST", "/similar", `{"id":"node-002","k":20}`)) == 3
	})
	eventually(t, "the new node is found by its path", func() bool {
		code, _ := ask(t, cfg, "GET", "/similar/a/b%20c", "")
		return code == 200
	})
	eventually(t, "the deleted node is gone", func() bool {
		code, _ := ask(t, cfg, "GET", "/similar/node-006", "")
		return code == 404
	})
	eventually(t, "a node without words is known", func() bool {
		code, body := ask(t, cfg, "GET", "/similar/mute", "")
		return code == 422 && strings.Contains(body, "no text")
	})
	if ids := matches(t, cfg, "POST", "/similar", `{"id":"node-010","k":1000}`); slices.Contains(ids, "node-006") ||
		!slices.Contains(ids, "a/b c") || slices.Contains(ids, "mute") {
		t.Errorf("all nodes: %v", ids)
	}
	if d, err := s.answer.Catalog.Drift(); err != nil || d.Compared < 1 || d.Added != 1 || d.Removed != 1 ||
		*d.Cosine > 0.99 ||
		*d.Moved <= 0 {
		t.Errorf("one node has another subject, one came and one went, but the drift is %+v, %v", d, err)
	}
	attributesAreServed(t, s, cfg)
	later := answer.New(answer.Options{Store: store, Log: logview.Tail{Store: store}, Shards: cfg.Shards,
		Generation: s.Current, Exact: true, Attributes: wiring.AttributesOf(cfg)})
	if _, err := later.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		if i == 6 {
			continue
		}
		wanted := answer.Wanted{K: 1000, Show: []string{"topic", "price"}}
		a, err := later.Similar([]answer.Like{{ID: nodeID(i), Weight: 1}}, wanted)
		b, err2 := s.answer.Catalog.Similar([]answer.Like{{ID: nodeID(i), Weight: 1}}, wanted)
		if err != nil || err2 != nil || !reflect.DeepEqual(a.Neighbours, b.Neighbours) {
			t.Fatalf("%s: %v (%v) and %v (%v)", nodeID(i), a, err, b, err2)
		}
	}

	reasonsAreServed(t, cfg)
	writesAreRead(t, s, cfg)
	everyIDIsAsked(t, s, cfg)

	var embedded struct {
		Dim        int
		Embeddings [][]float32
	}
	code, body := ask(t, cfg, "POST", "/embed", `{"texts":["butter and sugar","",  "goal"]}`)
	if err := json.Unmarshal([]byte(body), &embedded); code != 200 || err != nil || len(embedded.Embeddings) != 3 ||
		len(embedded.Embeddings[0]) != embedded.Dim || embedded.Embeddings[1] != nil {
		t.Errorf("embed: %d %s", code, body)
	}
	for _, bad := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "/similar/nobody", "", 404, "no such node"},
		{"GET", "/similar/node-001?k=0", "", 400, "from 1 to 1000"},
		{"GET", "/similar/node-001?k=many", "", 400, "no number"},
		{"POST", "/similar", `{"id":"node-001","text":"goal"}`, 400, "one of the two"},
		{"POST", "/similar", `{}`, 400, "similar to what?"},
		{"POST", "/similar", `{"ids":["node-001"]}`, 400, "unknown field"},
		{"POST", "/similar", `{"id":"node-001"} {}`, 400, "more than one"},
		{"POST", "/similar", `{`, 400, "the question"},
		{"POST", "/similar", `{"text":"???"}`, 422, "no text"},
		{"POST", "/similar", `{"text":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "more than"},
		{"POST", "/embed", `{"texts":[]}`, 400, "from 1 to 256"},
		{"POST", "/embed", `{"texts":["goal",null]}`, 400, "null in a list"},
		{"POST", "/goes-with", `{"ids":[null]}`, 400, "null in a list"},
		{"POST", answer.OpenAIPath, `{"input":[null]}`, 400, "neither a text nor a list of texts"},
		{"POST", "/similar", `{"id":7}`, 400, "id is not a string, but of type number"},
		{"POST", "/similar", `{"id":"node-001","k":"5"}`, 400, "k is not a whole number, but of type string"},
		{"POST", "/similar", `{"id":"node-001","k":2.5}`, 400, "k is not a whole number, but of type number 2.5"},
		{"POST", "/goes-with", `{"ids":"node-001"}`, 400, "ids is not a list, but of type string"},
		{"POST", "/goes-with", `{"ids":[1]}`, 400, "ids is not a string, but of type number"},
		{"POST", "/similar", `7`, 400, "it is not an object, but of type number"},
		{"POST", "/similar", `{"id":"node-001","k":2,"k":3}`, 400, "has the field k twice"},
		{"POST", "/similar", `{"id":"node-001","ID":"node-002"}`, 400, "has the field ID twice"},
		{"POST", "/similar", `{"like":[{"id":"node-001","id":"node-002"}]}`, 400, "has the field id twice"},
		{"PUT", "/similar", `{}`, 405, ""},
		{"POST", "/similar/node-001", `{}`, 405, "POST is not a method of /similar/node-001: use GET, HEAD"},
		{"GET", "/similar/node-001?k=3&without=node-002", "", 400, `unknown parameter \"without\"; known here: min_offset`},
		{"GET", "/similar/node-001?k=3&k=4", "", 400, `given 2 times`},
		{"GET", "/similar/node-001?k=3;offset=4", "", 400, "semicolon"},
		{"POST", "/similar?k=3", `{"id":"node-001"}`, 400, `unknown parameter \"k\"`},
		{"GET", "/nothing/../similar/node-001", "", 404, ""},
		{"GET", "//similar/node-001", "", 404, ""},
	} {
		if code, body := ask(t, cfg, bad.method, bad.path, bad.body); code != bad.code || !strings.Contains(body, bad.says) {
			t.Errorf("%s %s %.40s: %d %s, want %d %s", bad.method, bad.path, bad.body, code, body, bad.code, bad.says)
		}
	}
	if code, body := ask(t, cfg, "GET", "/openapi.json", ""); code != 200 || !json.Valid([]byte(body)) {
		t.Errorf("openapi.json: %d %.100s", code, body)
	}
	if code, _ := get(t, cfg, "/similar/node-001"); code != 401 {
		t.Errorf("without the token: %d", code)
	}
	if _, text := ask(t, cfg, "GET", "/metrics", ""); !strings.Contains(text,
		`giantstream_http_answers_total{kind="similar",status="404",token=""}`) {
		t.Error("the answers are not counted")
	}
}

// reasonsAreServed asks why nodes are similar, one of which has another text than at the cut.
func reasonsAreServed(t *testing.T, cfg *config.Config) {
	t.Helper()
	var got struct {
		Results []struct {
			ID      string
			Because *answer.Parts
		}
	}
	eventually(t, "the texts are read for reasons", func() bool {
		code, body := ask(t, cfg, "POST", "/similar",
			`{"like":[{"id":"node-003"},{"id":"node-010"}],"explain":true,"k":100}`)
		if code != 200 && code != 503 {
			t.Fatalf("%d %s", code, body)
		}
		return code == 200 && json.Unmarshal([]byte(body), &got) == nil
	})
	var seen []string
	for _, one := range got.Results {
		if one.Because == nil {
			t.Errorf("%s is similar for no reason", one.ID)
			continue
		}
		seen = append(seen, one.ID)
	}
	if !slices.Contains(seen, "node-002") || !slices.Contains(seen, "a/b c") {
		t.Errorf("reasons of %v", seen)
	}
}

// writesAreRead writes, and reads at once with the offsets of what was written.
func writesAreRead(t *testing.T, s *Service, cfg *config.Config) {
	t.Helper()
	topic := cfg.Kafka.Topics.Nodes
	for i := range 12 {
		id := fmt.Sprintf("written-%d", i%3)
		var record any
		if i%4 < 3 {
			record = map[string]any{"id": id, "text": text(i, i%4), "price": 1000 + i}
		}
		produce(t, s, topic, map[string]any{id: record})
		end, err := s.Client().EndOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		var written []string
		for partition, at := range end[topic] {
			if at > 0 {
				written = append(written, fmt.Sprintf("%s:%d:%d", topic, partition, at-1))
			}
		}
		path := fmt.Sprintf("?wait=20s&min_offset=%s", strings.Join(written, ","))
		code, body := ask(t, cfg, "POST", "/similar"+path, `{"id":"`+id+`"}`)
		if want := map[bool]int{true: 404, false: 200}[record == nil]; code != want {
			t.Errorf("write %d of %s is answered by %d %s, not %d", i, id, code, body, want)
		}
		if record == nil {
			continue
		}
		code, body = ask(t, cfg, "GET", "/similar/node-000"+path+"&show=price&where="+
			url.QueryEscape(fmt.Sprint("price=", 1000+i)), "")
		if code != 200 || !strings.Contains(body, `"id":"`+id+`"`) {
			t.Errorf("write %d: the price is not read: %d %s", i, code, body)
		}
	}
	unseen := "/embed?wait=0s&min_offset=" + topic + ":0:1000000"
	if code, body := ask(t, cfg, "POST", unseen, `{"texts":["x"]}`); code != 503 ||
		!strings.Contains(body, "is not read yet") {
		t.Errorf("an offset that will be: %d %s", code, body)
	}
}

// everyIDIsAsked asks for ids that look like paths, as they are and percent-encoded. Each is another node.
func everyIDIsAsked(t *testing.T, s *Service, cfg *config.Config) {
	t.Helper()
	ids := []string{"x", "/x", "//x", "x/", "a/../x", ".", "..", "./x", "../similar/x", "x//y", "x/y", "%2F", "x%2Fy", "/",
		"?k=1", "#x", "x y", "é/../x"}
	records := map[string]any{}
	for i, id := range ids {
		records[id] = map[string]any{"id": id, "text": text(i, i%4)}
	}
	produce(t, s, cfg.Kafka.Topics.Nodes, records)
	for _, id := range ids {
		question, err := json.Marshal(map[string]any{"id": id, "k": 1000})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the index has "+id, func() bool {
			code, _ := ask(t, cfg, "POST", "/similar", string(question))
			return code == 200
		})
	}
	for _, id := range ids {
		paths := []string{url.PathEscape(id), strings.ReplaceAll(url.PathEscape(id), ".", "%2E")}
		if !strings.ContainsAny(id, "%?# é") {
			paths = append(paths, id)
		}
		for _, path := range paths {
			found := matches(t, cfg, "GET", "/similar/"+path+"?k=1000", "")
			for _, other := range ids {
				if slices.Contains(found, other) == (other == id) {
					t.Errorf("GET /similar/%s: %q is among the answers: %t", path, other, other != id)
				}
			}
		}
	}
}
