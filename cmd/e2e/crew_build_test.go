package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/broker"
	"giantstream/sink"
	"giantstream/train/generation"
)

// crewConfig is the configuration of a build that others do: several partitions and ranges of a small graph.
const crewConfig = `
pipeline: test
shards: 3
window: {changes: 5000, time: 500ms}
ingest:
  nodes: {event_time: at}
  edges: {event_time: at}
featurize:
  projection_dim: 48
  tree: {leaf_size: 8, branching: 4}
embedding: {dim: 32}
train: {encoder: linear}
evaluate: {probe_rates: [0.5]}
http: {listen: ""}
`

// Four processes do the tasks of a build on Apache Kafka and an S3 server. In each stage one is killed, one is frozen
// for longer than its lock lasts, and two join: the generation is that of one process, byte for byte, no process takes
// more memory than it may, and no task takes more than five attempts.
//
// Larger graphs by hand, with the settings of production and the locks of a broker's default:
//
//	go run ./cmd/bench/build -nodes 1000000 -write /tmp/graph
//	GIANTSTREAM_BUILD_GRAPH=/tmp/graph GIANTSTREAM_BUILD_STAGES=all GIANTSTREAM_BUILD_LOCK=30s \
//	  GIANTSTREAM_BUILD_PATIENCE=6h cmd/dev/test-real crew -timeout 12h
func TestRealBuildByACrew(t *testing.T) {
	settings := crewConfig
	if os.Getenv("GIANTSTREAM_BUILD_GRAPH") != "" {
		settings = largeCrewConfig
	}
	config, p := realPlace(t, settings)
	data, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	buildByACrew(t, string(data), p, nil)
}

// The same on the embedded broker.
func TestBuildByACrew(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a dozen processes")
	}
	t.Parallel()
	b, w := embeddedPlace(t)
	store := filepath.ToSlash(filepath.Join(w.dir, "store"))
	buildByACrew(t, crewConfig+fmt.Sprintf("store: \"file://%s\"\nkafka: {brokers: [%q]}\n", store, b.Addrs()[0]),
		w.place, b)
}

// embeddedPlace is an embedded broker and what is on it.
func embeddedPlace(t *testing.T) (*broker.Broker, *workers) {
	t.Helper()
	b, err := broker.Start(broker.Options{Dir: filepath.Join(t.TempDir(), "broker")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, newWorkersAt(t, b.Addrs()[0])
}

// largeCrewConfig has the settings of production.
const largeCrewConfig = `
pipeline: test
shards: 4
ingest:
  nodes: {event_time: at}
  edges: {event_time: at}
featurize: {memory_limit: 768MiB}
train: {encoder: linear}
http: {listen: ""}
`

func buildByACrew(t *testing.T, config string, p place, embedded *broker.Broker) {
	t.Helper()
	c := &crew{t: t, place: p, dir: t.TempDir(), limit: int64(envNumber(t, "GIANTSTREAM_BUILD_MIB", 1024)) << 20,
		lock: envDuration(t, "GIANTSTREAM_BUILD_LOCK", 2*time.Second), patience: envDuration(t,
			"GIANTSTREAM_BUILD_PATIENCE", longest), stages: map[string]*ordeal{}, attempts: map[string]int{},
		frozen: map[*member]time.Time{}}
	for line := range strings.Lines(config) {
		if name, ok := strings.CutPrefix(line, "pipeline: "); ok {
			c.pipeline = strings.TrimSpace(name)
		}
		if !strings.HasPrefix(line, "state_dir:") {
			c.config += line
		}
	}
	t.Cleanup(func() { c.removeTopics(p.client) })
	// All stages are for a long run: each kill takes the broker a moment to notice.
	some := []string{"scatter", "count", "pifa", "tree", "encode"}
	c.disturb = func(stage string) bool {
		return os.Getenv("GIANTSTREAM_BUILD_STAGES") == "all" || slices.Contains(some, stage)
	}
	var inputs []string
	if dir := os.Getenv("GIANTSTREAM_BUILD_GRAPH"); dir != "" {
		inputs = []string{"--nodes", filepath.Join(dir, "nodes.jsonl.gz"), "--edges", filepath.Join(dir, "edges.jsonl.gz")}
	} else {
		h := newAuthor(11, int(envNumber(t, "GIANTSTREAM_BUILD_NODES", 3000))).beginning()
		inputs = h.write(t, t.TempDir())
	}
	main := writeFile(t, filepath.Join(c.dir, "main.yaml"),
		c.config+fmt.Sprintf("state_dir: %q\n", filepath.ToSlash(filepath.Join(c.dir, "state"))))
	c.run(slices.Concat([]string{"run", "-c", main, "--roles", "stream", "--until-idle"}, inputs)...)
	c.checkLog(t)

	// One process, on a copy of the commit log.
	alone := t.TempDir()
	c.copyStore(alone)
	var division []string
	if os.Getenv("GIANTSTREAM_BUILD_GRAPH") == "" {
		division = []string{"--partitions", "8"}
	}
	c.run(slices.Concat([]string{"build", "-c", main, "--store", alone, "--workers", "1"}, division)...)

	c.shortenLocks(embedded)
	for range 4 {
		c.join()
	}
	c.build(slices.Concat([]string{"-c", main}, division)...)

	want, got := artifacts(t, openStore(t, alone)), artifacts(t, p.store)
	for key, sum := range want {
		if got[key] != sum {
			t.Errorf("%s differs from that of one process, or is missing", key)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s is left, which one process does not leave", key)
		}
	}
	if len(want) < 10 {
		t.Errorf("only %d artifacts", len(want))
	}
	c.judge()
}

// judge looks at what the build went through.
func (c *crew) judge() {
	c.t.Helper()
	attempts := 0
	for task, n := range c.attempts {
		if attempts = max(attempts, n); n > 5 {
			c.t.Errorf("task %s took %d attempts", task, n)
		}
	}
	var killed, frozen, added int
	var unfrozen []string // their tasks were done before another process reported one
	for stage, o := range c.stages {
		killed, frozen, added = killed+o.killed, frozen+o.frozen, added+o.added
		if o.frozen == 0 {
			unfrozen = append(unfrozen, stage)
		}
	}
	if killed == 0 || frozen == 0 || added == 0 {
		c.t.Error("nothing was disturbed")
	}
	slices.Sort(unfrozen)
	c.t.Logf("%d tasks, at most %d attempts; %d processes killed, %d frozen (none in %q), %d added, in %d stages",
		len(c.attempts), attempts, killed, frozen, unfrozen, added, len(c.stages))
}

// copyStore copies what the pipeline has committed to a directory.
func (c *crew) copyStore(dir string) {
	c.t.Helper()
	to := openStore(c.t, dir)
	for info, err := range c.store.List(c.t.Context(), "", "") {
		if err != nil {
			c.t.Fatal(err)
		}
		data, err := sink.ReadAll(c.t.Context(), c.store, info.Key)
		if err == nil {
			err = sink.PutBytes(c.t.Context(), to, info.Key, data)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// artifacts returns the SHA-256 of what generation 1 has, but its document, which has times.
func artifacts(t *testing.T, store sink.Store) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	for info, err := range store.List(t.Context(), generation.Prefix(1), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Key, "generation.json") {
			continue
		}
		object, err := store.Open(t.Context(), info.Key)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		if _, err := io.Copy(h, sink.Sequential(object)); err != nil {
			t.Fatal(err)
		}
		if err := object.Close(); err != nil {
			t.Fatal(err)
		}
		all[info.Key] = [32]byte(h.Sum(nil))
	}
	return all
}

// envDuration reads a duration from the environment.
func envDuration(t *testing.T, name string, otherwise time.Duration) time.Duration {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, value, err)
	}
	return d
}
