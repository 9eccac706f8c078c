package kafkatest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/ingest/client"

	"github.com/segmentio/kafka-go"
)

// Brokers returns the addresses in GIANTSTREAM_REAL_KAFKA, nil without any.
func Brokers() []string {
	if list := os.Getenv("GIANTSTREAM_REAL_KAFKA"); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// StartReal is Start for tests that mean nothing on the embedded broker; they are skipped without a
// real one.
func StartReal(t testing.TB, shards int) *Env {
	t.Helper()
	brokers := Brokers()
	if brokers == nil {
		t.Skip("needs Apache Kafka: make test-real")
	}
	return startReal(t, brokers, shards)
}

// startReal makes topics that nobody else has, and deletes them afterwards.
func startReal(t testing.TB, brokers []string, shards int) *Env {
	t.Helper()
	c, err := client.New(client.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	prefix := "test-" + strings.ToLower(rand.Text()[:8]) + "-"
	admin := kafka.Client{Addr: kafka.TCP(brokers...)}
	// The embedded broker takes large records; a real one takes 1 MiB unless told.
	create := &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: prefix + "nodes", NumPartitions: shards, ReplicationFactor: -1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"},
			{ConfigName: "max.message.bytes", ConfigValue: "67108864"}},
	}}}
	res, err := admin.CreateTopics(t.Context(), create)
	// A broker may close a connection that waits in the pool just as it is used.
	for attempt := 1; attempt < 3 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)); attempt++ {
		res, err = admin.CreateTopics(t.Context(), create)
	}
	if err == nil && !errors.Is(res.Errors[prefix+"nodes"], kafka.TopicAlreadyExists) { // nobody else's name
		err = res.Errors[prefix+"nodes"]
	}
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, c, shards, prefix)
	t.Cleanup(func() {
		e.deleteTopics(t)
		c.Close()
	})
	return e
}

func (e *Env) admin() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(e.Client.Brokers()...)}
}

func (e *Env) deleteTopics(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	names := []string{e.Topics.Nodes, e.Topics.Edges, e.Topics.Mirror, e.Topics.Embeddings, e.Topics.DeadLetters}
	res, err := e.admin().DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: names})
	if err == nil {
		err = errors.Join(slices.Collect(maps.Values(res.Errors))...)
	}
	if err != nil {
		t.Logf("topics %s* are left on the cluster: %v", e.prefix, err)
	}
}

// Configure sets configuration of a topic; brokers heed it a moment later.
func (e *Env) Configure(t testing.TB, topic string, entries map[string]string) {
	t.Helper()
	r := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kafka.ResourceTypeTopic,
		ResourceName: e.Topic(topic)}
	for name, value := range entries {
		r.Configs = append(r.Configs, kafka.IncrementalAlterConfigsRequestConfig{Name: name, Value: value,
			ConfigOperation: kafka.ConfigOperationSet})
	}
	res, err := e.admin().IncrementalAlterConfigs(t.Context(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{r}})
	if err == nil && len(res.Resources) > 0 {
		err = res.Resources[0].Error
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Server runs cmd/dev/kafka/server: "kill 1", "start 1".
func Server(t testing.TB, args ...string) {
	t.Helper()
	path := os.Getenv("GIANTSTREAM_REAL_KAFKA_SERVER")
	if path == "" {
		t.Skip("needs a broker that it may kill: make test-real")
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", path, args, err, out)
	}
}
