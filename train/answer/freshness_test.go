package answer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// getFresh asks for the price of node-0003, and returns with the answer what was read for it.
func getFresh(t *testing.T, h http.Handler, query string) (code int, body, asOf string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet,
		"/similar/node-0001?show=price&k=1000&"+query, nil))
	return w.Code, w.Body.String(), w.Header().Get(AsOfHeader)
}

// An answer has what is at the offset that was asked for, and says so, or is none.
func TestAnswersAreAsFreshAsAsked(t *testing.T) {
	w, log := pricedShop(t) // manifest n covers nodes up to offset 10n-1
	h := Handler(w.Catalog, Serving{})
	for _, c := range []struct {
		query string
		code  int
		want  string
	}{
		{"min_offset=nodes:0:9", 200, "nodes:0:9"},
		{"as_of=true", 200, "nodes:0:9"},
		{"", 200, ""},
		{"min_offset=nodes:0:10&wait=0s", 503, "offset 10 of partition 0 of nodes is not read yet"},
		{"min_offset=nodes:0:9,nodes:0:10&wait=1ms", 503, "offset 10"},
		{"min_offset=nodes:1:0", 400, "partition 1 of nodes; there are 1"},
		{"min_offset=prices:0:0", 400, `\"prices\" is no topic that shards read; there are nodes`},
		{"min_offset=nodes:0", 400, "topic:partition:offset"},
		{"min_offset=nodes:0:-1", 400, "of 0 or more"},
		{"min_offset=nodes:x:1", 400, "no partition and offset"},
		{"min_offset=nodes:0:9&wait=1h", 400, "no duration from 0s to 20s"},
		{"as_of=yes!", 400, "neither true nor false"},
	} {
		code, body, asOf := getFresh(t, h, c.query)
		if code != c.code || code == 200 && asOf != c.want || code != 200 && !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %.200s, as of %q, want %d %s", c.query, code, body, asOf, c.code, c.want)
		}
	}
	type got struct {
		code       int
		body, asOf string
	}
	answers := make(chan got, 8)
	for n := range 4 {
		*log = append(*log, []Row{alone("node-0003", fmt.Sprintf(`{"price":%d}`, 5000+n))})
		for range cap(answers) {
			go func() {
				code, body, asOf := getFresh(t, h, fmt.Sprintf("wait=20s&min_offset=nodes:0:%d", 10*n+19))
				answers <- got{code, body, asOf}
			}()
		}
		w.update(t)
		for range cap(answers) {
			if a := <-answers; a.code != 200 || !strings.Contains(a.body, fmt.Sprintf(`"price":%d}`, 5000+n)) ||
				a.asOf != fmt.Sprintf("nodes:0:%d", 10*n+19) {
				t.Errorf("%d: %+v", n, a)
			}
		}
	}
	if code, body, _ := getFresh(t, Handler(New(Options{}), Serving{}),
		"min_offset=nodes:0:9&wait=0s"); code != 503 {
		t.Errorf("an empty catalog: %d %s", code, body)
	}
}

// An answer as of the end has seen what was there when it was asked for, and waits for it.
func TestAnswersAsOfTheEnd(t *testing.T) {
	w, log := pricedShop(t) // manifest n covers nodes up to offset 10n-1
	ends, failure := map[string][]int64{"nodes": {10}, "edges": {0}}, error(nil)
	h := Handler(w.Catalog, Serving{Ends: func(context.Context) (map[string][]int64, error) { return ends, failure }})
	ask := func(query, want string, code int) {
		t.Helper()
		got, body, asOf := getFresh(t, h, query)
		if got != code || code == 200 && asOf != want || code != 200 && !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s, as of %q, want %d %s", query, got, body, asOf, code, want)
		}
	}
	ask("min_offset=end&wait=0s", "nodes:0:9", 200)
	ends = map[string][]int64{"nodes": {20}}
	ask("min_offset=end&wait=0s", "offset 19 of partition 0 of nodes is not read yet", 503)
	ends = map[string][]int64{"nodes": {10}, "edges": {1}} // no edge is committed yet
	ask("min_offset=end&wait=0s", "offset 0 of partition 0 of edges is not read yet", 503)
	failure = errors.New("no broker")
	ask("min_offset=end", "no broker", 503)
	failure, ends = nil, map[string][]int64{"nodes": {20}}
	answered := make(chan string)
	go func() {
		_, body, _ := getFresh(t, h, "min_offset=end&wait=20s")
		answered <- body
	}()
	*log = append(*log, []Row{alone("node-0003", `{"price":4711}`)})
	w.update(t)
	if body := <-answered; !strings.Contains(body, `"price":4711}`) {
		t.Errorf("as of the end: %.300s", body)
	}
	h = Handler(w.Catalog, Serving{})
	ask("min_offset=end", "ingest.repartition", 400)
}
