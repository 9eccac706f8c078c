package milvus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/milvus/milvuslite"
	"giantstream/sink/vectordb/vectordbtest"
)

// wired sends the requests of a process over a wire.
func wired(w *vectordbtest.Wire) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		var late func()
		if strings.HasSuffix(method, "/Upsert") || strings.HasSuffix(method, "/Delete") {
			m, answer := proto.Clone(req.(proto.Message)), proto.Clone(reply.(proto.Message))
			late = func() { _ = invoke(context.WithoutCancel(ctx), method, m, answer, c, opts...) }
		}
		err := w.Call(func() error { return invoke(ctx, method, req, reply, c, opts...) }, late)
		if errors.Is(err, vectordbtest.ErrLost) {
			return status.Error(codes.Unavailable, err.Error())
		}
		return err
	}
}

// world is a sink of a name of its own on a server.
type world struct {
	t    *testing.T
	url  string
	name string
	wire *vectordbtest.Wire
	raw  *Index // reads what readers see
}

var names atomic.Int32

func newWorld(t *testing.T, url string, rnd *rand.Rand) *world {
	w := &world{t: t, url: url, name: fmt.Sprintf("items%d", names.Add(1)), wire: vectordbtest.NewWire(rnd, 0.03)}
	var err error
	if w.raw, err = New(Options{URL: url, Name: w.name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.raw.Close() })
	return w
}

func (w *world) open() vectordb.Index {
	x, err := New(Options{URL: w.url, Name: w.name, Attributes: vectordbtest.Attributes,
		dial: []grpc.DialOption{grpc.WithChainUnaryInterceptor(wired(w.wire))}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = x.Close() })
	return x
}

// rows is what readers find behind the alias.
func (w *world) rows() map[string]vectordbtest.Seen {
	w.t.Helper()
	q, err := w.raw.c.Query(w.t.Context(), &milvuspb.QueryRequest{CollectionName: w.name, Expr: `id != ""`,
		OutputFields: []string{"node_id", "generation", "seq", vectorField, dynamicField}})
	q, err = checked("read", q, err)
	if missing(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	found := rows(q.GetFieldsData())
	vectors, dim := found.vectors()
	out := map[string]vectordbtest.Seen{}
	generations, seqs := found.numbers("generation"), found.numbers("seq")
	for i, id := range found.text("node_id") {
		out[id] = vectordbtest.Seen{Vector: vectordbtest.Literal(vectors[i*dim : (i+1)*dim]), Generation: generations[i],
			Seq: seqs[i], Attributes: w.show(found.further()[i])}
	}
	return out
}

// show writes the attributes in a row's further fields.
func (w *world) show(object []byte) string {
	w.t.Helper()
	var all map[string]any
	if err := json.Unmarshal(object, &all); err != nil {
		w.t.Fatal(err)
	}
	if at, ok := all["since"].(float64); ok {
		all["since"] = time.UnixMicro(int64(at))
	}
	return vectordbtest.ShowObject(all)
}

func (w *world) tables() int {
	w.t.Helper()
	s, err := w.raw.c.ShowCollections(w.t.Context(), &milvuspb.ShowCollectionsRequest{})
	if s, err = checked("list", s, err); err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, name := range s.GetCollectionNames() {
		if strings.HasPrefix(name, w.name+"_g") {
			n++
		}
	}
	return n
}

func TestIndex(t *testing.T) {
	url := milvuslite.Start(t)
	seed := uint64(0)
	vectordbtest.Run(t, func(t *testing.T) vectordbtest.Target {
		seed++
		w := newWorld(t, url, rand.New(rand.NewPCG(seed, 3)))
		return vectordbtest.Target{Open: w.open, Rows: w.rows, Tables: w.tables, Wire: w.wire, Delayed: true,
			Attributes: true}
	})
}

// A collection that has the name of the sink is refused before a table is filled, and an alias is not.
func TestNameOfSomethingElse(t *testing.T) {
	url := milvuslite.Start(t)
	x, err := New(Options{URL: url, Name: "items"})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	table := vectordb.Table{Serial: 1, Generation: 1, Dim: 2}
	for _, do := range []func() error{
		func() error { _, err := x.Open(t.Context()); return err },
		func() error { return x.Create(t.Context(), table) },
		func() error { return x.Serve(t.Context(), table, vectordb.Catalog{}) },
		func() error { _, err := x.Open(t.Context()); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	other, err := New(Options{URL: url, Name: table.Name("items")})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Open(t.Context()); !errors.Is(err, vectordb.ErrRefused) ||
		!strings.Contains(err.Error(), "choose another sinks.name") {
		t.Errorf("a sink with the name of a collection: %v", err)
	}
}

func TestPreflight(t *testing.T) {
	x, err := New(Options{URL: "http://127.0.0.1:1", Name: "items"})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := x.Open(t.Context()); err == nil || retry.Final(err) {
		t.Errorf("a server that is away is to be tried again, got %v", err)
	}
	for id, ok := range map[string]bool{"net/http.Client": true, strings.Repeat("x", 65536): false, "\xff": false} {
		if err := x.Check(id); (err == nil) != ok {
			t.Errorf("id of %d bytes: %v", len(id), err)
		}
	}
}

// TestLostWriteIsShutOut: a write that was given up and arrives after its successor changes nothing, although nothing
// compares offsets at that moment: it finds no collection.
func TestLostWriteIsShutOut(t *testing.T) {
	url := milvuslite.Start(t)
	open := func() *Index { // without a wire that loses requests
		x, err := New(Options{URL: url, Name: "items", Attributes: vectordbtest.Attributes})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.Close() })
		return x
	}
	x := open()
	table := vectordb.Table{Serial: 1, Generation: 1, Dim: 2}
	if _, err := x.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.Create(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	record := func(offset int64) []vectordb.Record {
		r := vectordb.Record{Offset: offset}
		r.NodeID, r.Generation, r.Vector = "n", 1, []float32{1, float32(offset)}
		return []vectordb.Record{r}
	}
	batch := func(offset int64) vectordb.Batch {
		return vectordb.Batch{From: offset, Progress: vectordb.Progress{Epoch: 1, Next: offset + 1},
			Changes: []vectordb.Change{{Table: table, Upserts: record(offset)}}}
	}
	old := x.writer(table.Name("items"))
	x.suspect.Store(true) // as after a write without an answer
	if err := x.Apply(t.Context(), batch(7)); err != nil {
		t.Fatal(err)
	}
	columns := append(nodeColumns(record(3)), furtherColumn([][]byte{[]byte("{}")}))
	err := x.upsert(t.Context(), old, columns, 1)
	if !missing(err) {
		t.Errorf("a write of an earlier turn: %v", err)
	}
	// So does a process that another has replaced, at each of its steps.
	y := open()
	if _, err := y.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := y.Create(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	for name, step := range map[string]func() error{
		"apply": func() error { return x.Apply(t.Context(), batch(9)) },
		"apply after a lost write": func() error {
			x.suspect.Store(true)
			return x.Apply(t.Context(), batch(9))
		},
		"save":  func() error { return x.Save(t.Context(), vectordb.Catalog{}) },
		"serve": func() error { return x.Serve(t.Context(), table, vectordb.Catalog{}) },
		"drop":  func() error { return x.Drop(t.Context(), table) },
	} {
		if err := step(); !errors.Is(err, vectordb.ErrTakenOver) {
			t.Errorf("%s: %v, want %v", name, err, vectordb.ErrTakenOver)
		}
	}
	if err := y.Apply(t.Context(), batch(10)); err != nil {
		t.Error(err)
	}
}

func BenchmarkFill(b *testing.B) {
	x, err := New(Options{URL: milvuslite.Start(b), Name: "items"})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	vectordbtest.Fill(b, x)
}
