package e2e_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
)

// A pipeline with a misspelt field of the text gets the right one while it runs. The command is killed on the way. In
// the end rows and embeddings are those of a pipeline that had the right field from the beginning, but for the numbers
// of generations; no node was missing on the topic meanwhile; the pipeline of before says where it went; and the way
// back leads back.
func TestRemap(t *testing.T) {
	if testing.Short() {
		t.Skip("runs several pipelines in several processes")
	}
	t.Parallel()
	r := newRemapping(t)
	beginning := newAuthor(3, 300).beginning()
	files := beginning.write(t, filepath.Join(r.dir, "files"))
	before := r.configure(t, "before", "test", "embeddings", "[id, txet]")
	after := r.configure(t, "after", "test-2", "embeddings", "[id, text]")
	fresh := r.configure(t, "fresh", "test-3", "embeddings-fresh", "[id, text]")
	succeed(t, append([]string{"run", "-c", before, "--allow-unmatched", "--until-idle"}, files...)...)
	misspelt := r.place(t, "before", "test", "embeddings").outcome(t)
	began := r.end(t)

	// The pipeline runs meanwhile.
	worker := command(t, "run", "-c", before, "--allow-unmatched")
	var log workerLog
	worker.Stdout, worker.Stderr = &log, &log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	remap := []string{"remap", "-c", after, "--from", filepath.Join(r.dir, "before")}
	out := succeed(t, append(remap, "--dry-run")...)
	if !strings.Contains(out, "ingest.nodes.text") || !strings.Contains(out, "have another text, such as") {
		t.Errorf("the dry run says\n%s", out)
	}
	r.killRemap(t, remap, "after", 12)
	if res := run(t, "run", "-c", after, "--until-idle"); res.code == 0 || !strings.Contains(res.stderr,
		"has not handed over yet") {
		t.Errorf("a worker publishes before its time: %d\n%s", res.code, res.stderr)
	}
	out = succeed(t, remap...)
	if !strings.Contains(out, "has taken over from test ") {
		t.Errorf("the command says\n%s", out)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(log.String(), "belongs to another pipeline: test-2 ") {
			t.Errorf("the worker of before ended with %v\n%s", err, log.String())
		}
	case <-time.After(longest):
		t.Fatalf("the worker of before runs\n%s", log.String())
	}
	refused(t, before, filepath.Join(r.dir, "after"))
	if out := succeed(t, remap...); !strings.Contains(out, "has taken over already") {
		t.Errorf("the same command once more says\n%s", out)
	}

	succeed(t, "run", "-c", after, "--until-idle")
	succeed(t, "run", "-c", fresh, "--until-idle")
	got, want := r.place(t, "after", "test-2", "embeddings").outcome(t),
		r.place(t, "fresh", "test-3", "embeddings-fresh").outcome(t)
	if first := misspelt.doc.Generation; got.doc.Generation <= first || got.doc.GraphHash != want.doc.GraphHash {
		t.Errorf("generation %d after %d, of graph %s, want %s", got.doc.Generation, first, got.doc.GraphHash,
			want.doc.GraphHash)
	}
	sameMap(t, "newest row", anyGeneration(got.rows), anyGeneration(want.rows))
	sameMap(t, "embedding", vectorsOf(got.embeddings), vectorsOf(want.embeddings))
	sameMap(t, "published embedding", vectorsOf(got.published), vectorsOf(want.published))
	r.neverMissing(t, began, want.rows)
	if reader := r.read(t); reader.visible != got.doc.Generation {
		t.Errorf("readers see generation %d, want %d", reader.visible, got.doc.Generation)
	}

	// The way back, from which there is a way back.
	began = r.end(t)
	succeed(t, "remap", "-c", before, "--from", filepath.Join(r.dir, "after"))
	refused(t, after, filepath.Join(r.dir, "before"))
	succeed(t, "run", "-c", before, "--until-idle")
	back := r.place(t, "before", "test", "embeddings").outcome(t)
	sameMap(t, "published embedding of before", vectorsOf(back.published), vectorsOf(misspelt.published))
	r.neverMissing(t, began, want.rows)
	if reader := r.read(t); reader.visible != misspelt.doc.Generation {
		t.Errorf("readers see generation %d, want %d", reader.visible, misspelt.doc.Generation)
	}
	succeed(t, remap...)
	refused(t, before, filepath.Join(r.dir, "after"))
	succeed(t, "run", "-c", after, "--until-idle")
	again := r.place(t, "after", "test-2", "embeddings").outcome(t)
	sameMap(t, "published embedding once more", vectorsOf(again.published), vectorsOf(want.published))
}

// remapRun is where pipelines with several mappings of the same topics are.
type remapRun struct {
	dir     string
	brokers string
	client  *client.Client
}

func newRemapping(t *testing.T) *remapRun {
	t.Helper()
	dir := t.TempDir()
	b, err := broker.Start(broker.Options{Dir: filepath.Join(dir, "broker")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(client.Options{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &remapRun{dir: dir, brokers: b.Addrs()[0], client: c}
}

// configure writes the configuration of a pipeline, whose store has the same name.
func (r *remapRun) configure(t *testing.T, name, pipeline, embeddings, text string) string {
	t.Helper()
	config := strings.NewReplacer("pipeline: test\n", "pipeline: "+pipeline+"\n",
		"nodes: {event_time: at}", "nodes: {event_time: at, text: "+text+"}").Replace(smallConfig)
	return writeFile(t, filepath.Join(r.dir, name+".yaml"), fmt.Sprintf(`
store: %[1]s/%[2]s
state_dir: %[1]s/state-%[2]s
kafka:
  brokers: [%[3]s]
  session_timeout: 6s
  topics: {nodes: nodes, edges: edges, embeddings: %[4]s}
sink: {control_records: true}
train: {encoder: linear}
`, r.dir, name, r.brokers, embeddings)+strings.Replace(config, "train: {checkpoint_every: 1s}\n", "", 1))
}

func (r *remapRun) place(t *testing.T, name, pipeline, embeddings string) place {
	t.Helper()
	store := filepath.Join(r.dir, name)
	return place{store: openStore(t, store), client: r.client, embeddings: embeddings,
		deadLetters: pipeline + ".dead-letters"}
}

// end is where the embeddings topic ends.
func (r *remapRun) end(t *testing.T) []int64 {
	t.Helper()
	ends, err := r.client.EndOffsets(t.Context(), "embeddings")
	if err != nil {
		t.Fatal(err)
	}
	return ends["embeddings"]
}

// read reads the embeddings topic as a consumer does that switches generations.
func (r *remapRun) read(t *testing.T) *reader {
	t.Helper()
	reader := newReader(r.client, "embeddings", len(r.end(t)))
	if err := reader.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return reader
}

// neverMissing checks that the topic has had every live node since an offset at which it had all of them.
func (r *remapRun) neverMissing(t *testing.T, since []int64, live map[string]rows.Row) {
	t.Helper()
	records := 0
	for partition, end := range r.end(t) {
		for m, err := range r.client.Range(t.Context(), "embeddings", partition, since[partition], end) {
			if err != nil {
				t.Fatal(err)
			}
			if embeddingtopic.IsControl(m) {
				continue
			}
			records++
			row, ok := live[string(m.Key)]
			if len(m.Value) == 0 && ok && !row.Deleted {
				t.Errorf("partition %d, offset %d: %s is gone, which is live", partition, m.Offset, m.Key)
			}
		}
	}
	if records == 0 {
		t.Error("nothing was published")
	}
}

// killRemap kills the command once it has written so many objects.
func (r *remapRun) killRemap(t *testing.T, args []string, store string, objects int) {
	t.Helper()
	cmd := command(t, args...)
	var log workerLog
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			t.Fatalf("the command ended before it was killed: %v\n%s", err, log.String())
		case <-tick.C:
		}
		written := 0
		for _, err := range openStore(t, filepath.Join(r.dir, store)).List(t.Context(), "", "") {
			if err == nil {
				written++
			}
		}
		if written >= objects {
			_ = cmd.Process.Kill() // it may have just ended
			<-ended
			return
		}
	}
}

// refused checks that a pipeline does not publish any more, and says which store has taken over.
func refused(t *testing.T, config, by string) {
	t.Helper()
	res := run(t, "run", "-c", config, "--until-idle")
	if res.code == 0 || !strings.Contains(res.stderr, "'giantstream remap' has handed over to the store file://"+by) {
		t.Errorf("%s: exit code %d\n%s", config, res.code, res.stderr)
	}
}

// anyGeneration returns rows without the number of the generation that their features are of.
func anyGeneration(all map[string]rows.Row) map[string]rows.Row {
	out := maps.Clone(all)
	for id, row := range out {
		row.Generation = 0
		out[id] = row
	}
	return out
}

// vectorsOf returns embeddings without the numbers of generations and manifests.
func vectorsOf(all map[string]embedding.Record) map[string]embedding.Record {
	out := withoutSeq(all)
	for id, r := range out {
		r.Generation, r.Space = 0, 0
		out[id] = r
	}
	return out
}
