package e2e_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/s3store"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// realPlace makes a pipeline's place on Apache Kafka and an S3 server (make test-real) and a
// configuration with the given settings for it, where TOPIC stands for what the names of its topics begin with.
func realPlace(t *testing.T, settings string) (config string, p place) {
	t.Helper()
	brokers, endpoint := os.Getenv("GIANTSTREAM_REAL_KAFKA"), os.Getenv("GIANTSTREAM_REAL_S3")
	bucket := os.Getenv("GIANTSTREAM_REAL_S3_BUCKET")
	if brokers == "" || endpoint == "" {
		t.Skip("needs Apache Kafka and an S3 server: make test-real")
	}
	name := "test-" + strings.ToLower(rand.Text()[:8])
	dir := t.TempDir()
	config = writeFile(t, filepath.Join(dir, "real.yaml"), fmt.Sprintf(`
store: s3://%[1]s/%[2]s
s3: {endpoint: "%[3]s"}
state_dir: "%[4]s/state"
kafka:
  brokers: [%[5]s]
  topics: {nodes: %[2]s.nodes, edges: %[2]s.edges, embeddings: %[2]s.embeddings}
`, bucket, name, endpoint, dir, brokers)+strings.NewReplacer("pipeline: test\n", "pipeline: "+name+"\n",
		"TOPIC.", name+".").
		Replace(settings))

	store, err := s3store.Open(t.Context(), bucket, name, s3store.Options{Endpoint: endpoint, PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Brokers: strings.Split(brokers, ",")})
	if err != nil {
		t.Fatal(err)
	}
	p = place{store: store, client: c, embeddings: name + ".embeddings", deadLetters: name + ".dead-letters"}
	t.Cleanup(func() { removeTopics(t, c, name) })
	return config, p
}

// removeTopics removes the topics whose names begin with name and a dot, and closes the client.
func removeTopics(t *testing.T, c *client.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	admin := kafka.Client{Addr: kafka.TCP(c.Brokers()...)}
	all, err := admin.Metadata(ctx, &kafka.MetadataRequest{})
	if err == nil {
		var topics []string
		for _, topic := range all.Topics {
			if strings.HasPrefix(topic.Name, name+".") {
				topics = append(topics, topic.Name)
			}
		}
		var res *kafka.DeleteTopicsResponse
		if res, err = admin.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: topics}); err == nil {
			err = errors.Join(slices.Collect(maps.Values(res.Errors))...)
		}
	}
	if err != nil {
		t.Logf("topics %s.* are left on the cluster: %v", name, err)
	}
	c.Close()
}

// sampleConfig is what takes the sample graph through in a few seconds.
const sampleConfig = `
pipeline: test
shards: 4
featurize:
  projection_dim: 96
embedding: {dim: 64}
train: {encoder: linear}
evaluate: {probe_rates: []}
http: {listen: ""}
`

// The sample graph through Apache Kafka into an S3 bucket is the sample graph through the embedded
// broker into a directory: the same graph, and the same embeddings to the last bit.
func TestRealRunEqualsEmbedded(t *testing.T) {
	config, p := realPlace(t, sampleConfig)
	files := []string{"--nodes", filepath.Join(here, "../sample/nodes.jsonl.gz"), "--edges",
		filepath.Join(here, "../sample/edges.jsonl.gz")}
	for i := 1; i < len(files); i += 2 {
		path, err := filepath.Abs(files[i])
		if err != nil {
			t.Fatal(err)
		}
		files[i] = path
	}
	succeed(t, append([]string{"run", "-c", config, "--until-idle"}, files...)...)

	dir := t.TempDir()
	embedded := writeFile(t, filepath.Join(dir, "embedded.yaml"), sampleConfig)
	succeed(t, append([]string{"run", "-c", embedded, "--store", dir, "--until-idle"}, files...)...)

	p.checkLog(t)
	got, want := p.outcome(t), readOutcome(t, dir)
	checkSame(t, got, want)
	if len(got.published) == 0 || len(got.published) != len(got.embeddings) {
		t.Errorf("%d embeddings published of %d", len(got.published), len(got.embeddings))
	}
	t.Logf("graph %s, %d embeddings", got.doc.GraphHash, len(got.published))

	// An aborted transaction changes nothing, but moves the end of the topic to its marker, where
	// there is no record: the next run comes to its end all the same, and finds nothing to do.
	abortTransaction(t, p)
	succeed(t, "run", "-c", config, "--until-idle")
	p.checkLog(t)
	checkSame(t, p.outcome(t), want)
}

// abortTransaction sends a text that is newer than all others in a transaction, and aborts it.
func abortTransaction(t *testing.T, p place) {
	t.Helper()
	nodes := p.topic("nodes")
	c, err := kgo.NewClient(kgo.SeedBrokers(p.client.Brokers()...), kgo.TransactionalID(nodes))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"net/http.Handler", "sync.WaitGroup", "io.Reader", "fmt.Stringer"} { // several partitions
		r := &kgo.Record{Topic: nodes, Key: []byte(id), Value: fmt.Appendf(nil, `{"id":%q,"text":"aborted"}`, id),
			Timestamp: time.Now()}
		if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

// Kills at random moments change nothing on Apache Kafka and S3 either; see
// TestKilledAtRandomMoments. GIANTSTREAM_SEED and GIANTSTREAM_KILLS work here, too.
func TestRealKilledAtRandomMoments(t *testing.T) {
	undisturbed, _ := realPlace(t, smallConfig)
	config, p := realPlace(t, smallConfig)
	kills := envNumber(t, "GIANTSTREAM_KILLS", 5)
	seed := envNumber(t, "GIANTSTREAM_SEED", uint64(time.Now().UnixNano()))
	t.Logf("GIANTSTREAM_SEED=%d", seed)
	random := mathrand.New(mathrand.NewPCG(seed, 3))

	a := newAuthor(3, 1000)
	histories := []history{a.beginning(), a.later()}
	embedded := writeFile(t, filepath.Join(t.TempDir(), "embedded.yaml"), smallConfig)
	dir := t.TempDir()
	done := uint64(0)
	for i, h := range histories {
		files := h.write(t, t.TempDir())
		run := func(config string, more ...string) []string {
			return slices.Concat([]string{"run", "-c", config, "--until-idle"}, more, files)
		}
		succeed(t, run(embedded, "--store", dir)...)
		first := start(t, run(undisturbed)...)
		if code := first.wait(nil, nil); code != 0 {
			t.Fatalf("undisturbed run %d: exit code %d\n%s", i, code, first.log())
		}
		ph := phase{timeline: first.timeline()}

		done += ph.kill(t, random, kills*uint64(i+1)/uint64(len(histories))-done, run(config)...)
	}
	p.checkLog(t)
	got, want := p.outcome(t), readOutcome(t, dir)
	checkGraph(t, got.rows, graphOf(histories...))
	checkSame(t, got, want)
	if done == 0 {
		t.Error("every kill came after the end of its run")
	}
}

// A running pipeline waits for a broker that is killed and comes back, after longer than any request waits: the run
// succeeds, with the same results.
func TestRealBrokerKilled(t *testing.T) {
	config, p := realPlace(t, smallConfig)
	broker := func(args ...string) {
		t.Helper()
		path := os.Getenv("GIANTSTREAM_REAL_KAFKA_SERVER")
		if path == "" {
			t.Skip("needs a broker that it may kill: make test-real")
		}
		if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", path, args, err, out)
		}
	}
	h := newAuthor(4, 3000).beginning()
	files := h.write(t, t.TempDir())
	dir := t.TempDir()
	embedded := writeFile(t, filepath.Join(dir, "embedded.yaml"), smallConfig)
	succeed(t, append([]string{"run", "-c", embedded, "--store", dir, "--until-idle"}, files...)...)

	succeed(t, append([]string{"backfill", "-c", config}, files...)...)
	proc := start(t, "run", "-c", config, "--until-idle")
	awaitManifests(t, p.store)
	broker("kill", "1")
	proc.await("the brokers do not answer")
	broker("start", "1")
	if c := proc.wait(nil, nil); c != 0 {
		t.Fatalf("exit code %d\n%s", c, proc.log())
	}
	p.checkLog(t)
	checkSame(t, p.outcome(t), readOutcome(t, dir))
}

// awaitManifests returns once the pipeline has committed something.
func awaitManifests(t *testing.T, store sink.Store) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, err := range store.List(t.Context(), "shards/", "") {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		<-tick.C
	}
}

// Two workers share the shards and the work. One is killed midway, and the other finishes its work.
func TestRealTwoWorkers(t *testing.T) {
	config, p := realPlace(t, smallConfig)
	second := writeFile(t, filepath.Join(t.TempDir(), "second.yaml"), otherState(t, config))
	h := newAuthor(5, 2000).beginning()
	files := h.write(t, t.TempDir())
	dir := t.TempDir()
	embedded := writeFile(t, filepath.Join(dir, "embedded.yaml"), smallConfig)
	succeed(t, append([]string{"run", "-c", embedded, "--store", dir, "--until-idle"}, files...)...)

	a := start(t, "run", "-c", config)
	killed := make(chan int, 1)
	stop := make(chan time.Time, 1)
	go func() { killed <- a.wait(os.Kill, func(string) <-chan time.Time { return stop }) }()
	// Until something was sent, a run until idle has nothing to wait for.
	succeed(t, append([]string{"backfill", "-c", config}, files...)...)
	b := start(t, "run", "-c", second, "--until-idle")
	ended := make(chan int, 1)
	go func() { ended <- b.wait(nil, nil) }()
	awaitManifests(t, p.store)
	stop <- time.Now()
	if code := <-killed; code != -1 {
		t.Fatalf("the first worker ended by itself: %d\n%s", code, a.log())
	}
	if code := <-ended; code != 0 {
		t.Fatalf("exit code %d\n%s", code, b.log())
	}
	succeed(t, "run", "-c", second, "--until-idle")
	p.checkLog(t)
	got, want := p.outcome(t), readOutcome(t, dir)
	checkGraph(t, got.rows, graphOf(h))
	sameMap(t, "newest row", got.rows, want.rows)
}

// otherState returns a configuration with a state directory of its own, as a worker on another
// machine has.
func otherState(t *testing.T, config string) string {
	t.Helper()
	data, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(data), "/state\"", "/state-2\"", 1)
}
