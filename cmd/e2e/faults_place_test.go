package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	nethttp "net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/e2e/internal/faults"
	"giantstream/cmd/e2e/internal/s3server"
	"giantstream/cmd/e2e/internal/trace"
	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/internal/freeport"
	"giantstream/sink/s3store"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// faultPlace is the surroundings of a pipeline, which fail: brokers and a store. The workers reach
// them through kafka, s3 and http only; the test itself goes past s3 and http.
type faultPlace struct {
	place
	pipeline string
	dir      string
	topics   ingest.Topics
	// connect is the part of the configuration that says where things are.
	connect string
	kafka   []*faults.Proxy
	s3      *faults.Proxy
	http    *faults.HTTP
	// trace sees every change that the workers make in the store.
	trace *trace.Recorder
	// direct maps the addresses that brokers advertise to the addresses behind the proxies.
	direct map[string]string
	// killBroker kills one of the brokers, and returns what starts it again.
	killBroker func(t *testing.T, n int) (back func())
	// patience is how long the pipeline may take to come to rest.
	patience time.Duration
	flags    string // of `make test-faults`
}

// startS3 serves S3 in this process, and returns the address.
func startS3(t *testing.T) (addr string) {
	t.Helper()
	addr = freeAddr(t)
	ctx, cancel := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- s3server.Serve(ctx, t.TempDir(), addr, "giantstream", func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("the S3 server has not started: %v", err)
	}
	return addr
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := freeport.Addr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// embeddedFaultPlace starts a broker for one run on the S3 server of all.
func embeddedFaultPlace(t *testing.T, s3 string, seed uint64) *faultPlace {
	t.Helper()
	listen := freeAddr(t)
	proxy := newProxy(t, "127.0.0.1:0", listen)
	b := faults.NewBroker(filepath.Join(t.TempDir(), "broker"), listen, proxy.Addr())
	startBroker := func() {
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	startBroker()
	t.Cleanup(func() { _ = b.Kill() })
	p := newFaultPlace(t, fmt.Sprintf("faults-%d", seed), []*faults.Proxy{proxy}, []string{listen},
		s3store.Options{Endpoint: "http://" + s3, PathStyle: true, Region: s3server.Region, AccessKey: s3server.AccessKey,
			SecretKey: s3server.SecretKey}, seed)
	p.killBroker = func(t *testing.T, _ int) func() {
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		return startBroker
	}
	p.patience = 3 * time.Minute
	return p
}

// realFaultPlace uses the servers that cmd/dev/test-real has started.
func realFaultPlace(t *testing.T, seed uint64) *faultPlace {
	t.Helper()
	env := func(name string) string { return os.Getenv("GIANTSTREAM_REAL_" + name) }
	// The brokers send their clients to these addresses, which have no listener yet.
	upstream, advertised := env("KAFKA_BEHIND_PROXY"), env("KAFKA_PROXY")
	server, s3 := env("KAFKA_SERVER"), env("S3")
	if upstream == "" || advertised == "" || server == "" || s3 == "" {
		t.Skip("needs Apache Kafka that it may kill and an S3 server: make test-real")
	}
	upstreams := strings.Split(upstream, ",")
	var proxies []*faults.Proxy
	for i, listen := range strings.Split(advertised, ",") {
		proxies = append(proxies, newProxy(t, listen, upstreams[i]))
	}
	name := fmt.Sprintf("faults-%d-%d", seed, time.Now().Unix())
	p := newFaultPlace(t, name, proxies, upstreams,
		s3store.Options{Endpoint: s3, PathStyle: true, Region: os.Getenv("AWS_REGION"),
			AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY")}, seed)
	broker := func(t *testing.T, args ...string) {
		if out, err := exec.Command(server, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", server, args, err, out)
		}
	}
	p.killBroker = func(t *testing.T, n int) func() {
		number := fmt.Sprint(1 + n%len(upstreams))
		broker(t, "kill", number)
		return func() { broker(t, "start", number) }
	}
	t.Cleanup(func() {
		admin := kafka.Client{Addr: kafka.TCP(p.client.Brokers()...)}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		res, err := admin.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: p.topicNames()})
		if err == nil {
			err = errors.Join(slices.Collect(maps.Values(res.Errors))...)
		}
		if err != nil {
			t.Logf("topics %s.* are left on the cluster: %v", name, err)
		}
	})
	p.patience = 3 * time.Minute
	p.flags = " REAL=1"
	return p
}

func newFaultPlace(t *testing.T, name string, proxies []*faults.Proxy, brokers []string, s3 s3store.Options,
	seed uint64) *faultPlace {
	t.Helper()
	store, err := s3store.Open(t.Context(), "giantstream", name, s3)
	if err != nil {
		t.Fatal(err)
	}
	http, err := faults.NewHTTP(t.Context(), strings.TrimPrefix(s3.Endpoint, "http://"), rand.New(rand.NewPCG(seed, 7)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = http.Close() })
	recorder := trace.NewRecorder(store)
	http.Watch(func(r *nethttp.Request, forward func()) {
		key, ok := strings.CutPrefix(r.URL.Path, "/giantstream/"+name+"/")
		if !ok || r.URL.Query().Has("uploads") || r.URL.Query().Has("partNumber") {
			forward() // no object is changed
			return
		}
		recorder.Change(r.Context(), key, forward)
	})
	topics := ingest.Topics{Nodes: name + ".nodes", Edges: name + ".edges", Mirror: name + ".mirror",
		Embeddings: name + ".embeddings", DeadLetters: name + ".dead-letters"}
	p := &faultPlace{
		place:    place{store: store, embeddings: topics.Embeddings, deadLetters: topics.DeadLetters},
		pipeline: name, dir: t.TempDir(), topics: topics, kafka: proxies, http: http, trace: recorder,
		s3: newProxy(t, "127.0.0.1:0", http.Addr()), direct: map[string]string{},
	}
	var addrs []string
	for i, proxy := range proxies {
		addrs = append(addrs, proxy.Addr())
		p.direct[proxy.Addr()] = brokers[i]
	}
	if p.client, err = client.New(client.Options{Brokers: addrs}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.Close)
	p.connect = fmt.Sprintf(`
pipeline: %[1]s
store: s3://giantstream/%[1]s
s3: {endpoint: "http://%[2]s", region: %[3]s, access_key: %[4]s, secret_key: %[5]s}
kafka:
  brokers: ["%[6]s"]
  session_timeout: %[7]v
  topics: {nodes: %[1]s.nodes, edges: %[1]s.edges, embeddings: %[1]s.embeddings}
`, name, p.s3.Addr(), s3.Region, s3.AccessKey, s3.SecretKey, strings.Join(addrs, `", "`), faultSession)
	return p
}

func newProxy(t *testing.T, listen, upstream string) *faults.Proxy {
	t.Helper()
	p, err := faults.NewProxy(listen, upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func (p *faultPlace) topicNames() []string {
	return []string{p.topics.Nodes, p.topics.Edges, p.topics.Mirror, p.topics.Embeddings, p.topics.DeadLetters}
}

// createTopics makes the topics, as the workers would.
func (r *faultRun) createTopics() {
	r.t.Helper()
	if r.directed {
		r.topics.Mirror = ""
	}
	if err := r.client.EnsureTopics(r.t.Context(), r.topics.Specs(r.shards)...); err != nil {
		r.t.Fatal(err)
	}
}

// producer returns a Kafka client that goes past the proxies and never gives up. What it sends may
// arrive twice, never in another order.
func (p *faultPlace) producer(t *testing.T) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(
		kgo.SeedBrokers(slices.Collect(maps.Values(p.direct))...),
		kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if direct, ok := p.direct[addr]; ok {
				addr = direct
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}),
		kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// generation returns the number of the current generation, 0 if there is none.
func (r *faultRun) generation() int64 {
	r.t.Helper()
	doc, err := generation.Current(r.t.Context(), r.store)
	if errors.Is(err, generation.ErrNone) {
		return 0
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return doc.Generation
}

// published reports whether all that is on the input topics is committed, and all that is committed
// published with the current generation.
func (r *faultRun) published() bool {
	r.t.Helper()
	heads := make([]*commitlog.Manifest, r.shards)
	for shard := range heads {
		head, err := commitlog.Head(r.t.Context(), r.store, shard)
		if err != nil {
			r.t.Fatal(err)
		}
		if head == nil {
			return false
		}
		heads[shard] = head
	}
	ends, err := r.client.EndOffsets(r.t.Context(), r.topics.Inputs()...)
	if err != nil {
		r.t.Fatal(err)
	}
	for topic, partitions := range ends {
		for shard, end := range partitions {
			if heads[shard].Next[topic] < end {
				return false
			}
		}
	}
	current := r.generation()
	for shard, head := range heads {
		at, err := commitlog.LoadPublished(r.t.Context(), r.store, shard)
		if err != nil {
			r.t.Fatal(err)
		}
		if current == 0 || at.Generation != current || at.Seq < head.Seq {
			return false
		}
	}
	return true
}
