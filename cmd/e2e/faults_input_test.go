package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/ingest"
	"giantstream/ingest/client"
	"giantstream/ingest/decode"

	"github.com/twmb/franz-go/pkg/kgo"
)

// faultInput sends records of all kinds, and remembers them.
type faultInput struct {
	*author
	topics ingest.Topics
	shards int
	kafka  *kgo.Client
	nodes  int

	mu sync.Mutex
	// sent are all records acknowledged by the brokers, by sentKey.
	sent map[string]bool
	errs []error
	// acks are the acknowledged records that the lag meter has not taken yet.
	acks []ack
}

func newFaultInput(t *testing.T, p *faultPlace, plan faultPlan, random *rand.Rand) *faultInput {
	return &faultInput{author: &author{random, plan.nodes}, topics: p.topics, shards: plan.shards, nodes: plan.nodes,
		kafka: p.producer(t), sent: map[string]bool{}}
}

// sentKey identifies a record by what it says.
func sentKey(topic string, key, value []byte, at time.Time) string {
	return fmt.Sprintf("%s %d %q %q", topic, at.UnixMilli(), key, value)
}

// send sends records, spread over some time. They need not have arrived when it returns.
func (in *faultInput) send(t *testing.T, n int, over time.Duration) {
	t.Helper()
	const turns = 20
	pace := time.NewTicker(max(over/turns, 1))
	defer pace.Stop()
	for turn := range turns {
		for range n*(turn+1)/turns - n*turn/turns {
			in.one(t)
		}
		if over > 0 {
			<-pace.C
		}
	}
}

// one sends a record about something random. Event times are few and in no order: what comes later
// is often old news, or of the same time.
func (in *faultInput) one(t *testing.T) {
	t.Helper()
	i, at := in.IntN(in.nodes), epoch+in.Int64N(500)
	switch in.IntN(20) {
	case 0:
		in.record(t, in.topics.Nodes, in.id(i), nodeEvent{ID: in.id(i), At: at, Deleted: true})
	case 1:
		in.produce(&kgo.Record{Topic: in.topics.Nodes, Key: []byte(in.id(i)), Timestamp: time.Unix(at, 0)})
	case 2:
		in.bad(in.topics.Nodes, badNodes)
	case 3:
		in.bad(in.topics.Edges, badEdges)
	case 4:
		e := in.edge(i, at)
		e.Deleted = true
		in.record(t, in.topics.Edges, e.Src, e)
	case 5, 6, 7, 8, 9, 10, 11:
		in.record(t, in.topics.Nodes, in.id(i), in.put(i, at))
	default:
		e := in.edge(i, at)
		in.record(t, in.topics.Edges, e.Src, e)
	}
}

// lastWords sends a last record to every shard. Its row is committed after all others, so the
// worker that commits it has seen all records.
func (in *faultInput) lastWords(t *testing.T) {
	t.Helper()
	missing := map[int]bool{}
	for shard := range in.shards {
		missing[shard] = true
	}
	for i := 0; len(missing) > 0; i++ {
		if shard := client.Partition([]byte(in.id(i)), in.shards); missing[shard] {
			delete(missing, shard)
			in.record(t, in.topics.Nodes, in.id(i), in.put(i, epoch+1000))
		}
	}
}

func (in *faultInput) record(t *testing.T, topic, key string, event any) {
	t.Helper()
	value, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	in.produce(&kgo.Record{Topic: topic, Key: []byte(key), Value: value})
}

// statedID finds the id that a record is keyed by.
var statedID = regexp.MustCompile(`"(?:id|src)":"([^"]+)"`)

// bad sends a record that is bad as a whole. Records with a good part are left out, and so are
// records without an id, since they would take the id of the key.
func (in *faultInput) bad(topic string, lines []badLine) {
	line := lines[in.IntN(len(lines))]
	for line.code == decode.MissingID || line.code == decode.MissingSrc || strings.Contains(line.value, `["`) ||
		len(line.value) > 1000 {
		line = lines[in.IntN(len(lines))]
	}
	key := "bad" // and not another id than the value's, which is a fault of its own
	if ids := statedID.FindStringSubmatch(line.value); ids != nil {
		key = ids[1]
	}
	in.produce(&kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(line.value)})
}

func (in *faultInput) produce(r *kgo.Record) {
	r.Partition = int32(client.Partition(r.Key, in.shards))
	if r.Timestamp.IsZero() {
		r.Timestamp = time.Unix(epoch, 0) // no part of the run's outcome
	}
	in.kafka.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		in.mu.Lock()
		defer in.mu.Unlock()
		if err != nil {
			in.errs = append(in.errs, err)
			return
		}
		in.sent[sentKey(r.Topic, r.Key, r.Value, r.Timestamp)] = true
		in.acks = append(in.acks, ack{r.Topic, int(r.Partition), r.Offset, time.Now()})
	})
}

// flush waits until everything is acknowledged.
func (in *faultInput) flush(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	if err := in.kafka.Flush(ctx); err != nil {
		t.Fatalf("the input has not arrived at the brokers: %v", err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, err := range in.errs {
		t.Fatalf("the brokers refuse the input: %v", err)
	}
}
