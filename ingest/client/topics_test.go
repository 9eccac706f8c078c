package client_test

import (
	"net"
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

// The first connection of each of the two Kafka clients is taken and never answered, as a frozen broker's is; the next
// one stands for a broker that lives.
func TestTopicsAreAskedForAgainWhereABrokerIsFrozen(t *testing.T) {
	t.Parallel() // it waits for two timeouts
	var taken atomic.Int64
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "known"),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
			return &freezing{Listener: l, taken: &taken}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c, err := client.New(client.Options{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.EnsureTopics(t.Context(), client.TopicSpec{Name: "known", Partitions: 1}); err != nil {
		t.Error(err)
	}
	if n := taken.Load(); n < 4 {
		t.Errorf("%d connections, want two that are answered after two that are not", n)
	}
}

// freezing takes connections, and hands every other one on.
type freezing struct {
	net.Listener
	taken *atomic.Int64
}

func (f *freezing) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil || f.taken.Add(1)%2 == 0 {
			return conn, err
		}
	}
}
