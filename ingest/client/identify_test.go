package client_test

import (
	"errors"
	"testing"

	"giantstream/ingest/client"
	"giantstream/ingest/internal/kafkatest"

	"github.com/segmentio/kafka-go"
)

func TestATopicThatIsCreatedAgainHasAnotherIdentity(t *testing.T) {
	e := kafkatest.Start(t, 2)
	nodes, edges := e.Topics.Nodes, e.Topics.Edges
	before, err := e.Client.Identify(t.Context(), nodes, edges)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Client.Identify(t.Context(), nodes, edges)
	if err != nil {
		t.Fatal(err)
	}
	if before[nodes] != again[nodes] || before[nodes].ID == "" || before[nodes].Partitions != 2 {
		t.Errorf("the same topic is %+v, then %+v", before[nodes], again[nodes])
	}
	k := kafka.Client{Addr: kafka.TCP(e.Client.Brokers()...)}
	if _, err := k.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{nodes}}); err != nil {
		t.Fatal(err)
	}
	// Brokers learn of what the controller has done a moment after its answer.
	eventually(t, "the deleted topic is gone", func() bool {
		_, err := e.Client.Identify(t.Context(), nodes, edges)
		return errors.Is(err, client.ErrNoTopic)
	})
	if _, err := k.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: nodes, NumPartitions: 3, ReplicationFactor: 1}}}); err != nil {
		t.Fatal(err)
	}
	var after map[string]client.TopicIdentity
	eventually(t, "the topic is there again", func() bool {
		after, err = e.Client.Identify(t.Context(), nodes, edges)
		return !errors.Is(err, client.ErrNoTopic)
	})
	if err != nil {
		t.Fatal(err)
	}
	if after[nodes].ID == before[nodes].ID || after[nodes].Partitions != 3 || after[edges] != before[edges] {
		t.Errorf("after one topic was created again: %+v, before: %+v", after, before)
	}
}
