package e2e_test

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"giantstream/train/generation"
	"giantstream/train/numeric"
)

// sizesConfig makes a node of the build as cheap as it can be: all stages have several tasks, and none has much to do.
const sizesConfig = `
pipeline: test
shards: 2
window: {changes: 100000, time: 10s}
ingest:
  nodes: {event_time: at}
  edges: {event_time: at}
featurize: {projection_dim: 16}
embedding: {dim: 16}
train: {encoder: linear}
evaluate: {probe_rates: [0.5]}
http: {listen: ""}
`

// A graph of 200,000 nodes on the embedded broker: one, two and seven processes build the same bytes of one commit log.
func TestAnyNumberOfProcessesBuildsTheSame(t *testing.T) {
	const size = 200_000
	if testing.Short() {
		t.Skip("builds 200,000 nodes three times")
	}
	b, w := embeddedPlace(t)
	crewAt := func(store string) *crew {
		c := &crew{t: t, place: w.place, pipeline: "test", dir: t.TempDir(), limit: 1 << 30, patience: 3 * longest,
			disturb: func(string) bool { return false }, stages: map[string]*ordeal{"": {}}, attempts: map[string]int{}}
		c.config = sizesConfig + fmt.Sprintf("store: \"file://%s\"\nkafka: {brokers: [%q]}\n", filepath.ToSlash(store),
			b.Addrs()[0])
		return c
	}
	config := func(c *crew) string {
		return writeFile(t, filepath.Join(c.dir, "main.yaml"),
			c.config+fmt.Sprintf("state_dir: %q\n", filepath.ToSlash(filepath.Join(c.dir, "state"))))
	}
	first := crewAt(filepath.Join(w.dir, "store"))
	nodes, edges := writeCommunities(t, size)
	first.run("run", "-c", config(first), "--roles", "stream", "--until-idle", "--nodes", nodes, "--edges", edges)

	var want map[string][32]byte
	for _, processes := range []int{1, 2, 7} {
		store := filepath.Join(t.TempDir(), "store")
		first.copyStore(store)
		c := crewAt(store)
		for range processes {
			c.join()
		}
		c.build("-c", config(c), "--sample", "4000")
		built := openStore(t, store)
		if doc, err := generation.Load(t.Context(), built, 1); err != nil || doc.Graph.Nodes != size || doc.TextOnly != "" {
			t.Fatalf("%d processes: %v, %+v", processes, err, doc)
		}
		got := artifacts(t, built)
		if want == nil {
			want = got
			continue
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d processes and one have built different bytes: %v", processes, differences(want, got))
		}
	}
	if len(want) < 20 {
		t.Errorf("only %d artifacts", len(want))
	}
}

// differences are the keys under which two maps differ.
func differences(a, b map[string][32]byte) (keys []string) {
	for key, sum := range a {
		if b[key] != sum {
			keys = append(keys, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// writeCommunities writes a graph of communities of 16 nodes, which share a topic and have two links each.
func writeCommunities(t *testing.T, n int) (nodes, edges string) {
	t.Helper()
	const community, topics, words = 16, 40, 25
	dir := t.TempDir()
	nodes, edges = filepath.Join(dir, "nodes.jsonl"), filepath.Join(dir, "edges.jsonl")
	write := func(path string, line func(w *bufio.Writer, i int)) {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(file)
		for i := range n {
			line(w, i)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := numeric.NewRand(1)
	write(nodes, func(w *bufio.Writer, i int) {
		topic := int(numeric.Mix(uint64(i/community)) % topics)
		fmt.Fprintf(w, `{"id":"n%06d","at":1,"label":"topic %d","text":"`, i, topic)
		for range 4 {
			fmt.Fprintf(w, "w%dx%d ", topic, r.IntN(words))
		}
		w.WriteString("\"}\n") //nolint:errcheck // Flush reports it
	})
	write(edges, func(w *bufio.Writer, i int) {
		for _, step := range []int{1, 5} {
			j := i/community*community + (i+step)%community
			fmt.Fprintf(w, `{"src":"n%06d","dst":"n%06d","at":1}`+"\n", i, j%n)
		}
	})
	return nodes, edges
}
