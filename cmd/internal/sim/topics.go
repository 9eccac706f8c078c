package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"sync"
	"time"

	"giantstream/stream/mutation"
)

// Input topics, as in mutation.Batch.Next.
const (
	nodesTopic  = "nodes"
	edgesTopic  = "edges"
	pricesTopic = "prices" // attributes of nodes
	ordersTopic = "orders"
	viewsTopic  = "views" // edges of one kind
	mirrorTopic = "mirror"
)

// inputs are those of the topics.
var inputs = map[string]mutation.Input{nodesTopic: mutation.Nodes, edgesTopic: mutation.Edges,
	pricesTopic: mutation.Further, ordersTopic: mutation.Further + 1,
	viewsTopic: mutation.Further + 2, mirrorTopic: mutation.Mirror}

// furtherTopics are those beside nodes and edges, in the order of their inputs.
var furtherTopics = []string{pricesTopic, ordersTopic, viewsTopic}

// allTopics are the names of inputs, in their order.
var allTopics = []string{nodesTopic, edgesTopic, pricesTopic, ordersTopic, viewsTopic, mirrorTopic}

// errTruncated: a feed stands at a record that the topic no longer holds.
var errTruncated = errors.New("the topic no longer holds the records wanted")

// record is one record of a topic: mutations that share a version.
type record []mutation.Mutation

// topics are the input topics of all shards. Partitions are numbered like shards.
type topics struct {
	mu sync.Mutex
	// logs holds all records ever sent, by shard and topic; floor the first offset that readers still get.
	logs  []map[string][]record
	floor []map[string]int64
	// changed is closed, and replaced, when a record comes.
	changed chan struct{}
}

func newTopics(shards int) *topics {
	t := &topics{changed: make(chan struct{})}
	for range shards {
		t.logs = append(t.logs, map[string][]record{})
		t.floor = append(t.floor, map[string]int64{})
	}
	return t
}

func (t *topics) shardOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % uint32(len(t.logs)))
}

// send appends a record of one node and stamps its version.
func (t *topics) send(topic string, eventTime int64, r record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log := t.logs[t.shardOf(r[0].ID)]
	for i := range r {
		r[i].Version = mutation.Version{EventTime: eventTime, Rank: uint8(inputs[topic]),
			Offset: int64(len(log[topic]))}
	}
	log[topic] = append(log[topic], r)
	t.wake()
}

// mirror appends mirrored assertions.
func (t *topics) mirror(assertions []mutation.Mutation) {
	if len(assertions) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range assertions {
		log := t.logs[t.shardOf(m.ID)]
		log[mirrorTopic] = append(log[mirrorTopic], record{m})
	}
	t.wake()
}

func (t *topics) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// ends returns the end offsets of a shard's partitions.
func (t *topics) ends(shard int) map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	ends := map[string]int64{}
	for topic, log := range t.logs[shard] {
		ends[topic] = int64(len(log))
	}
	return ends
}

// below returns the mutations of a shard's records below offsets; nil means all.
func (t *topics) below(shard int, next map[string]int64) (all []mutation.Mutation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range allTopics {
		log := t.logs[shard][topic]
		if next != nil {
			log = log[:min(int64(len(log)), next[topic])]
		}
		for _, r := range log {
			all = append(all, r...)
		}
	}
	return all
}

// retain drops the records of a shard below offsets.
func (t *topics) retain(shard int, from map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for topic, offset := range from {
		t.floor[shard][topic] = max(t.floor[shard][topic], offset)
	}
}

// feed reads the partitions of one shard. It implements shard.Feed.
type feed struct {
	actor *actor
	shard int
	next  map[string]int64
	reads int
	most  int // records in a batch
}

// settle is the time between a record's arrival and a waiting reader's next look.
const settle = 2 * time.Millisecond

// Next implements shard.Feed.
func (f *feed) Next(ctx context.Context, wait time.Duration) (mutation.Batch, error) {
	t := f.actor.process.world.topics
	deadline := time.Now().Add(wait)
	for {
		if err := f.fetch(ctx); err != nil {
			return mutation.Batch{}, err
		}
		t.mu.Lock()
		batch, err := f.take(t)
		changed := t.changed
		t.mu.Unlock()
		left := time.Until(deadline)
		if err != nil || len(batch.Next) > 0 || left <= 0 {
			return batch, err
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return batch, ctx.Err()
		case <-changed:
			deadline = time.Now().Add(settle) // the batch is what comes within this time, in one more look
		case <-timer.C:
		}
		timer.Stop()
	}
}

// fetchAttempts is how often the client tries before it gives up.
const fetchAttempts = 4

func (f *feed) fetch(ctx context.Context) (err error) {
	for range fetchAttempts {
		if _, err = f.actor.begin(ctx, "fetch", strconv.Itoa(f.shard)); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// take needs t.mu held. Records of one topic come in order, the topics interleave.
func (f *feed) take(t *topics) (mutation.Batch, error) {
	for topic, floor := range t.floor[f.shard] {
		if f.next[topic] < floor {
			return mutation.Batch{}, fmt.Errorf("%w: %s is read from offset %d, it begins at %d", errTruncated, topic,
				f.next[topic], floor)
		}
	}
	f.reads++
	r := f.actor.process.world.dice.randFor("batch", f.actor.name, strconv.Itoa(f.reads))
	log := t.logs[f.shard]
	batch := mutation.Batch{Next: map[string]int64{}}
	for n := 1 + r.IntN(f.most); ; n-- {
		var waiting []string
		for _, topic := range allTopics {
			if f.next[topic] < int64(len(log[topic])) {
				waiting = append(waiting, topic)
			}
		}
		if batch.CaughtUp = len(waiting) == 0; batch.CaughtUp || n == 0 {
			return batch, nil
		}
		topic := waiting[r.IntN(len(waiting))]
		record := log[topic][f.next[topic]]
		batch.State(inputs[topic], f.next[topic], record...)
		f.next[topic]++
		batch.Next[topic] = f.next[topic]
		batch.Bytes += int64(100 * len(record))
	}
}

// mirror is the producer of mirror records of one opening of a shard. It implements shard.Mirror. Kafka does not fence
// it, and it may repeat and reorder what it sends.
type mirror struct {
	actor  *actor
	queued []mutation.Mutation
	calls  int
}

// Publish implements shard.Mirror.
func (m *mirror) Publish(ctx context.Context, assertions []mutation.Mutation) error {
	m.queued = append(m.queued, assertions...)
	if _, err := m.actor.begin(ctx, "mirror publish", ""); err != nil {
		return err
	}
	m.deliver(false)
	return m.actor.end(ctx, "mirror publish", "")
}

// Flush implements shard.Mirror.
func (m *mirror) Flush(ctx context.Context) error {
	fate, err := m.actor.begin(ctx, "mirror flush", "")
	if err != nil {
		if fate == dropped {
			m.deliver(false) // some of it may arrive
		}
		return err
	}
	m.deliver(true)
	return m.actor.end(ctx, "mirror flush", "")
}

// deliver sends some or all of what is queued.
func (m *mirror) deliver(all bool) {
	m.calls++
	w := m.actor.process.world
	r := w.dice.randFor("mirror", m.actor.name, strconv.Itoa(m.calls))
	n := len(m.queued)
	if !all {
		n = r.IntN(n + 1)
	}
	out := append([]mutation.Mutation(nil), m.queued[:n]...)
	m.queued = m.queued[n:]
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	if len(out) > 0 && oneIn(r, 4) {
		out = append(out, out[r.IntN(len(out))])
	}
	w.topics.mirror(out)
}

// covered reports whether the offsets reach the ends.
func covered(next, ends map[string]int64) bool {
	for topic, end := range maps.All(ends) {
		if next[topic] < end {
			return false
		}
	}
	return true
}
