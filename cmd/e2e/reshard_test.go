package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/dirstore"
	"giantstream/sink/embedding"
	"giantstream/sink/s3store"
)

// reshardConfig has generations that do not depend on those before them.
const reshardConfig = smallConfig + "refresh: {space: new}\n"

// A change of the number of shards that is killed again and again ends with the same graph, rows and
// embeddings, publishes nothing anew, and the pipeline goes on from there.
func TestReshardKilled(t *testing.T) {
	t.Parallel()
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
	before := writeFile(t, filepath.Join(dir, "before.yaml"), fmt.Sprintf(`
store: %[1]s/store
state_dir: %[1]s/state
kafka:
  brokers: [%[2]s]
  topics: {nodes: nodes, edges: edges, embeddings: embeddings}
`, dir, b.Addrs()[0])+reshardConfig)
	open := func(name string) sink.Store {
		store, err := dirstore.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	reshardKilled(t, &resharding{
		before: before, from: filepath.Join(dir, "store"), into: filepath.Join(dir, "store-after"),
		nodes: "nodes", edges: "edges",
		place: place{store: open("store"), client: c, embeddings: "embeddings", deadLetters: "test.dead-letters"},
		next:  open("store-after"),
	})
}

// The same on Apache Kafka and an S3 server.
func TestRealReshardKilled(t *testing.T) {
	before, p := realPlace(t, reshardConfig)
	bucket, name := os.Getenv("GIANTSTREAM_REAL_S3_BUCKET"), strings.TrimSuffix(p.embeddings, ".embeddings")
	next, err := s3store.Open(t.Context(), bucket, name+"-after",
		s3store.Options{Endpoint: os.Getenv("GIANTSTREAM_REAL_S3"), PathStyle: true})
	if err != nil {
		t.Fatal(err)
	}
	from := fmt.Sprintf("s3://%s/%s", bucket, name)
	reshardKilled(t, &resharding{before: before, from: from, into: from + "-after",
		nodes: name + ".nodes", edges: name + ".edges", place: p, next: next})
}

// resharding is a pipeline whose number of shards changes.
type resharding struct {
	place         // of before
	before        string
	from, into    string // stores, as the command line names them
	next          sink.Store
	nodes, edges  string // topics
	after, mirror string
}

func reshardKilled(t *testing.T, r *resharding) {
	if testing.Short() {
		t.Skip("runs and kills several processes")
	}
	seed := envNumber(t, "GIANTSTREAM_SEED", uint64(time.Now().UnixNano()))
	t.Logf("GIANTSTREAM_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 8))
	a := newAuthor(1, 600)
	beginning, later := a.beginning(), a.later()
	files := t.TempDir()
	succeed(t, append([]string{"run", "-c", r.before, "--until-idle"},
		beginning.write(t, filepath.Join(files, "0"))...)...)
	want := r.outcome(t)
	checkGraph(t, want.rows, graphOf(beginning))
	counted := r.counted(t, r.nodes, r.edges)

	const shards = 7
	r.grow(t, shards)
	r.configure(t, shards)
	kills := 0
	for attempt := range 8 {
		if r.killedReshard(t, random, 1+attempt*4) {
			kills++
		}
	}
	if kills < 3 {
		t.Errorf("only %d of 8 attempts were killed before their end", kills)
	}
	t.Logf("%d kills", kills)
	out := succeed(t, r.command()...)
	if !strings.Contains(out, want.doc.GraphHash) {
		t.Errorf("the command does not name the graph %s:\n%s", want.doc.GraphHash, out)
	}
	there := r.place
	there.store = r.next
	there.checkLog(t)
	if moved := there.counted(t, r.nodes, r.edges); moved != counted || counted.Applied == 0 {
		t.Errorf("the records were counted as %+v, and are as %+v now", counted, moved)
	}
	got := there.outcome(t)
	for _, o := range []outcome{got, want} {
		// Where a row stands in the commit logs differs.
		for _, records := range []map[string]embedding.Record{o.embeddings, o.published} {
			for id, e := range records {
				e.Shard = 0
				records[id] = e
			}
		}
	}
	checkSame(t, got, want)

	succeed(t, append([]string{"run", "-c", r.after, "--until-idle"}, later.write(t, filepath.Join(files, "1"))...)...)
	there.checkLog(t)
	checkGraph(t, there.outcome(t).rows, graphOf(beginning, later))
}

// grow adds partitions to the topics, as kafka-topics.sh --alter does.
func (r *resharding) grow(t *testing.T, partitions int32) {
	t.Helper()
	admin := kafka.Client{Addr: kafka.TCP(r.client.Brokers()...)}
	res, err := admin.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{
		{Name: r.nodes, Count: partitions}, {Name: r.edges, Count: partitions}}})
	if err == nil {
		err = errors.Join(res.Errors[r.nodes], res.Errors[r.edges])
	}
	if err != nil {
		t.Fatal(err)
	}
}

// configure writes the configuration of afterwards.
func (r *resharding) configure(t *testing.T, shards int) {
	t.Helper()
	text, err := os.ReadFile(r.before)
	if err != nil {
		t.Fatal(err)
	}
	r.mirror = r.nodes + "-mirror-after"
	after := strings.NewReplacer(
		"store: "+r.from+"\n", "store: "+r.into+"\n",
		"/state", "/state-after",
		"topics: {", "topics: {mirror: "+r.mirror+", ",
		"shards: 3", "shards: "+strconv.Itoa(shards)).Replace(string(text))
	r.after = writeFile(t, filepath.Join(t.TempDir(), "after.yaml"), after)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		admin := kafka.Client{Addr: kafka.TCP(r.client.Brokers()...)}
		if _, err := admin.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{r.mirror}}); err != nil {
			t.Logf("topic %s is left: %v", r.mirror, err)
		}
	})
}

func (r *resharding) command() []string {
	return []string{"reshard", "-c", r.after, "--from", r.from, "--shards", "7"}
}

// killedReshard kills the command some time after it has written a number of objects, and reports
// whether it had not ended by itself. What it had written does not count: it begins anew.
func (r *resharding) killedReshard(t *testing.T, random *rand.Rand, objects int) bool {
	t.Helper()
	before := r.written(t)
	cmd := command(t, r.command()...)
	var log workerLog
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var kill <-chan time.Time
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("reshard: %v\n%s", err, log.String())
			}
			return false
		case <-kill:
			_ = cmd.Process.Kill() // it may have just ended
			return <-ended != nil
		case <-tick.C:
			if now := r.written(t); kill == nil && (now < before || now >= objects) {
				kill = time.After(time.Duration(random.IntN(60)) * time.Millisecond)
			}
		}
	}
}

// written counts the objects in the store of afterwards.
func (r *resharding) written(t *testing.T) (n int) {
	t.Helper()
	for _, err := range r.next.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
