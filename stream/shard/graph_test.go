package shard

import (
	"context"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// A state on disk can be read without a Shard: it holds the graph that the records say, and how far
// they were applied.
func TestGraphOfAState(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	b := newBroker(1)
	fill(b, rng, 300, 40)
	dir := filepath.Join(t.TempDir(), "state")
	s, err := Open(t.Context(), Options{Pipeline: "test", Shards: 1, Dir: dir, Store: &memstore.Store{}, Window: wide,
		Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics,
			Mirror: mirrorTopic}, Mirror: &brokerMirror{b: b},
		Writer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	feed := &logFeed{b: b, pos: s.Next(), rng: rng, max: 20}
	for !feed.caughtUp() {
		batch, err := feed.Next(context.Background(), time.Second)
		if err == nil {
			err = s.Apply(t.Context(), batch)
		}
		if err == nil && feed.caughtUp() { // a commit sends what is mirrored
			_, err = s.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := s.Next()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	g, err := OpenGraph(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close() //nolint:errcheck // read only
	if got := g.Applied(); !maps.Equal(got, want) {
		t.Errorf("applied up to %v, want %v", got, want)
	}
	got := map[string]rows.Row{}
	for r, err := range g.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		got[r.NodeID] = r
	}
	sameRows(t, got, model(b.everything(), true))
}

func TestGraphOfNothing(t *testing.T) {
	if _, err := OpenGraph(t.TempDir()); err == nil {
		t.Error("an empty directory was opened as a state")
	}
}
