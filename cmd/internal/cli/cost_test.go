package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/publish"
	"giantstream/stream/shard"
)

// meter counts requests as an S3 store makes them.
type meter struct {
	*memstore.Store
	requests
}

func (m *meter) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	m.Puts++
	return m.Store.Put(ctx, key, r, size)
}

func (m *meter) Create(ctx context.Context, key string, data []byte) error {
	m.Puts++
	return m.Store.Create(ctx, key, data)
}

func (m *meter) Replace(ctx context.Context, key string, old, data []byte) error {
	m.Puts++
	m.Gets += 2 // what is stored is read first
	return m.Store.Replace(ctx, key, old, data)
}

func (m *meter) Open(ctx context.Context, key string) (sink.Object, error) {
	m.Gets++
	o, err := m.Store.Open(ctx, key)
	return meteredObject{o, m}, err
}

func (m *meter) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	m.Lists++
	return m.Store.List(ctx, prefix, after)
}

type meteredObject struct {
	sink.Object
	m *meter
}

func (o meteredObject) ReadAt(p []byte, off int64) (int, error) {
	o.m.Gets++
	return o.Object.ReadAt(p, off)
}

type noRecords struct{}

func (noRecords) Publish(context.Context, []embedding.Record) error { return nil }

// The figures by which 'status --cost' reckons are those of the program's own shard, follower and compactor.
func TestRequestsOfAWindow(t *testing.T) {
	const windows = 128
	ctx, m := t.Context(), &meter{Store: &memstore.Store{}}
	s, err := shard.Open(ctx, shard.Options{Pipeline: "p", Shards: 1, Dir: t.TempDir(), Store: m,
		Topics: shard.Topics{Nodes: "nodes"}, Window: shard.Window{Changes: 1000, Bytes: 1 << 20, Time: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	model := &publish.Model{Generation: 1, Dim: 1, Encode: func([]string, []float32) error { return nil }}
	follower := publish.New(publish.Options{Store: m, Publisher: noRecords{}, Log: slog.New(slog.DiscardHandler),
		Model: func() *publish.Model { return model }})
	for follow := true; follow; { // the switch to the generation, and nothing more
		if follow, err = follower.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var commit, follow, merge requests
	for i := range int64(windows) {
		m.requests = requests{}
		err := s.Apply(ctx, mutation.Batch{Next: map[string]int64{"nodes": i + 1}, Mutations: []mutation.Mutation{{
			Op: mutation.PutNode, ID: fmt.Sprint("n", i), Text: "text", Version: mutation.Version{EventTime: i, Offset: i}}}})
		if err == nil {
			_, err = s.Commit(ctx)
		}
		commit = commit.plus(m.requests)
		m.requests = requests{}
		if err == nil {
			_, err = follower.Step(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		follow = follow.plus(m.requests)
	}
	m.requests = requests{}
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: m})
	if _, err := c.Merge(ctx); err != nil {
		t.Fatal(err)
	}
	merge = m.requests
	for _, test := range []struct {
		name      string
		got, want requests
		looks     float64 // at the boundary, of which there is none here
	}{{"commit", commit, requestsOfCommit, 1}, {"follow", follow, requestsOfFollow, 2},
		{"merge", merge, requestsOfMerge, 1. / 64}} {
		got := test.got.times(1. / windows)
		got.Gets += test.looks
		t.Logf("%s: %+v a window, %+v is reckoned", test.name, got, test.want)
		if math.Abs(got.Puts-test.want.Puts) > 0.05 || math.Abs(got.Gets-test.want.Gets) > 0.1 ||
			math.Abs(got.Lists-test.want.Lists) > 0.1 {
			t.Errorf("%s: %+v a window, %+v is reckoned", test.name, got, test.want)
		}
	}
}

func TestCost(t *testing.T) {
	cfg := config.Default()
	second := costOf(&cfg, listPrices)
	cfg.Window.Time = 10 * time.Second
	ten := costOf(&cfg, listPrices)
	if second.Windows != 2_628_000 || ten.Windows != 262_800 {
		t.Errorf("%v and %v windows", second.Windows, ten.Windows)
	}
	if second.Dollars < 5*ten.Dollars || ten.Dollars <= 0 {
		t.Errorf("%.2f dollars at 1 s, %.2f at 10 s", second.Dollars, ten.Dollars)
	}
	if free := costOf(&cfg, prices{}); free.Dollars != 0 {
		t.Errorf("%.2f dollars without a price", free.Dollars)
	}
	var b strings.Builder
	if err := second.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"commits", "folding", "checkpoints", "sum", "2,628,000"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	t.Log(b.String())
}
