package endpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"giantstream/config"
)

// clock is set by hand.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// newGate returns a gate whose settings do not change.
func newGate(h config.HTTP, now func() time.Time) *Gate {
	return NewGate(func() *config.HTTP { return &h }, now)
}

func ask(t *testing.T, h http.Handler, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A token opens what its scopes have, and nothing else; the handler behind it knows its name.
func TestTokensHaveNamesAndScopes(t *testing.T) {
	refused := map[string]int{}
	g := newGate(config.HTTP{Tokens: []config.Bearer{
		{Name: "shop", Token: "one", Scopes: config.List{"read", "embed"}},
		{Name: "operator", Token: "two", Scopes: config.List{"admin"}}}}, nil)
	g.Refused = func(name string, status int) { refused[fmt.Sprint(name, " ", status)]++ }
	for _, scope := range []string{"read", "embed", "admin"} {
		h := g.Protect(scope, http.Error, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, NameOf(r.Context()), May(r.Context(), "embed") == nil)
		}))
		for token, may := range map[string]bool{"one": scope != "admin", "two": scope == "admin", "": false, "on": false,
			"onetwo": false} {
			name := map[string]string{"one": "shop", "two": "operator"}[token]
			w := ask(t, h, token)
			switch {
			case may && (w.Code != 200 || w.Body.String() != fmt.Sprint(name, name == "shop")):
				t.Errorf("%s with %q: %d %s", scope, token, w.Code, w.Body)
			case !may && name != "" && (w.Code != 403 ||
				w.Body.String() != fmt.Sprintf("token %q lacks the scope %s\n", name, scope)):
				t.Errorf("%s with %q: %d %s", scope, token, w.Code, w.Body)
			case name == "" && (w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer"):
				t.Errorf("%s with %q: %d %s", scope, token, w.Code, w.Body)
			}
		}
	}
	if want := "map[ 401:9 operator 403:2 shop 403:1]"; fmt.Sprint(refused) != want {
		t.Errorf("refused %v, want %s", refused, want)
	}
}

// However requests come, no stretch of time has more than the rate allows, with what a second holds at once. A client
// that waits as it is told is answered, and so is one that keeps to the rate. Other tokens do not count.
func TestARateBoundsRequests(t *testing.T) {
	for _, rate := range []float64{0.1, 1, 2.5, 40} {
		c := &clock{time.Unix(1e9, 0)}
		g := newGate(config.HTTP{Tokens: []config.Bearer{{Name: "a", Token: "a", Scopes: config.List{"read"}, Rate: rate},
			{Name: "b", Token: "b", Scopes: config.List{"read"}}}}, c.now)
		h := g.Protect("read", http.Error, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		r := rand.New(rand.NewPCG(1, uint64(rate*10)))
		var passed []time.Time
		for range 500 {
			c.Time = c.Add(time.Duration(r.ExpFloat64() / rate / 2 * float64(time.Second)))
			w := ask(t, h, "a")
			if other := ask(t, h, "b"); other.Code != 200 {
				t.Fatalf("another token: %d", other.Code)
			}
			if w.Code == http.StatusTooManyRequests && r.IntN(2) == 0 {
				wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
				if err != nil || wait < 1 || float64(wait) > 1/rate+1 || !strings.Contains(w.Body.String(), `"a"`) {
					t.Fatalf("rate %v: wait %d, %v, %s", rate, wait, err, w.Body)
				}
				c.Time = c.Add(time.Duration(wait) * time.Second)
				w = ask(t, h, "a")
				if w.Code != 200 {
					t.Fatalf("rate %v: %d after the wait", rate, w.Code)
				}
			}
			if w.Code == 200 {
				passed = append(passed, c.Time)
			}
		}
		for i, from := range passed {
			for j, to := range passed[i:] {
				if n := float64(j + 1); n > rate*to.Sub(from).Seconds()+max(1, rate)+1e-6*n {
					t.Fatalf("rate %v: %v requests in %v", rate, n, to.Sub(from))
				}
			}
		}
		c.Time = c.Add(time.Hour)
		for i := range 200 {
			if w := ask(t, h, "a"); w.Code != 200 {
				t.Fatalf("rate %v: request %d of those at the rate: %d", rate, i, w.Code)
			}
			c.Time = c.Add(time.Duration(float64(time.Second)/rate) + 1)
		}
	}
}

// A change of the tokens holds for the next request: one that is gone opens nothing, and one that stays has asked what
// it has asked.
func TestTokensChange(t *testing.T) {
	token := func(name string) config.Bearer {
		return config.Bearer{Name: name, Token: config.Secret(name), Scopes: config.List{"read"}, Rate: 1}
	}
	c := &clock{time.Unix(1e9, 0)}
	h := &config.HTTP{Tokens: []config.Bearer{token("a"), token("b")}}
	handler := NewGate(func() *config.HTTP { return h }, c.now).Protect("read", http.Error,
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	answers := func(want map[string]int) {
		t.Helper()
		for name, status := range want {
			if w := ask(t, handler, name); w.Code != status {
				t.Errorf("%q is answered with %d, want %d: %s", name, w.Code, status, w.Body)
			}
		}
	}
	answers(map[string]int{"a": 200, "b": 200, "c": 401})
	h = &config.HTTP{Tokens: []config.Bearer{token("c"), token("a")}}
	answers(map[string]int{"a": 429, "b": 401, "c": 200})
	h = &config.HTTP{}
	answers(map[string]int{"": 403}) // as example.com, which is no name of this server
	h = &config.HTTP{Token: "all"}
	answers(map[string]int{"": 401, "c": 401, "all": 200})
}

// As many requests of a token are in progress as it may have; the next begins when one ends.
func TestATokenHasSoManyRequestsAtOnce(t *testing.T) {
	g := newGate(config.HTTP{Tokens: []config.Bearer{{Name: "a", Token: "a", Scopes: config.List{"read"}, Concurrent: 2}}},
		nil)
	began, end := make(chan struct{}), make(chan struct{})
	h := g.Protect("read", http.Error, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-end
	}))
	done := make(chan int)
	start := func() { go func() { done <- ask(t, h, "a").Code }() }
	start()
	start()
	<-began
	<-began
	for range 3 {
		if w := ask(t, h, "a"); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("a third at once: %d", w.Code)
		}
	}
	end <- struct{}{}
	<-done
	start()
	<-began
	close(end)
	<-done
	<-done
}

// Without tokens everybody may what a handler asks for.
func TestWithoutTokensThereAreNoScopes(t *testing.T) {
	if err := May(context.Background(), "admin"); err != nil || NameOf(context.Background()) != "" {
		t.Error(err)
	}
}
