package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"
	"giantstream/ingest/internal/kafkatest"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
)

func TestOptions(t *testing.T) {
	for _, o := range []client.Options{
		{},
		{Brokers: []string{"localhost:1"}, SASL: &client.SASL{Mechanism: "GSSAPI", Password: "hunter2"}},
	} {
		if _, err := client.New(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", o.Brokers, err)
		}
	}
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		if _, err := client.New(client.Options{Brokers: []string{"localhost:1"},
			SASL: &client.SASL{Mechanism: m, Username: "u", Password: "p"}}); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

func TestSASL(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
			kfake.Superuser(mechanism, "u", "right"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		for password, ok := range map[string]bool{"right": true, "wrong": false} {
			c, err := client.New(client.Options{
				Brokers: cluster.ListenAddrs(),
				SASL:    &client.SASL{Mechanism: mechanism, Username: "u", Password: password},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			err = c.EnsureTopics(ctx, client.TopicSpec{Name: "nodes", Partitions: 1})
			_, cerr := c.Members(ctx, "g") // through franz-go
			cancel()
			if (err == nil) != ok || (cerr == nil) != ok {
				t.Errorf("%s with the %s password: %v, %v", mechanism, password, err, cerr)
			}
			c.Close()
		}
	}
}

func TestEnsureTopics(t *testing.T) {
	e := kafkatest.Start(t, 3)
	specs := []client.TopicSpec{{Name: e.Topics.Nodes, Partitions: 3}, {Name: e.Topic("new"), Partitions: 5},
		{Name: e.Topics.Embeddings, Partitions: 7, Flexible: true}}
	for range 2 { // the second time everything is there
		if err := e.Client.EnsureTopics(t.Context(), specs...); err != nil {
			t.Fatal(err)
		}
	}
	if end, err := e.Client.EndOffsets(t.Context(), e.Topic("new")); len(end[e.Topic("new")]) != 5 || err != nil {
		t.Errorf("new has the ends %v, %v; want 5 partitions", end, err)
	}
	err := e.Client.EnsureTopics(t.Context(), client.TopicSpec{Name: e.Topics.Nodes, Partitions: 4},
		client.TopicSpec{Name: e.Topics.Edges, Partitions: 2})
	if !errors.Is(err, client.ErrPartitions) || !strings.Contains(err.Error(), e.Topics.Nodes) ||
		!strings.Contains(err.Error(), e.Topics.Edges) {
		t.Errorf("wrong partitions: %v, want both topics named", err)
	}
	if _, err := e.Client.EndOffsets(t.Context(), "none"); !errors.Is(err, client.ErrNoTopic) {
		t.Errorf("no topic: %v", err)
	}
}

func TestOffsets(t *testing.T) {
	e := kafkatest.Start(t, 2)
	var msgs []kafka.Message
	for i := range 10 {
		msgs = append(msgs, kafka.Message{Topic: "nodes", Key: fmt.Append(nil, i)})
	}
	e.Send(t, msgs...)
	first, err := e.Client.FirstOffsets(t.Context(), e.Topics.Nodes, e.Topics.Edges)
	if err != nil {
		t.Fatal(err)
	}
	end, err := e.Client.EndOffsets(t.Context(), e.Topics.Nodes, e.Topics.Edges)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first[e.Topics.Nodes], []int64{0, 0}) ||
		end[e.Topics.Nodes][0]+end[e.Topics.Nodes][1] != 10 || !slices.Equal(end[e.Topics.Edges], []int64{0, 0}) {
		t.Errorf("first %v, end %v", first, end)
	}
}

func TestFetchTellsNullFromEmptyAndWhereTheTopicEnds(t *testing.T) {
	e := kafkatest.Start(t, 1)
	at := time.UnixMilli(1700000000123)
	e.Send(t,
		kafka.Message{Topic: "nodes", Key: []byte("k"), Time: at},
		kafka.Message{Topic: "nodes", Value: []byte{}, Headers: []kafka.Header{{Key: "h", Value: []byte("v")}}},
		kafka.Message{Topic: "nodes", Key: []byte{}, Value: []byte("v")})
	f, err := e.Client.Fetch(t.Context(), e.Topics.Nodes, 0, 0, 1<<20, time.Second)
	if err != nil || len(f.Records) != 3 || f.Next != 3 || f.HighWater != 3 {
		t.Fatalf("%+v, %v", f, err)
	}
	r := f.Records
	if r[0].Value != nil || !r[0].Time.Equal(at) || r[1].Key != nil || r[1].Value == nil ||
		string(r[1].Headers[0].Value) != "v" || r[2].Key == nil || string(r[2].Value) != "v" {
		t.Errorf("records %+v", r)
	}
	f, err = e.Client.Fetch(t.Context(), e.Topics.Nodes, 0, 2, 1<<20, time.Second)
	if err != nil || len(f.Records) != 1 || f.Records[0].Offset != 2 {
		t.Errorf("from the middle of a batch: %+v, %v", f, err)
	}
	f, err = e.Client.Fetch(t.Context(), e.Topics.Nodes, 0, 3, 1<<20, time.Millisecond)
	if err != nil || len(f.Records) != 0 || f.Next != 3 || f.HighWater != 3 {
		t.Errorf("at the end: %+v, %v", f, err)
	}
	if _, err = e.Client.Fetch(t.Context(), e.Topics.Nodes, 0, 4, 1<<20, time.Millisecond); !errors.Is(err,
		client.ErrOffsetOutOfRange) {
		t.Errorf("beyond the end: %v", err)
	}
}

func TestFlushReportsWhatFailed(t *testing.T) {
	e := kafkatest.Start(t, 1)
	p := e.Client.NewProducer()
	defer p.Close()
	err := p.Send(t.Context(), kafka.Message{Topic: "none", Key: []byte("k")})
	if err == nil {
		err = p.Flush(t.Context())
	}
	if !errors.Is(err, kafka.UnknownTopicOrPartition) || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("got %v", err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Errorf("the failure is reported twice: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Send(ctx, kafka.Message{Topic: e.Topics.Nodes, Key: []byte("k")}); err == nil {
		err = p.Flush(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled flush: %v", err)
		}
	}
}
