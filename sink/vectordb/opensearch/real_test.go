package opensearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/internal/rest"
	"giantstream/sink/vectordb/opensearch"
	"giantstream/sink/vectordb/vectordbtest"
)

// realSink is a sink of a name of its own on a server.
type realSink struct {
	t    *testing.T
	c    *rest.Client
	name string
}

var names atomic.Int32

// TestRealIndex runs on the server that GIANTSTREAM_REAL_OPENSEARCH names; cmd/dev/opensearch/server starts one.
func TestRealIndex(t *testing.T) {
	url := os.Getenv("GIANTSTREAM_REAL_OPENSEARCH")
	if url == "" {
		t.Skip("GIANTSTREAM_REAL_OPENSEARCH names no server; cmd/dev/opensearch/server up starts one")
	}
	c := rest.New(url, http.Header{}, nil)
	t.Cleanup(c.Close)
	seed := uint64(0)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		r := &realSink{t: t, c: c, name: fmt.Sprintf("items%d_%d", os.Getpid(), names.Add(1))}
		t.Cleanup(r.clean)
		seed++
		wire, url := badWire(t, seed, url)
		return vectordbtest.Target{
			Open: func() vectordb.Index {
				return opensearch.New(opensearch.Options{URL: url, Name: r.name, Attributes: vectordbtest.Attributes})
			},
			Rows: r.rows, Tables: func() int { return len(r.indexes("_g*")) }, Wire: wire, Delayed: true,
			Attributes: true,
		}
	})
}

func (r *realSink) do(method, path string, body, out any) error {
	return r.c.Do(r.t.Context(), method, path, body, out)
}

// rows is what a search through the alias finds, once it is refreshed.
func (r *realSink) rows() map[string]vectordbtest.Seen {
	r.t.Helper()
	err := r.do(http.MethodPost, "/"+r.name+"/_refresh", nil, nil)
	if rest.Status(err) == http.StatusNotFound {
		return nil
	}
	var found struct {
		Hits struct {
			Hits []struct {
				ID     string          `json:"_id"`
				Source json.RawMessage `json:"_source"`
			}
		}
	}
	if err == nil {
		err = r.do(http.MethodPost, "/"+r.name+"/_search", map[string]any{"size": 10000}, &found)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]vectordbtest.Seen{}
	for _, h := range found.Hits.Hits {
		var s struct {
			Embedding       []float32
			Generation, Seq int64
		}
		var all map[string]any
		if err := errors.Join(json.Unmarshal(h.Source, &s), json.Unmarshal(h.Source, &all)); err != nil {
			r.t.Fatal(err)
		}
		out[h.ID] = vectordbtest.Seen{Vector: vectordbtest.Literal(s.Embedding), Generation: s.Generation, Seq: s.Seq,
			Attributes: vectordbtest.ShowObject(all)}
	}
	return out
}

// indexes are those of the sink whose name ends like this.
func (r *realSink) indexes(suffix string) (names []string) {
	var found map[string]any
	if err := r.do(http.MethodGet, "/"+r.name+suffix, nil, &found); err != nil {
		r.t.Fatal(err)
	}
	for name := range found {
		names = append(names, name)
	}
	return names
}

func (r *realSink) clean() {
	var found map[string]any
	_ = r.c.Do(context.Background(), http.MethodGet, "/"+r.name+"_*", nil, &found)
	for name := range found {
		_ = r.c.Do(context.Background(), http.MethodDelete, "/"+name, nil, nil)
	}
}

// TestRealSearch: a vector search through the alias finds a node by its own vector, and its mapping is what readers are
// told.
func TestRealSearch(t *testing.T) {
	url := os.Getenv("GIANTSTREAM_REAL_OPENSEARCH")
	if url == "" {
		t.Skip("GIANTSTREAM_REAL_OPENSEARCH names no server; cmd/dev/opensearch/server up starts one")
	}
	r := &realSink{t: t, c: rest.New(url, http.Header{}, nil), name: fmt.Sprintf("search%d", os.Getpid())}
	t.Cleanup(r.clean)
	x := opensearch.New(opensearch.Options{URL: url, Name: r.name})
	saved, err := x.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := vectordb.Table{Serial: 1, Generation: 1, Dim: 3}
	batch := vectordb.Batch{From: -1, Progress: vectordb.Progress{Epoch: 1, Next: 50},
		Changes: []vectordb.Change{{Table: table}}}
	for i := range 50 {
		var rec vectordb.Record
		rec.NodeID, rec.Offset, rec.Generation = fmt.Sprintf("n\"ü/%d", i), int64(i), 1
		rec.Vector = []float32{1, float32(i), 2}
		batch.Changes[0].Upserts = append(batch.Changes[0].Upserts, rec)
	}
	var zero vectordb.Record
	zero.NodeID, zero.Offset, zero.Generation, zero.Vector = "zero", 50, 1, []float32{0, 0, 0}
	batch.Changes[0].Upserts = append(batch.Changes[0].Upserts, zero)
	for _, step := range []func() error{
		func() error { return x.Create(t.Context(), table) },
		func() error { return x.Apply(t.Context(), batch) },
		func() error { return x.Finish(t.Context(), table) },
		func() error { return x.Serve(t.Context(), table, saved.Catalog) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	var found struct {
		Hits struct {
			Hits []struct {
				ID string `json:"_id"`
			}
		}
	}
	err = r.do(http.MethodPost, "/"+r.name+"/_search",
		map[string]any{"size": 1, "query": map[string]any{"knn": map[string]any{
			"embedding": map[string]any{"vector": []float32{1, 30, 2}, "k": 1}}}}, &found)
	if err != nil || len(found.Hits.Hits) != 1 || !strings.HasSuffix(found.Hits.Hits[0].ID, "/30") {
		t.Errorf("found %+v, %v", found, err)
	}
}

func BenchmarkFill(b *testing.B) {
	url := os.Getenv("GIANTSTREAM_REAL_OPENSEARCH")
	if url == "" {
		b.Skip("GIANTSTREAM_REAL_OPENSEARCH names no server; cmd/dev/opensearch/server up starts one")
	}
	x := opensearch.New(opensearch.Options{URL: url, Name: fmt.Sprintf("fill%d_%d", os.Getpid(), b.N)})
	defer x.Close()
	vectordbtest.Fill(b, x)
}
