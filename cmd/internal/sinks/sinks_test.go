package sinks_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"

	"giantstream/cmd/internal/sinks"
	"giantstream/config"
	"giantstream/ingest/broker"
	"giantstream/ingest/client"
	"giantstream/ingest/embeddingtopic"
	"giantstream/internal/retry"
	"giantstream/sink/embedding"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/pgvector/pgserver"
	"giantstream/sink/vectordb/vectordbtest"
)

// world is a broker and a database.
type world struct {
	client *client.Client
	server *pgserver.Server
}

func newWorld(t *testing.T) *world {
	w := &world{server: pgserver.Start(t)}
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if w.client, err = client.New(client.Options{Brokers: b.Addrs()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	return w
}

// pipeline is a topic, and a sink that follows it.
type pipeline struct {
	*world
	cfg   *config.Config
	topic *vectordbtest.Topic
	sent  []int // of each partition
	db    *pgx.Conn
	log   io.Writer // of the sinks
}

func (w *world) pipeline(t *testing.T, name string, rnd *rand.Rand, control bool) *pipeline {
	t.Helper()
	cfg := config.Default()
	cfg.Kafka.Topics.Embeddings = name
	url := w.server.Database(t)
	for _, a := range vectordbtest.Attributes {
		cfg.Ingest.Nodes.Attributes = append(cfg.Ingest.Nodes.Attributes, a.Name+":"+string(a.Type))
		cfg.Sinks.Attributes = append(cfg.Sinks.Attributes, a.Name)
	}
	cfg.Sinks.PGVector.URL = config.Secret(url)
	cfg.Sinks.Name, cfg.Sinks.Batch, cfg.HTTP.Listen = "items", 1+rnd.IntN(40), ""
	partitions := 1 + rnd.IntN(4)
	err := w.client.EnsureTopics(t.Context(), client.TopicSpec{Name: name, Partitions: partitions, Compacted: true})
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	return &pipeline{world: w, cfg: &cfg, db: db, log: t.Output(), sent: make([]int, partitions),
		topic: vectordbtest.NewTopic(rnd, partitions, control, func(key string) int {
			return client.Partition([]byte(key), partitions)
		})}
}

// publish sends what the topic has grown by.
func (p *pipeline) publish(t *testing.T, format embeddingtopic.Format) {
	t.Helper()
	plain := p.client.NewProducer()
	defer plain.Close()
	for partition, records := range p.topic.Records {
		for _, r := range records[p.sent[partition]:] {
			m, err := format.Encode(r.Record)
			if r.Completion != nil {
				m, err = embeddingtopic.EncodeCompletion(*r.Completion)
			} else if r.OfAttributes {
				m, err = embeddingtopic.EncodeAttributes(embedding.Attributes{NodeID: r.NodeID,
					Attributes: vectordbtest.Object(r.Values)})
			}
			if err == nil {
				m.Topic, m.WriterData = p.cfg.Kafka.Topics.Embeddings, client.ToPartition(partition)
				err = plain.Send(t.Context(), m)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p.sent[partition] = len(records)
	}
	if err := plain.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// run follows until ctx ends, or with caughtUp until all is there.
func (p *pipeline) run(ctx context.Context, caughtUp bool) error {
	kind, err := sinks.Find("pgvector")
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(p.log, nil))
	index, err := kind.Open(p.cfg, log)
	if err != nil {
		return err
	}
	defer index.Close()
	return sinks.Run(ctx, sinks.Options{Config: p.cfg, Index: index, Client: p.client, UntilCaughtUp: caughtUp,
		Every: 5 * time.Millisecond, Log: log})
}

// rows is what readers see.
func (p *pipeline) rows(t *testing.T) map[string]vectordbtest.Seen {
	t.Helper()
	return pgserver.Rows(t, p.db, "items")
}

// target shows what a topic holds.
var target = vectordbtest.Target{Vectorless: true, Attributes: true}

// cutOff ends all connections of sinks to the database, whatever they are at.
func (p *pipeline) cutOff(t *testing.T) {
	t.Helper()
	_, err := p.db.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'giantstream sink%'`)
	if err != nil {
		t.Fatal(err)
	}
}

// TestFollowsTheTopic: processes that are stopped at any moment, that run two at a time and lose their connections,
// while the topic grows, changes its generation and repeats itself, leave in PostgreSQL what the topic holds.
func TestFollowsTheTopic(t *testing.T) {
	w := newWorld(t)
	for seed := range vectordbtest.Seeds() {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { follow(t, w, seed) })
	}
}

func follow(t *testing.T, w *world, seed int) {
	rnd := rand.New(rand.NewPCG(uint64(seed), 7))
	control := seed%2 == 0
	p := w.pipeline(t, "embeddings"+strconv.Itoa(seed), rnd, control)
	format := []embeddingtopic.Format{embeddingtopic.JSON, embeddingtopic.Binary}[rnd.IntN(2)]
	ctx, stop := context.WithCancel(t.Context())
	var running []chan error
	for range 3 + rnd.IntN(4) {
		for range 1 + rnd.IntN(10) {
			p.topic.Grow()
		}
		p.publish(t, format)
		if rnd.IntN(2) == 0 { // the one before may run on
			stop()
			ctx, stop = context.WithCancel(t.Context())
		}
		ended := make(chan error, 1)
		running = append(running, ended)
		go func(ctx context.Context) { ended <- p.run(ctx, false) }(ctx)
		for range rnd.IntN(10) {
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
			if mixed := vectordbtest.Mixed(p.rows(t)); mixed != "" {
				t.Fatal(mixed)
			}
			if rnd.IntN(3) == 0 {
				p.cutOff(t)
			}
		}
	}
	p.topic.Settle()
	p.publish(t, format)
	stop()
	for _, ended := range running {
		if err := <-ended; err != nil && !errors.Is(err, vectordb.ErrTakenOver) {
			t.Fatal(err)
		}
	}
	ctx, stop = context.WithTimeout(t.Context(), time.Minute)
	err := p.run(ctx, true)
	if err != nil || ctx.Err() != nil {
		t.Fatalf("it does not catch up: %v", errors.Join(err, ctx.Err()))
	}
	stop()
	want, _ := p.topic.Compacted(target)
	if diff := vectordbtest.Differ(p.rows(t), want); diff != "" {
		t.Fatalf("PostgreSQL does not hold the topic:\n%s", diff)
	}
}

// TestWaitsForTheTopic: a sink may start before the pipeline, which creates the topic, unless it is to end by itself.
func TestWaitsForTheTopic(t *testing.T) {
	w := newWorld(t)
	p := w.pipeline(t, "other", rand.New(rand.NewPCG(1, 1)), true)
	p.cfg.Kafka.Topics.Embeddings = "embeddings"
	if err := p.run(t.Context(), true); !errors.Is(err, client.ErrNoTopic) {
		t.Errorf("a sink that is to catch up with no topic: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	read, write := io.Pipe()
	p.log = write
	ended := make(chan error, 1)
	go func() {
		ended <- p.run(ctx, false)
		write.Close() //nolint:errcheck // it never fails
	}()
	followed := false
	for lines := bufio.NewScanner(read); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.Contains(line, "waiting for the topic"):
			err := w.client.EnsureTopics(ctx, client.TopicSpec{Name: "embeddings", Partitions: 2, Compacted: true})
			if err != nil {
				t.Fatal(err)
			}
		case strings.Contains(line, "the sink follows the topic"):
			followed = true
			stop()
		}
	}
	if err := <-ended; err != nil || !followed {
		t.Errorf("followed: %v, %v", followed, err)
	}
}

// TestFollowsATopicThatIsCreatedAgain: a sink that runs reads a topic that was created again from its beginning into a
// new table, whether the topic is shorter than what was read of the one before, or longer.
func TestFollowsATopicThatIsCreatedAgain(t *testing.T) {
	w := newWorld(t)
	for name, grows := range map[string][2]int{"shorter": {12, 1}, "longer": {1, 12}} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(3, 3))
			p := w.pipeline(t, name, rnd, true)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- p.run(ctx, false) }()
			for round, n := range grows {
				if round > 0 {
					w.recreate(t, name, len(p.sent))
					p.sent = make([]int, len(p.sent))
					p.topic = vectordbtest.NewTopic(rnd, len(p.sent), true, func(key string) int {
						return client.Partition([]byte(key), len(p.sent))
					})
				}
				for range n {
					p.topic.Grow()
				}
				p.topic.Settle()
				p.publish(t, embeddingtopic.JSON)
				want, _ := p.topic.Compacted(target)
				diff := "nothing"
				err := retry.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
					diff = vectordbtest.Differ(p.rows(t), want)
					return diff == "" || len(ended) > 0, nil
				})
				if diff != "" {
					t.Fatalf("topic %d is not in PostgreSQL: %v\n%s", round, err, diff)
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// recreate deletes a topic and creates it again.
func (w *world) recreate(t *testing.T, name string, partitions int) {
	t.Helper()
	admin := &kafka.Client{Addr: kafka.TCP(w.client.Brokers()...)}
	if _, err := admin.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{name}}); err != nil {
		t.Fatal(err)
	}
	// The client keeps for some seconds what it knows of topics, and would create none that it takes to be there.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := retry.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		_, err := w.client.EndOffsets(ctx, name)
		if errors.Is(err, client.ErrNoTopic) {
			return true, nil
		}
		return false, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.EnsureTopics(ctx, client.TopicSpec{Name: name, Partitions: partitions,
		Compacted: true}); err != nil {
		t.Fatal(err)
	}
}

// TestMalformed: a record that is no embedding stops the sink with its place, or is left out, and nothing else is.
func TestMalformed(t *testing.T) {
	w := newWorld(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	p := w.pipeline(t, "embeddings", rnd, false)
	p.topic.Grow()
	p.topic.Settle()
	p.publish(t, embeddingtopic.JSON)
	plain := p.client.NewProducer()
	for _, m := range []kafka.Message{
		{Key: []byte("broken"), Value: []byte(`{"node_id":"broken"`)},
		{Key: []byte("zero\x00"), Value: []byte(`{"node_id":"zero\u0000","generation":1,"dim":1,"embedding":[1],` +
			`"event_time":1,"shard":0,"seq":1}`)},
		{Key: []byte("late"), Value: []byte(`{"node_id":"late","generation":1,"dim":5,"embedding":[1,1,1,1,1],` +
			`"event_time":9223372036854775807,"shard":0,"seq":1}`)},
		{Key: []byte("n1000"), Value: []byte(`{"node_id":"n1000","generation":1,"dim":5,"embedding":[1,2,3,4,5],` +
			`"event_time":1,"shard":0,"seq":9}`)},
	} {
		m.Topic = "embeddings"
		if err := errors.Join(plain.Send(t.Context(), m), plain.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	plain.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.run(ctx, true); err == nil || !strings.Contains(err.Error(), "offset") ||
		!strings.Contains(err.Error(), "sinks.malformed: skip") {
		t.Errorf("a malformed record: %v", err)
	}
	p.cfg.Sinks.Malformed = config.MalformedSkip
	if err := p.run(ctx, true); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	want, _ := p.topic.Compacted(target)
	want["n1000"] = vectordbtest.Seen{Vector: "[1,2,3,4,5]", Generation: 1, Seq: 9}
	if diff := vectordbtest.Differ(p.rows(t), want); diff != "" {
		t.Error(diff)
	}
}
