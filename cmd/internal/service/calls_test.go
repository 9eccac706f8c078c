package service

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/ingest/client"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// failing says how one call fails: the store's answer is an error, or the broker's connection
// breaks, before the call has had its effect or after.
type failing struct {
	what string
	arm  func(store *memstore.Store, broker *countingListener, n int64) (calls func() int64)
}

var errInjected = errors.New("injected failure")

// failings are the ways for a call to fail.
func failings() []failing {
	store := func(set func(*memstore.Store, func(op, key string) error)) func(*memstore.Store, *countingListener,
		int64) func() int64 {
		return func(s *memstore.Store, _ *countingListener, n int64) func() int64 {
			var calls atomic.Int64
			set(s, func(string, string) error {
				if calls.Add(1) == n {
					return errInjected
				}
				return nil
			})
			return calls.Load
		}
	}
	broker := func(after bool) func(*memstore.Store, *countingListener, int64) func() int64 {
		return func(_ *memstore.Store, b *countingListener, n int64) func() int64 {
			b.calls.Store(0)
			b.after.Store(after)
			b.cutAt.Store(n)
			return b.calls.Load
		}
	}
	return []failing{
		{"store, before", store(func(s *memstore.Store, f func(op, key string) error) { s.Fail = f })},
		{"store, after", store(func(s *memstore.Store, f func(op, key string) error) { s.FailAfter = f })},
		{"broker, before", broker(false)},
		{"broker, after", broker(true)},
	}
}

// From the topics to the published embeddings, any call to the store or the broker may fail once:
// what comes out is what comes out when nothing fails.
//
// The calls of a run are hundreds. GIANTSTREAM_EVERY_CALL=1 has each of them fail, which takes
// minutes; else it is some of them, spread evenly.
func TestErrorAtEveryCall(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the service dozens of times")
	}
	some := int64(5)
	if os.Getenv("GIANTSTREAM_EVERY_CALL") != "" {
		some = 1 << 40
	}
	want, _ := failAt(t, failing{}, 0)
	for _, f := range failings() {
		t.Run(f.what, func(t *testing.T) {
			_, calls := failAt(t, f, 0)
			if calls == 0 {
				t.Fatal("no calls were counted")
			}
			for n := int64(1); n <= calls; n += max(1, calls/some) {
				t.Run(fmt.Sprintf("call %d of %d", n, calls), func(t *testing.T) {
					t.Parallel()
					got, made := failAt(t, f, n)
					if made < n {
						t.Skipf("this run made only %d calls", made)
					}
					compare(t, "newest row", got.rows, want.rows)
					compare(t, "embedding", got.embeddings, want.embeddings)
				})
			}
		})
	}
}

// results is what a pipeline leaves.
type results struct {
	rows       map[string]rows.Row
	embeddings map[string]embedding.Record
}

// failAt takes the graph through a pipeline of its own, in which call n fails, 0 for none, and
// starts the service again until it is through.
func failAt(t *testing.T, f failing, n int64) (results, int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	brokers, listener := testBroker(t)
	cfg := config.Default()
	cfg.Pipeline, cfg.Shards, cfg.HTTP.Listen = "test", 1, ""
	cfg.StateDir = filepath.Join(t.TempDir(), "state")
	cfg.Kafka.Brokers, cfg.Kafka.SessionTimeout = brokers, time.Second
	cfg.Window.Time = 50 * time.Millisecond
	cfg.Evaluate.HoldoutEdges, cfg.Evaluate.ProbeRates = 0, nil
	cfg.Featurize.ProjectionDim, cfg.Embedding.Dim, cfg.Train.Encoder = 24, 16, "linear"
	c, err := client.New(client.Options{Brokers: cfg.Kafka.Brokers})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := wiring.EnsureTopics(ctx, c, &cfg); err != nil {
		t.Fatal(err)
	}
	tester := &Service{client: c}
	produceGraph(t, tester, &cfg)

	store, calls := &memstore.Store{}, func() int64 { return 0 }
	if f.arm != nil {
		calls = f.arm(store, listener, n)
	}
	for try := 1; ; try++ {
		err := upToDateOnce(ctx, &cfg, store)
		if err == nil {
			break
		}
		if n == 0 || try == 3 || ctx.Err() != nil {
			t.Fatalf("start %d, after one failed call: %v", try, err)
		}
	}
	counted := calls()
	store.Fail, store.FailAfter = nil, nil
	listener.cutAt.Store(0)
	out := results{map[string]rows.Row{}, sinkTopic(t, tester, &cfg)}
	for id, r := range out.embeddings {
		r.Seq, r.EventTime = 0, 0 // windows close when they do; event times are those of sending
		out.embeddings[id] = r
	}
	cut, err := commitlog.CurrentCut(ctx, store, cfg.Shards)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range cut.Newest(ctx, store, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out.rows[r.NodeID] = rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, Labels: r.Labels,
			Deleted: r.Deleted}
	}
	return out, counted
}

// testBroker starts a broker for several services, or several lives of one.
func testBroker(t *testing.T) (addrs []string, l *countingListener) {
	t.Helper()
	l = &countingListener{}
	broker, err := kfake.NewCluster(kfake.Ports(0), kfake.GroupMinSessionTimeout(100*time.Millisecond),
		kfake.ListenFn(func(network, addr string) (_ net.Listener, err error) {
			l.Listener, err = net.Listen(network, addr)
			return l, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return broker.ListenAddrs(), l
}

// upToDateOnce runs a service until everything is published.
func upToDateOnce(ctx context.Context, cfg *config.Config, store *memstore.Store) error {
	s, err := Start(ctx, Options{Config: cfg, Store: store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	err = s.Drain(ctx)
	if err == nil {
		_, _, err = s.UpToDate(ctx)
	}
	if err == nil {
		err = s.WaitPublished(ctx)
	}
	return errors.Join(err, s.Close())
}

// compare compares two maps.
func compare[V any](t *testing.T, what string, got, want map[string]V) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	t.Errorf("%d times a %s, want %d", len(got), what, len(want))
	for id := range maps.Keys(want) {
		if !reflect.DeepEqual(got[id], want[id]) {
			t.Errorf("%s of %s is\n%+v\nwant\n%+v", what, id, got[id], want[id])
			return
		}
	}
}

// countingListener counts the requests that a broker gets, and breaks the connection of one of
// them.
type countingListener struct {
	net.Listener
	calls, cutAt atomic.Int64
	after        atomic.Bool // the request is carried out, and the answer lost
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: c, listener: l}, nil
}

// countingConn follows the requests on a connection: four bytes, big endian, with the size of what
// follows, and that.
type countingConn struct {
	net.Conn
	listener *countingListener

	size []byte // of the next request, as far as it was read
	left uint32 // of the current one

	mu   sync.Mutex
	lose bool // the next answer
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for _, b := range p[:n] {
		if c.left > 0 {
			c.left--
			continue
		}
		if c.size = append(c.size, b); len(c.size) < 4 {
			continue
		}
		c.left, c.size = binary.BigEndian.Uint32(c.size), nil
		if c.listener.calls.Add(1) != c.listener.cutAt.Load() {
			continue
		}
		if !c.listener.after.Load() {
			return 0, errors.Join(errInjected, c.Close())
		}
		c.mu.Lock()
		c.lose = true
		c.mu.Unlock()
	}
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lose {
		return 0, errors.Join(errInjected, c.Close())
	}
	return c.Conn.Write(p)
}
