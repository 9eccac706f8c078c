package iceberg_test

import (
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/iceberg"
	"giantstream/sink/memstore"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/vectordbtest"
)

// faultyStore is the store on a bad connection.
type faultyStore struct {
	sink.Store
	faults *faults
}

func (s *faultyStore) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	return s.faults.call(func() error { return s.Store.Put(ctx, key, r, size) })
}

func (s *faultyStore) Open(ctx context.Context, key string) (o sink.Object, err error) {
	failed := s.faults.call(func() error { o, err = s.Store.Open(ctx, key); return err })
	return o, failed
}

func (s *faultyStore) Delete(ctx context.Context, key string) error {
	return s.faults.call(func() error { return s.Store.Delete(ctx, key) })
}

// world is a catalog and a store, and the processes that use them.
type world struct {
	catalog *fake
	store   *memstore.Store
	calm    bool
	rnd     *rand.Rand
	kill    float64
	// attributes are those that processes know.
	attributes []vectordb.Attribute
}

func (w *world) process() vectordb.Index { return iceberg.New(w.options()) }

// options are those of a process of its own.
func (w *world) options() iceberg.Options {
	f := &faults{rnd: w.rnd, kill: w.kill, fail: 3 * w.kill, calm: &w.calm}
	return iceberg.Options{Table: table.Identifier{"db", "embeddings"}, Places: iceberg.Memory{},
		Catalog:    func(context.Context) (iceberg.Catalog, error) { return &faultyCatalog{w.catalog, f}, nil },
		Store:      func(context.Context, string) (sink.Store, error) { return &faultyStore{w.store, f}, nil },
		Attributes: w.attributes,
		Bytes:      int64(500 + w.rnd.IntN(20_000)), Every: time.Duration(w.rnd.IntN(30)) * time.Millisecond}
}

func newWorld(seed uint64, kill float64) *world {
	rnd := rand.New(rand.NewPCG(seed, 22))
	return &world{catalog: &fake{rnd: rnd}, store: &memstore.Store{}, rnd: rnd, kill: kill}
}

// seen are the rows of a snapshot.
func seen(t *testing.T, meta table.Metadata, snapshot int64, store sink.Store, attributes []vectordb.Attribute,
) map[string]vectordbtest.Seen {
	t.Helper()
	rows, err := iceberg.ReadRows(context.Background(), meta, snapshot, store, attributes)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]vectordbtest.Seen{}
	for _, r := range rows {
		if _, twice := out[r.NodeID]; twice {
			t.Fatalf("snapshot %d has two rows of %s", snapshot, r.NodeID)
		}
		out[r.NodeID] = vectordbtest.Seen{Vector: vectordbtest.Literal(r.Vector), Generation: r.Generation, Seq: r.Seq,
			Attributes: vectordbtest.Show(r.Values)}
	}
	return out
}

func (w *world) target(t *testing.T) vectordbtest.Target {
	return vectordbtest.Target{Open: w.process, Exact: true, Vectorless: true, Kept: iceberg.KeptFiles,
		Attributes: len(w.attributes) > 0,
		Calm:       func() { w.calm = true },
		Rows: func() map[string]vectordbtest.Seen {
			if w.catalog.meta == nil || w.catalog.meta.CurrentSnapshot() == nil {
				return nil
			}
			return seen(t, w.catalog.meta, w.catalog.meta.CurrentSnapshot().SnapshotID, w.store,
				w.attributes)
		},
		Tables: func() int { return branches(w.catalog.meta) }}
}

// history checks every snapshot that main has ever been: one generation in each, and the offsets only grow while the
// topic is read from one beginning.
func (w *world) history(t *testing.T) {
	if t.Failed() {
		return
	}
	seen := map[string]int64{} // the generation of a data file
	for snapshot := range w.catalog.mains {
		rows, err := iceberg.Generations(context.Background(), snapshot, w.store, seen)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 1 {
			t.Fatalf("a snapshot of main has the generations %v", rows)
		}
	}
}

// TestIndex follows random topics through kills between any two requests, lost and late answers, processes that live on
// after others have taken over, and maintenance by other programs.
func TestIndex(t *testing.T) {
	seed := uint64(0)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		faults := strings.Contains(t.Name(), "/faults/")
		if faults {
			race.SkipComputing(t)
		}
		seed++
		w := newWorld(seed, 0)
		if seed%3 > 0 {
			w.attributes = vectordbtest.Attributes
		}
		if faults {
			w.kill = 0.004
			t.Cleanup(func() { w.history(t) })
		} else {
			w.calm = true
		}
		return w.target(t)
	})
}
