package opensearch_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/opensearch"
	"giantstream/sink/vectordb/vectordbtest"
)

func TestIndex(t *testing.T) {
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		f, url := startFake(t)
		return vectordbtest.Target{
			Open: func() vectordb.Index { return opensearch.New(opensearch.Options{URL: url, Name: "items"}) },
			Rows: f.rows,
			Tables: func() int {
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(f.indexes) - 1
			},
			Delayed: true,
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
			if d.source != nil && json.Unmarshal(d.source, &s) == nil {
				out[id] = vectordbtest.Seen{Vector: vectordbtest.Literal(s.Embedding), Generation: s.Generation, Seq: s.Seq}
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
	if err == nil || vectordb.Final(err) {
		t.Errorf("a server that is away is to be tried again, got %v", err)
	}
	for id, ok := range map[string]bool{"B00X": true, strings.Repeat("x", 513): false} {
		if err := x.Check(id); (err == nil) != ok {
			t.Errorf("id of %d bytes: %v", len(id), err)
		}
	}
}
