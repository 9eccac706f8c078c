package client

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/broker"
)

// embedded starts an embedded broker and returns its address.
func embedded(t *testing.T) []string {
	t.Helper()
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.Addrs()
}

func connected(t *testing.T, brokers []string) *Client {
	t.Helper()
	c, err := New(Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Another client creates a topic. The first time that this one asks for its offsets, it may know it only from
// Identify; the second time it has asked for the metadata again.
func TestATopicNewerThanTheMetadataIsKnownAtOnce(t *testing.T) {
	brokers := embedded(t)
	clients := [2]*Client{}
	for i := range clients {
		clients[i] = connected(t, brokers)
		if _, err := clients[i].topics(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := clients[1].EnsureTopics(t.Context(), TopicSpec{Name: "new", Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	ask := func() (map[string][]int64, error) {
		return clients[0].listOffsets(t.Context(), []string{"new"}, kafka.ReadUncommitted, kafka.LastOffset, lastOffset)
	}
	got, err := ask()
	if err != nil {
		got, err = ask()
	}
	if err != nil || len(got["new"]) != 2 {
		t.Errorf("asked again: offsets %v, %v", got, err)
	}
}

// A group hands out partitions that were added a moment ago. The reader of one waits for its metadata.
func TestAPartitionNewerThanTheMetadataIsRead(t *testing.T) {
	brokers := embedded(t)
	c := connected(t, brokers)
	if err := c.EnsureTopics(t.Context(), TopicSpec{Name: "grows", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.FirstOffsets(t.Context(), "grows"); err != nil {
		t.Fatal(err)
	}
	admin := &kafka.Client{Addr: kafka.TCP(brokers...)}
	res, err := admin.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: "grows", Count: 2}}})
	if err != nil || res.Errors["grows"] != nil {
		t.Fatal(err, res)
	}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	read := func(partition int) error {
		r := Reader{Client: c, Topic: "grows", Partition: partition, Offset: Oldest, Log: slog.New(slog.DiscardHandler)}
		return r.Run(ctx, func(context.Context, Fetched) error { done(); return nil })
	}
	if err := read(1); !errors.Is(err, context.Canceled) {
		t.Errorf("the partition that was added: %v", err)
	}
	ctx, done = context.WithCancel(t.Context())
	defer done()
	if err := read(2); !errors.Is(err, errNoPartition) {
		t.Errorf("a partition that is not there: %v", err)
	}
}

func TestATopicOfCopiesKeepsTimestamps(t *testing.T) {
	c := connected(t, embedded(t))
	if err := c.EnsureTopics(t.Context(), TopicSpec{Name: "copies", Partitions: 1, CreateTime: true}); err != nil {
		t.Fatal(err)
	}
	const name, ofTopic = "message.timestamp.type", 1
	res, err := c.kafka.DescribeConfigs(t.Context(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: "copies",
			ConfigNames: []string{name}}}})
	if err != nil {
		t.Fatal(err)
	}
	got := res.Resources[0].ConfigEntries
	if len(got) != 1 || got[0].ConfigValue != "CreateTime" || got[0].ConfigSource != ofTopic {
		t.Errorf("%s is %+v, want that the topic says CreateTime", name, got)
	}
}
