// Package registrytest is a schema registry for tests, on loopback: as much of Confluent's protocol
// as readers use, and failures when asked for.
package registrytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Reference is how one schema names another.
type Reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// Schema is an entry of the registry.
type Schema struct {
	Subject    string      `json:"subject"`
	Version    int         `json:"version"`
	ID         int         `json:"id"`
	Type       string      `json:"schemaType,omitempty"` // "" is AVRO
	Text       string      `json:"schema"`
	References []Reference `json:"references,omitempty"`
}

// Registry is a running registry.
type Registry struct {
	URL string
	// Username and Password, when set, are asked for.
	Username, Password string

	mu       sync.Mutex
	schemas  []Schema
	fail     int
	instead  string
	requests int
}

// Start starts a registry for as long as the test runs.
func Start(t testing.TB, schemas ...Schema) *Registry {
	t.Helper()
	r := &Registry{schemas: schemas}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.URL = s.URL
	return r
}

// Add registers a schema.
func (r *Registry) Add(s Schema) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.schemas = append(r.schemas, s)
}

// Fail makes every request fail with a status; 0 ends that.
func (r *Registry) Fail(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = status
}

// Answer answers every request with a text, as a gateway before the registry may; "" ends that.
func (r *Registry) Answer(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instead = text
}

// Requests counts the requests so far.
func (r *Registry) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	user, password, _ := req.BasicAuth()
	switch {
	case user != r.Username || password != r.Password:
		refuse(w, http.StatusUnauthorized, 401)
		return
	case r.fail != 0:
		refuse(w, r.fail, 50001)
		return
	case r.instead != "":
		_, _ = io.WriteString(w, r.instead)
		return
	}
	for _, s := range r.schemas {
		switch req.URL.Path {
		case fmt.Sprintf("/schemas/ids/%d", s.ID), fmt.Sprintf("/subjects/%s/versions/%d", s.Subject, s.Version):
			_ = json.NewEncoder(w).Encode(s)
			return
		}
	}
	code := 40403
	if id, found := strings.CutPrefix(req.URL.Path, "/schemas/ids/"); found {
		if _, err := strconv.ParseInt(id, 10, 32); err != nil {
			code = 404 // as Confluent's, to which this is no path
		}
	}
	refuse(w, http.StatusNotFound, code)
}

func refuse(w http.ResponseWriter, status, code int) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error_code":%d,"message":"as the test wants it"}`, code)
}
