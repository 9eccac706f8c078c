package status

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/recent"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/publish"
	"giantstream/stream/shard"
)

// meter counts requests as an S3 store makes them, by what they are about.
type meter struct {
	*memstore.Store
	mu    sync.Mutex
	about map[string]*Requests
}

// add counts requests about a key.
func (m *meter) add(key string, r Requests) {
	m.mu.Lock()
	defer m.mu.Unlock()
	about := m.count(key)
	*about = about.plus(r)
}

func (m *meter) count(key string) *Requests {
	about := "other"
	for _, part := range []string{"compacted", "rows", "manifests", "boundary", "published"} {
		if strings.Contains("/"+key, "/"+part) {
			about = part
			break
		}
	}
	if m.about[about] == nil {
		m.about[about] = &Requests{}
	}
	return m.about[about]
}

// take returns what was counted since the last call.
func (m *meter) take() map[string]*Requests {
	taken := m.about
	m.about = map[string]*Requests{}
	return taken
}

func (m *meter) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	m.add(key, Requests{Puts: 1})
	return m.Store.Put(ctx, key, r, size)
}

func (m *meter) Create(ctx context.Context, key string, data []byte) error {
	m.add(key, Requests{Puts: 1})
	return m.Store.Create(ctx, key, data)
}

func (m *meter) Replace(ctx context.Context, key string, old, data []byte) error {
	m.add(key, Requests{Puts: 1, Gets: 1}) // what is stored is read first
	return m.Store.Replace(ctx, key, old, data)
}

func (m *meter) Fetch(ctx context.Context, key string, most int64) ([]byte, error) {
	m.add(key, Requests{Gets: 1})
	return sink.ReadUpTo(ctx, m.Store, key, most)
}

func (m *meter) Open(ctx context.Context, key string) (sink.Object, error) {
	m.add(key, Requests{Gets: 1})
	o, err := m.Store.Open(ctx, key)
	return meteredObject{o, m, key}, err
}

func (m *meter) List(ctx context.Context, prefix, after string) iter.Seq2[sink.Info, error] {
	m.add(prefix, Requests{Lists: 1})
	return m.Store.List(ctx, prefix, after)
}

type meteredObject struct {
	sink.Object
	meter *meter
	key   string
}

func (o meteredObject) ReadAt(p []byte, off int64) (int, error) {
	o.meter.add(o.key, Requests{Gets: 1})
	return o.Object.ReadAt(p, off)
}

// bill adds up what parts of a process have asked for.
type bill map[string]map[string]Requests

func (b bill) add(part string, taken map[string]*Requests) {
	if b[part] == nil {
		b[part] = map[string]Requests{}
	}
	for about, r := range taken {
		b[part][about] = b[part][about].plus(*r)
	}
}

func (b bill) sum(part string) (sum Requests) {
	for _, r := range b[part] {
		sum = sum.plus(r)
	}
	return sum
}

// remembering keeps the manifests of a shard, as the service does.
type remembering struct {
	shard.NopListener
	recent *commitlog.Recent
}

func (r remembering) Committed(m *commitlog.Manifest) { r.recent.Add(m) }

type noRecords struct{}

func (noRecords) Publish(context.Context, []embedding.Record) error { return nil }

// The figures by which 'status --cost' reckons are those of the program's own shard, follower and compactor, put
// together as in the service. A follower in another process has no part in the reckoning; its requests are logged.
func TestRequestsOfAWindow(t *testing.T) {
	const windows, toMove = 128, 10
	ctx, m := t.Context(), &meter{Store: &memstore.Store{}, about: map[string]*Requests{}}
	var manifests commitlog.Recent
	store := recent.New(1<<20, commitlog.IsRows).Store(m)
	s, err := shard.Open(ctx, shard.Options{Pipeline: "p", Shards: 1, Dir: t.TempDir(), Store: store,
		Topics: shard.Topics{Nodes: "nodes"}, Window: shard.Window{Changes: 1000, Bytes: 1 << 20, Time: time.Second},
		Listener: remembering{recent: &manifests}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	model := &publish.Model{Generation: 1, Dim: 1, Encode: func(_, _ []string, _ []float32) error { return nil }}
	behind := time.Hour
	opts := publish.Options{Store: store, Publisher: noRecords{}, Log: slog.New(slog.DiscardHandler),
		Model: func() *publish.Model { return model }, Known: manifests.LookupFor(0),
		SaveEvery: func() time.Duration { return behind }}
	follower := publish.New(opts)
	step := func(f *publish.Follower) bool {
		progressed, err := f.Step(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return progressed
	}
	for step(follower) { // the switch to the generation, and nothing more
		continue
	}
	m.take()
	b := bill{}
	for i := range int64(windows) {
		batch := mutation.Batch{Next: map[string]int64{"nodes": i + 1}}
		batch.State(mutation.Nodes, i, mutation.Mutation{
			Op: mutation.PutNode, ID: fmt.Sprint("n", i), Text: "text", Version: mutation.Version{EventTime: i, Offset: i}})
		err := s.Apply(ctx, batch)
		if err == nil {
			_, err = s.Commit(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		b.add("commit", m.take())
		if behind = time.Hour; i%toMove == toMove-1 {
			behind = 0
		}
		step(follower)
		b.add("follow", m.take())
	}
	// The row objects of the windows of two minutes may take more memory than the cache has.
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: m, Known: manifests.LookupFor(0)})
	if merged, err := c.Merge(ctx); merged != windows/64 || err != nil {
		t.Fatal(merged, err)
	}
	b.add("merge", m.take())
	follow := requestsOfFollow.plus(requestsOfMove.times(1. / toMove))
	for _, test := range []struct {
		part    string
		want    Requests
		windows float64
	}{{"commit", requestsOfCommit, windows}, {"follow", follow, windows}, {"merge", requestsOfMerge, windows}} {
		for about, r := range b[test.part] {
			t.Logf("%s, %s: %+v a window", test.part, about, r.times(1/test.windows))
		}
		got := b.sum(test.part).times(1 / test.windows)
		if math.Abs(got.Puts-test.want.Puts) > 0.05 || math.Abs(got.Gets-test.want.Gets) > 0.1 ||
			math.Abs(got.Lists-test.want.Lists) > 0.1 {
			t.Errorf("%s: %+v a window, %+v is reckoned", test.part, got, test.want)
		}
	}
	if all := requestsOfCommit.plus(follow).plus(requestsOfMerge); all.Gets > 4 {
		t.Errorf("%v reads a window", all.Gets)
	}
}

// A follower in another process reads each manifest and row object, and asks for the next manifest and the boundary.
func TestRequestsOfAFollowerAlone(t *testing.T) {
	const windows = 60
	ctx, m := t.Context(), &meter{Store: &memstore.Store{}, about: map[string]*Requests{}}
	s, err := shard.Open(ctx, shard.Options{Pipeline: "p", Shards: 1, Dir: t.TempDir(), Store: m,
		Topics: shard.Topics{Nodes: "nodes"}, Window: shard.Window{Changes: 1000, Bytes: 1 << 20, Time: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	model := &publish.Model{Generation: 1, Dim: 1, Encode: func(_, _ []string, _ []float32) error { return nil }}
	follower := publish.New(publish.Options{Store: m, Publisher: noRecords{}, Log: slog.New(slog.DiscardHandler),
		Model: func() *publish.Model { return model }, SaveEvery: func() time.Duration { return time.Hour }})
	b := bill{}
	for i := range int64(windows) {
		batch := mutation.Batch{Next: map[string]int64{"nodes": i + 1}}
		batch.State(mutation.Nodes, i, mutation.Mutation{
			Op: mutation.PutNode, ID: fmt.Sprint("n", i), Text: "text", Version: mutation.Version{EventTime: i, Offset: i}})
		err := s.Apply(ctx, batch)
		if err == nil {
			_, err = s.Commit(ctx)
		}
		m.take()
		for range 2 { // one poll finds the window, and one finds nothing
			if err == nil {
				_, err = follower.Step(ctx)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if i > 1 { // the switch to the generation is done
			b.add("follow", m.take())
		}
	}
	got := b.sum("follow").times(1. / (windows - 2))
	for about, r := range b["follow"] {
		t.Logf("%s: %+v a window", about, r.times(1./(windows-2)))
	}
	if want := (Requests{Gets: 7}); math.Abs(got.Gets-want.Gets) > 0.2 || got.Puts > 0.05 {
		t.Errorf("%+v a window, OPERATIONS.md says %+v", got, want)
	}
}

func TestCost(t *testing.T) {
	cfg := config.Default()
	second := CostOf(&cfg, ListPrices)
	cfg.Window.Time = 10 * time.Second
	ten := CostOf(&cfg, ListPrices)
	if second.Windows != 2_628_000 || ten.Windows != 262_800 {
		t.Errorf("%v and %v windows", second.Windows, ten.Windows)
	}
	if second.Dollars < 5*ten.Dollars || ten.Dollars <= 0 {
		t.Errorf("%.2f dollars at 1 s, %.2f at 10 s", second.Dollars, ten.Dollars)
	}
	if free := CostOf(&cfg, Prices{}); free.Dollars != 0 {
		t.Errorf("%.2f dollars without a price", free.Dollars)
	}
}

// What 'status --cost' reckons for the measures of drift: a look at windows that the process has committed asks for
// nothing, one that finds none for a manifest, and now and then for the boundary.
func TestRequestsOfALook(t *testing.T) {
	ctx, m := t.Context(), &meter{Store: &memstore.Store{}, about: map[string]*Requests{}}
	var manifests commitlog.Recent
	store := recent.New(1<<20, commitlog.IsRows).Store(m)
	s, err := shard.Open(ctx, shard.Options{Pipeline: "p", Shards: 1, Dir: t.TempDir(), Store: store,
		Topics: shard.Topics{Nodes: "nodes"}, Window: shard.Window{Changes: 1000, Bytes: 1 << 20, Time: time.Second},
		Listener: remembering{recent: &manifests}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	tail := commitlog.Tail{Store: store, Known: manifests.LookupFor(0)}
	upto := int64(0)
	look := func() Requests {
		t.Helper()
		m.take()
		for segment, err := range tail.SegmentsAfter(ctx, upto) {
			if err == nil {
				for _, err = range segment.Rows(ctx, store, rows.ReadOptions{}) {
					if err != nil {
						break
					}
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			upto = segment.To
		}
		b := bill{}
		b.add("look", m.take())
		return b.sum("look")
	}
	for i := range int64(5) {
		batch := mutation.Batch{Next: map[string]int64{"nodes": i + 1}}
		batch.State(mutation.Nodes, i, mutation.Mutation{
			Op: mutation.PutNode, ID: fmt.Sprint("n", i), Text: "text", Version: mutation.Version{EventTime: i, Offset: i}})
		err := s.Apply(ctx, batch)
		if err == nil {
			_, err = s.Commit(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if found := look(); found != (Requests{}) || upto != 5 {
		t.Errorf("a look at windows up to %d of this process takes %+v", upto, found)
	}
	var none Requests
	for range 16 {
		none = none.plus(look())
	}
	if got := none.times(1. / 16); math.Abs(got.Gets-requestsOfLook.Gets) > 0.01 || got.Puts+got.Lists > 0 {
		t.Errorf("a look that finds nothing takes %+v, %+v is reckoned", got, requestsOfLook)
	}
}
