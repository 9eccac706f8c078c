package qdrant_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/qdrant"
	"giantstream/sink/vectordb/qdrant/qdrantedge"
	"giantstream/sink/vectordb/vectordbtest"
)

func TestIndex(t *testing.T) {
	server := qdrantedge.Start(t)
	seed := uint64(0)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		seed++
		r := reader{t, server, fmt.Sprint("items", seed)}
		wire := vectordbtest.NewWire(rand.New(rand.NewPCG(seed, 5)), 0.03)
		url := wire.Proxy(t, server, func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/points") ||
				strings.HasSuffix(r.URL.Path, "/points/batch")
		})
		return vectordbtest.Target{
			Open: func() vectordb.Index {
				return qdrant.New(qdrant.Options{URL: url, Name: r.name, Attributes: vectordbtest.Attributes})
			},
			Rows: r.rows, Tables: r.tables, Wire: wire, Delayed: true, Attributes: true,
		}
	})
}

// reader asks the server for what its users see.
type reader struct {
	t         *testing.T
	url, name string
}

// ask returns the status of an answer, whose result it decodes.
func (r reader) ask(method, path, body string, result any) (code int) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewBufferString(body))
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	if err := json.NewDecoder(a.Body).Decode(&struct {
		Result any `json:"result"`
	}{result}); err != nil {
		r.t.Fatal(err)
	}
	return a.StatusCode
}

// rows is what a vector search can find.
func (r reader) rows() map[string]vectordbtest.Seen {
	r.t.Helper()
	var found struct {
		Points []struct {
			Vector  map[string][]float32 `json:"vector"`
			Payload map[string]any       `json:"payload"`
		} `json:"points"`
	}
	switch code := r.ask("POST", "/collections/"+r.name+"/points/scroll",
		`{"limit": 100000, "with_payload": true, "with_vector": true}`, &found); code {
	case http.StatusOK:
	case http.StatusNotFound: // no alias
		return nil
	default:
		r.t.Fatalf("reading points: status %d", code)
	}
	out := map[string]vectordbtest.Seen{}
	for _, p := range found.Points {
		if v := p.Vector["embedding"]; v != nil {
			id, generation, seq := p.Payload["node_id"].(string), p.Payload["generation"].(float64), p.Payload["seq"].(float64)
			out[id] = vectordbtest.Seen{Vector: vectordbtest.Literal(v), Generation: int64(generation), Seq: int64(seq),
				Attributes: vectordbtest.ShowObject(p.Payload)}
		}
	}
	return out
}

// tables counts the collections of generations.
func (r reader) tables() (n int) {
	r.t.Helper()
	var found struct {
		Collections []struct{ Name string } `json:"collections"`
	}
	r.ask("GET", "/collections", "", &found)
	for _, c := range found.Collections {
		if strings.HasPrefix(c.Name, r.name+"_g") {
			n++
		}
	}
	return n
}

func TestPreflight(t *testing.T) {
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"title": "qdrant - vector search engine", "version": "1.15.4"}`)
	}))
	defer old.Close()
	_, err := qdrant.New(qdrant.Options{URL: old.URL, Name: "items"}).Open(t.Context())
	if !errors.Is(err, vectordb.ErrRefused) || !strings.Contains(err.Error(), "1.16") {
		t.Errorf("an old server: %v", err)
	}
	_, err = qdrant.New(qdrant.Options{URL: "http://127.0.0.1:1", Name: "items"}).Open(t.Context())
	if err == nil || retry.Final(err) {
		t.Errorf("a server that is away is to be tried again, got %v", err)
	}
}
