package client

import (
	"testing"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/broker"
)

// Another client creates a topic. The first time that this one asks for its offsets, it may know it only from
// Identify; the second time it has asked for the metadata again.
func TestATopicNewerThanTheMetadataIsKnownAtOnce(t *testing.T) {
	b, err := broker.Start(broker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	clients := [2]*Client{}
	for i := range clients {
		if clients[i], err = New(Options{Brokers: b.Addrs()}); err != nil {
			t.Fatal(err)
		}
		defer clients[i].Close()
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
