package qdrant_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/qdrant"
	"giantstream/sink/vectordb/vectordbtest"
)

func TestIndex(t *testing.T) {
	seed := uint64(0)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		f, url := startFake(t)
		seed++
		wire := vectordbtest.NewWire(rand.New(rand.NewPCG(seed, 5)), 0.03)
		url = wire.Proxy(t, url, func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/points") ||
				strings.HasSuffix(r.URL.Path, "/points/batch")
		})
		return vectordbtest.Target{
			Open: func() vectordb.Index {
				return qdrant.New(qdrant.Options{URL: url, Name: "items", Attributes: vectordbtest.Attributes})
			},
			Rows: f.rows,
			Tables: func() int {
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(f.collections) - 1
			},
			Wire: wire, Delayed: true, Attributes: true,
		}
	})
}

// rows is what a vector search can find.
func (f *fake) rows() map[string]vectordbtest.Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	to, ok := f.aliases["items"]
	if !ok {
		return nil
	}
	out := map[string]vectordbtest.Seen{}
	for _, p := range f.collections[to] {
		if v := p.Vector["embedding"]; v != nil {
			id, generation, seq := p.Payload["node_id"].(string), p.Payload["generation"].(float64), p.Payload["seq"].(float64)
			out[id] = vectordbtest.Seen{Vector: vectordbtest.Literal(v), Generation: int64(generation), Seq: int64(seq),
				Attributes: vectordbtest.ShowObject(p.Payload)}
		}
	}
	return out
}

func TestPreflight(t *testing.T) {
	f, url := startFake(t)
	f.version = "1.15.4"
	_, err := qdrant.New(qdrant.Options{URL: url, Name: "items"}).Open(t.Context())
	if !errors.Is(err, vectordb.ErrRefused) || !strings.Contains(err.Error(), "1.16") {
		t.Errorf("an old server: %v", err)
	}
	_, err = qdrant.New(qdrant.Options{URL: "http://127.0.0.1:1", Name: "items"}).Open(t.Context())
	if err == nil || retry.Final(err) {
		t.Errorf("a server that is away is to be tried again, got %v", err)
	}
}
