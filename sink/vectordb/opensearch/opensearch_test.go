package opensearch_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/opensearch"
	"giantstream/sink/vectordb/vectordbtest"
)

// badWire is a bad connection to a server, and the address to reach the server by it.
func badWire(t *testing.T, seed uint64, url string) (*vectordbtest.Wire, string) {
	wire := vectordbtest.NewWire(rand.New(rand.NewPCG(seed, 7)), 0.03)
	return wire, wire.Proxy(t, url, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/_bulk") })
}

func TestIndex(t *testing.T) {
	seed := uint64(0)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		f, url := startFake(t)
		seed++
		wire, url := badWire(t, seed, url)
		return vectordbtest.Target{
			Open: func() vectordb.Index {
				return opensearch.New(opensearch.Options{URL: url, Name: "items", Attributes: vectordbtest.Attributes})
			},
			Rows: f.rows,
			Tables: func() int {
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(f.indexes) - 1
			},
			Wire: wire, Delayed: true, Attributes: true,
		}
	})
}

// rows is what a search through the alias finds.
func (f *fake) rows() map[string]vectordbtest.Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out map[string]vectordbtest.Seen
	for index := range f.aliases["items"] {
		if out == nil {
			out = map[string]vectordbtest.Seen{}
		}
		for id, d := range f.indexes[index] {
			var s struct {
				Embedding       []float32
				Generation, Seq int64
			}
			var all map[string]any
			if d.source != nil && json.Unmarshal(d.source, &s) == nil && json.Unmarshal(d.source, &all) == nil {
				out[id] = vectordbtest.Seen{Vector: vectordbtest.Literal(s.Embedding), Generation: s.Generation,
					Seq: s.Seq, Attributes: vectordbtest.ShowObject(all)}
			}
		}
	}
	return out
}

func TestPreflight(t *testing.T) {
	f, url := startFake(t)
	f.plugins = "analysis-icu"
	x := opensearch.New(opensearch.Options{URL: url, Name: "items"})
	if _, err := x.Open(t.Context()); !errors.Is(err, vectordb.ErrRefused) || !strings.Contains(err.Error(), "knn") {
		t.Errorf("without k-NN: %v", err)
	}
	_, err := opensearch.New(opensearch.Options{URL: "http://127.0.0.1:1", Name: "items"}).Open(t.Context())
	if err == nil || retry.Final(err) {
		t.Errorf("a server that is away is to be tried again, got %v", err)
	}
	for id, ok := range map[string]bool{"B00X": true, strings.Repeat("x", 513): false} {
		if err := x.Check(id); (err == nil) != ok {
			t.Errorf("id of %d bytes: %v", len(id), err)
		}
	}
}
