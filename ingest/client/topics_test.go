package client_test

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"giantstream/ingest/client"
)

// Another process has created the topic, and one of two brokers does not know it yet.
func TestTopicsAreKnownToEveryBroker(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(1, "new"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	var behind atomic.Int64 // answers of the second broker without the topic
	behind.Store(5)
	cluster.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := r.(*kmsg.MetadataRequest)
		for i := range req.Topics {
			if cluster.CurrentNode() == 1 && behind.Load() > 0 {
				req.Topics[i].Topic = kmsg.StringPtr("unheard-of")
				behind.Add(-1)
			}
		}
		return nil, nil, false
	})
	c, err := client.New(client.Options{Brokers: cluster.ListenAddrs()[:1]})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.EnsureTopics(t.Context(), client.TopicSpec{Name: "new", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	if n := behind.Load(); n > 0 {
		t.Errorf("a broker would say %d times more that there is no such topic", n)
	}
}
