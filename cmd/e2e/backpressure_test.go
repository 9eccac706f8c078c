package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/cmd/e2e/internal/faults"
	"giantstream/cmd/e2e/internal/s3server"
	"giantstream/sink/s3store"
	"giantstream/stream/commitlog"
)

// With a burst of large texts, a node with 100,000 edges, and a slow store or broker, the input
// waits on the brokers, not in memory.
func TestMemoryIsBoundedWhateverArrives(t *testing.T) {
	if testing.Short() {
		t.Skip("streams 100 MB, twice")
	}
	peakMemory(t, os.Getpid()) // skips early where the system does not report it
	for _, test := range []struct {
		name   string
		toxics []faults.Toxic // of the store's connections, or else of the broker's
		store  bool
	}{
		{"slow store", []faults.Toxic{{Type: "latency", Stream: "downstream", Toxicity: 1,
			Attributes: map[string]any{"latency": 20}}}, true},
		// KB/s of a connection. Each edge is forwarded to the shard of its far end, so the output
		// is as large as the input, and slower.
		{"slow broker", []faults.Toxic{
			{Type: "bandwidth", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"rate": 20_000}},
			{Type: "bandwidth", Stream: "upstream", Toxicity: 1, Attributes: map[string]any{"rate": 2_000}},
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			listen := freeAddr(t)
			front, s3 := newProxy(t, "127.0.0.1:0", listen), newProxy(t, "127.0.0.1:0", startS3(t))
			b := faults.NewBroker(t.TempDir(), listen, front.Addr())
			if err := b.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Kill() })
			slow := front
			if test.store {
				slow = s3
			}
			memoryIsBounded(t, front.Addr(), s3.Addr(), func() {
				for _, toxic := range test.toxics {
					if err := slow.Poison(toxic); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// memoryIsBounded runs a worker on that input. Poison is called when the texts are on their topic
// and before the edges are.
func memoryIsBounded(t *testing.T, broker, s3 string, poison func()) {
	t.Helper()
	const (
		texts, textBytes = 400, 250 << 10
		edges            = 100_000
		// bound is what a worker of a production catalog may take. What the settings below add up
		// to is well below: three windows of 8 MiB, nine fetches of 1 MiB ahead, the state's
		// caches.
		bound = 600 << 20
	)
	w := newWorkersAt(t, broker)
	w.settings = strings.Replace(w.settings, "window: {changes: 100, time: 200ms}",
		"window: {changes: 5000, bytes: 8MiB, time: 200ms}", 1)
	w.settings = regexp.MustCompile(`(?m)^store:.*$`).ReplaceAllString(w.settings,
		fmt.Sprintf("store: s3://giantstream/memory\n"+
			"s3: {endpoint: \"http://%s\", region: %s, access_key: %s, secret_key: %s}",
			s3, s3server.Region, s3server.AccessKey, s3server.SecretKey))
	store, err := s3store.Open(t.Context(), "giantstream", "memory",
		s3store.Options{Endpoint: "http://" + s3, PathStyle: true, Region: s3server.Region,
			AccessKey: s3server.AccessKey, SecretKey: s3server.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	a := w.start(t, "a", "", "--roles", "stream")
	until(t, "it has shards", a.hasShards)

	p := w.client.NewProducer()
	defer p.Close()
	send := func(topic, key, value string) {
		t.Helper()
		if err := p.Send(t.Context(), kafka.Message{Topic: topic, Key: []byte(key), Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range texts {
		id := fmt.Sprint("large-", i)
		send("nodes", id, fmt.Sprintf(`{"id":%q,"text":%q}`, id, strings.Repeat(fmt.Sprint("word", i%97, " "), textBytes/8)))
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	poison()
	send("nodes", "hub", `{"id":"hub","text":"everybody's neighbour"}`)
	for i := range edges {
		send("edges", "hub", fmt.Sprintf(`{"src":"hub","dst":"leaf-%d"}`, i))
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.store = store
	until(t, "all of it is committed", func() bool {
		var nodes, asserted int64
		for shard := range 3 {
			m, err := commitlog.Head(t.Context(), w.store, shard)
			if err != nil {
				t.Fatal(err)
			}
			if m != nil {
				nodes, asserted = nodes+m.Nodes, asserted+m.Edges
			}
		}
		return nodes == texts+1 && asserted == edges
	})
	peak := peakMemory(t, a.pid)
	a.stop(t)
	t.Logf("peak memory %d MiB", peak>>20)
	if peak > bound {
		t.Errorf("the worker took %d MiB at its peak, want at most %d", peak>>20, bound>>20)
	}
}

// peakMemory is the largest resident size that a process has had.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Skipf("a process's peak memory is not in /proc here: %v", err)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
