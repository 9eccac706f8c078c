package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/internal/canary"
	"giantstream/internal/retry"
)

// model is a server with a vector for each text.
type model struct {
	*httptest.Server
	// fails, if not nil, may answer in the place of the model.
	fails func(n int, q question, w http.ResponseWriter) bool
	// natural is the length of the vectors of a question without dimensions.
	natural int

	mu        sync.Mutex
	questions []question
	keys      []string
}

func start(t *testing.T, m *model) *model {
	t.Helper()
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	return m
}

func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.questions = append(m.questions, q)
	m.keys = append(m.keys, r.URL.RawQuery+r.Header.Get("api-key")+r.Header.Get("Authorization"))
	n := len(m.questions)
	m.mu.Unlock()
	if m.fails != nil && m.fails(n, q, w) {
		return
	}
	type vector struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	out := make([]vector, len(q.Input))
	for i, text := range q.Input { // the last first: the index decides
		length := m.natural
		if q.Dimensions > 0 {
			length = q.Dimensions
		}
		out[len(out)-1-i] = vector{i, vectorOf(text, length)}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": out})
}

// vectorOf is what the model makes of a text.
func vectorOf(text string, length int) []float32 {
	v := make([]float32, length)
	if text == "unknown" {
		return v
	}
	for i := range v {
		h := fnv.New32a()
		fmt.Fprint(h, i, text)
		v[i] = float32(h.Sum32())/math.MaxUint32 - 0.5
	}
	return v
}

func (m *model) client(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	o := Options{URL: m.URL + "/v1/embeddings", Model: "m", Dimensions: 8, Batch: 4, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.loop.Min, c.loop.Max = time.Millisecond, time.Millisecond
	return c
}

func texts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("text number ", i))
	}
	return all
}

// check says which texts have not the model's vector of them.
func check(t *testing.T, all []string, vectors [][]float32) {
	t.Helper()
	if len(vectors) != len(all) {
		t.Fatalf("%d vectors for %d texts", len(vectors), len(all))
	}
	for i, text := range all {
		if !slices.Equal(vectors[i], vectorOf(text, 8)) {
			t.Errorf("%q has another text's vector, or none: %v", text, vectors[i])
		}
	}
}

func status(code int, body string) func(int, question, http.ResponseWriter) bool {
	return func(n int, _ question, w http.ResponseWriter) bool {
		if n > 2 {
			return false
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
		return true
	}
}

func TestEachTextHasItsVector(t *testing.T) {
	m := start(t, &model{natural: 8})
	c := m.client(t, func(o *Options) { o.Key = "k" })
	all := texts(11)
	got, err := c.Embed(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	check(t, all, got)
	if len(m.questions) != 3 {
		t.Errorf("%d requests for 11 texts in batches of 4", len(m.questions))
	}
	for i, q := range m.questions {
		if len(q.Input) > 4 || q.Model != "m" || q.Dimensions != 0 || m.keys[i] != "Bearer k" {
			t.Errorf("asked %+v with the key %q", q, m.keys[i])
		}
	}
	if n := c.Counts.Texts.Load(); n != 11 {
		t.Errorf("counted %d texts", n)
	}
	m.keys = nil
	azure := m.client(t, func(o *Options) { o.Key, o.URL = "k", m.URL+"/v1/embeddings?api-version=2024-10-21" })
	got, err = azure.Embed(t.Context(), all[:2])
	if err != nil || !slices.Equal(m.keys, []string{"api-version=2024-10-21k"}) {
		t.Errorf("a URL as Azure's was sent %q: %v", m.keys, err)
	}
	check(t, all[:2], got)
}

// Whatever an endpoint gets wrong, it is asked again until it is right, and a question is told what it was.
func TestFailuresAreWaitedFor(t *testing.T) {
	answer := func(body string) func(int, question, http.ResponseWriter) bool { return status(http.StatusOK, body) }
	for name, tt := range map[string]struct {
		fails func(int, question, http.ResponseWriter) bool
		says  string
	}{
		"too many requests": {status(http.StatusTooManyRequests, ""), "429"},
		"broken":            {status(http.StatusInternalServerError, `{"error":{"message":"no memory"}}`), "no memory"},
		"no key":            {status(http.StatusUnauthorized, `{"error":"who are you?"}`), "who are you?"},
		"no model":          {status(http.StatusNotFound, `{"message":"no such model"}`), "no such model"},
		"moved":             {status(http.StatusFound, ""), "302"},
		"no JSON":           {answer("<html>"), "endpoint for embeddings"},
		"part of a batch":   {answer(`{"data":[{"index":0,"embedding":[1,2,3,4,5,6,7,8]}]}`), "1 vectors for 2"},
		"an index twice": {answer(`{"data":[{"index":0,"embedding":[1,2,3,4,5,6,7,8]},
			{"index":0,"embedding":[1,2,3,4,5,6,7,8]}]}`), "index 0 twice"},
		"short": {answer(`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`), "1 numbers"},
		"not a number": {answer(`{"data":[{"index":0,"embedding":[null,2,3,4,5,6,7,8]},
			{"index":1,"embedding":[1,2,3,4,5,6,7,8]}]}`), "not finite"},
		"infinite": {answer(`{"data":[{"index":0,"embedding":[1e99,2,3,4,5,6,7,8]},
			{"index":1,"embedding":[1,2,3,4,5,6,7,8]}]}`), "finite"},
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, &model{natural: 8, fails: tt.fails})
			c := m.client(t, nil)
			all := texts(2)
			if _, err := c.Ask(t.Context(), all); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want %q in it", err, tt.says)
			}
			if _, err := c.Err(); err == nil {
				t.Error("nobody is told that the endpoint fails")
			}
			got, err := c.Embed(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			check(t, all, got)
			if _, err := c.Err(); err != nil || c.Counts.Failures.Load() != 2 {
				t.Errorf("after %d failures, %v", c.Counts.Failures.Load(), err)
			}
		})
	}
}

// Embed gives up where it may, if only a person can help.
func TestGivingUp(t *testing.T) {
	for code, final := range map[int]bool{http.StatusUnauthorized: true, http.StatusForbidden: true,
		http.StatusNotFound: true, http.StatusTooManyRequests: false, http.StatusBadGateway: false} {
		m := start(t, &model{natural: 8, fails: status(code, "")})
		c := m.client(t, nil)
		c.GiveUp = func() bool { return true }
		if _, err := c.Embed(t.Context(), texts(1)); (err != nil) != final || retry.Final(err) != final {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// A text that the endpoint refuses has the vector of its beginning, or none, and costs no other text its own.
func TestOneTextIsRefused(t *testing.T) {
	const limit = 100
	m := start(t, &model{natural: 8, fails: func(_ int, q question, w http.ResponseWriter) bool {
		bad := slices.ContainsFunc(q.Input, func(s string) bool { return len(s) > limit || strings.Contains(s, "forbidden") })
		if bad {
			http.Error(w, "input too long", http.StatusBadRequest)
		}
		return bad
	}})
	c := m.client(t, nil)
	all := texts(9)
	long := strings.Repeat("höher ", 100)
	all[3], all[5], all[6] = long, "forbidden", "unknown"
	got, err := c.Embed(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if got[5] != nil || got[6] != nil || c.Counts.Without.Load() != 2 {
		t.Errorf("what has no vector has %v and %v", got[5], got[6])
	}
	cut := func(text string) bool { return slices.Equal(got[3], vectorOf(text, 8)) }
	if n := len(long); !slices.ContainsFunc(m.questions, func(q question) bool {
		return len(q.Input) == 1 && cut(q.Input[0]) && strings.HasPrefix(long, q.Input[0]) && len(q.Input[0]) > n/16
	}) {
		t.Error("the long text has not the vector of its beginning")
	}
	for _, i := range []int{6, 5, 3} {
		all, got = slices.Delete(all, i, i+1), slices.Delete(got, i, i+1)
	}
	check(t, all, got)
}

// An endpoint that refuses every text has a fault of its own, and no text goes without its vector.
func TestAllTextsAreRefused(t *testing.T) {
	m := start(t, &model{natural: 8, fails: status(http.StatusBadRequest, "")})
	m.fails = func(n int, _ question, w http.ResponseWriter) bool {
		if n <= 12 {
			http.Error(w, `{"message":"the model cannot embed"}`, http.StatusBadRequest)
		}
		return n <= 12
	}
	c := m.client(t, nil)
	all := texts(3)
	if _, err := c.Ask(t.Context(), all); err == nil || !strings.Contains(err.Error(), "cannot embed") {
		t.Fatalf("got %v", err)
	}
	got, err := c.Embed(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	check(t, all, got)
}

// Vectors that are longer than wanted are asked for in fewer dimensions, from the first answer on.
func TestFewerDimensions(t *testing.T) {
	m := start(t, &model{natural: 32})
	c := m.client(t, nil)
	all := texts(4)
	for range 2 {
		got, err := c.Ask(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		check(t, all, got)
	}
	if len(m.questions) != 3 || m.questions[0].Dimensions != 0 || m.questions[2].Dimensions != 8 {
		t.Errorf("asked %+v", m.questions)
	}
}

// The rate and Retry-After hold for all requests of a client, whoever asks.
func TestRequestsWaitTheirTurn(t *testing.T) {
	m := start(t, &model{natural: 8})
	c := m.client(t, func(o *Options) { o.Rate, o.Batch = 200, 1 })
	began := time.Now()
	if _, err := c.Embed(t.Context(), texts(9)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("9 requests at 200 a second took %v", took)
	}
	if c.Counts.Waited.Load() == 0 {
		t.Error("no wait was counted")
	}
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "100000": maxPause, "-1": 0, "soon": 0,
		time.Now().Add(time.Minute).UTC().Format(http.TimeFormat): 58 * time.Second} {
		c.next = time.Time{}
		began := time.Now()
		c.pause(header)
		if got := c.next.Sub(began); got < want || got > want+3*time.Second {
			t.Errorf("Retry-After %s: the next request may begin after %v", header, got)
		}
	}
}

// Neither the key nor a secret in the URL is in an error or in the log, whatever the endpoint answers.
func TestErrorsHaveNoSecrets(t *testing.T) {
	key, query := canary.New(1), canary.New(2)
	var log bytes.Buffer
	m := start(t, &model{natural: 8})
	m.fails = func(_ int, q question, w http.ResponseWriter) bool {
		said, _ := json.Marshal(fmt.Sprint(strings.Repeat("x", 280), "Bearer ", key, q.Input))
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"error":{"message":%s},"input":%q}`, said, q.Input)
		return true
	}
	c := m.client(t, func(o *Options) {
		o.Key, o.URL, o.Log = key, m.URL+"/v1/embeddings?code="+query, slog.New(slog.NewTextHandler(&log, nil))
	})
	_, err := c.Ask(t.Context(), texts(1))
	c.until = time.Time{}
	m.CloseClientConnections()
	m.Server.Close()
	_, away := c.Ask(t.Context(), texts(1))
	if err == nil || away == nil {
		t.Fatal("there is no error")
	}
	for _, text := range []string{err.Error(), away.Error(), log.String()} {
		for _, secret := range []string{key, query} {
			if how := canary.Find(text, secret[:8]); how != "" {
				t.Errorf("a secret shows %s in %s", how, text)
			}
		}
	}
	for _, bad := range []string{"", "localhost:8080", "ftp://u:" + key + "@x", "http://", "http://%zz" + key} {
		if _, err := New(Options{URL: bad}); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A question waits for no endpoint that has just failed a question, and asks again once that is a while ago. Whoever
// fills asks meanwhile. What the endpoint is not to be asked for yet costs a question no wait either.
func TestQuestionsDoNotWaitForLong(t *testing.T) {
	hang := make(chan struct{})
	m := start(t, &model{natural: 8, fails: func(n int, _ question, _ http.ResponseWriter) bool {
		if n == 1 {
			<-hang
		}
		return false
	}})
	defer close(hang)
	c := m.client(t, nil)
	all := texts(2)
	for range 3 { // of which one waits
		if _, err := c.Ask(t.Context(), all); err == nil || !strings.Contains(err.Error(), "no answer within 2s") {
			t.Fatalf("got %v", err)
		}
	}
	m.mu.Lock()
	if len(m.questions) != 1 {
		t.Errorf("an endpoint that hangs was asked %d times", len(m.questions))
	}
	m.mu.Unlock()
	got, err := c.Embed(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	check(t, all, got)
	c.until = time.Time{}
	if got, err = c.Ask(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	check(t, all, got)
	c.pause("100")
	if _, err := c.Ask(t.Context(), all); !errors.Is(err, errTurn) {
		t.Errorf("while the endpoint wants no requests: %v", err)
	}
	c.next = time.Time{}
	if _, err := c.Ask(t.Context(), all); err != nil {
		t.Errorf("once it wants some: %v", err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := c.Ask(gone, all); !errors.Is(err, context.Canceled) || c.resting() != nil {
		t.Errorf("a question that is withdrawn: %v", err)
	}
}

// Whatever an endpoint answers, each text has a vector of the right length or none, and errors have no key.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		`{"data":[{"index":1,"embedding":[1,0.5]},{"index":0,"embedding":[0,0]}]}`,
		`{"data":[{"index":0,"embedding":[1,null]},{"index":1,"embedding":[1e39,1]}]}`,
		`{"data":[{"embedding":[1]},{"embedding":"AACAPw=="}]}`,
		`{"error":{"message":"the key s3cret-key is not known"}}`, `{"error":"too long"}`, `{"message":"no"}`, `[]`, ``,
	} {
		f.Add([]byte(answer))
	}
	c, err := New(Options{URL: "http://localhost/v1/embeddings", Model: "m", Dimensions: 2, Key: "s3cret-key"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if said := c.said(content); strings.Contains(said, "s3cret-key") || len(said) > 310 {
			t.Errorf("an error says %q", said)
		}
		vectors, _, err := c.read(content, 2)
		if err != nil {
			return
		}
		if len(vectors) != 2 {
			t.Fatalf("%d vectors of 2 texts", len(vectors))
		}
		for _, v := range vectors {
			if v != nil && (len(v) != 2 || v[0] == 0 && v[1] == 0 || !finite(v)) {
				t.Errorf("a vector is %v", v)
			}
		}
	})
}

func finite(v []float32) bool {
	return !slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) })
}
