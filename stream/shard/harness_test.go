package shard

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/commitlog/checkpoint"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

const (
	nodesTopic  = "nodes"
	edgesTopic  = "edges"
	pricesTopic = "prices" // attributes of nodes
	ordersTopic = "orders"
	viewsTopic  = "views" // edges of one kind
	mirrorTopic = "mirror"
)

// furtherTopics are those beside nodes and edges, in the order of their inputs.
var furtherTopics = []string{pricesTopic, ordersTopic, viewsTopic}

// statingTopics are those whose records state facts, in the order of their inputs.
var statingTopics = append([]string{nodesTopic, edgesTopic}, furtherTopics...)

// wide is a window that tests do not fill.
var wide = Window{Changes: 10_000, Bytes: 64 << 20, Time: 5 * time.Second}

func withChanges(n int) Window {
	w := wide
	w.Changes = n
	return w
}

// record is one record of a topic: mutations that share a version.
type record []mutation.Mutation

// broker is an in-memory stand-in for the input topics of all shards.
type broker struct {
	shards int
	logs   []map[string][]record // shard → topic → records
	// floor is the first offset that a topic still holds, by shard.
	floor []map[string]int64
	// fail, if set, is asked before every call.
	fail func(op string) error
}

func newBroker(shards int) *broker {
	b := &broker{shards: shards}
	for range shards {
		b.logs = append(b.logs, map[string][]record{})
		b.floor = append(b.floor, map[string]int64{})
	}
	return b
}

func (b *broker) shardOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32()) % b.shards
}

// send appends a record of one node to its topic and stamps the version.
func (b *broker) send(topic string, eventTime int64, r record) {
	log := b.logs[b.shardOf(r[0].ID)]
	for i := range r {
		r[i].Version = mutation.Version{EventTime: eventTime, Rank: uint8(inputOf(topic)), Offset: int64(len(log[topic]))}
	}
	log[topic] = append(log[topic], r)
}

// brokerMirror is the Mirror of one shard: it keeps what it gets until Flush.
type brokerMirror struct {
	b       *broker
	pending []mutation.Mutation
}

func (m *brokerMirror) Publish(_ context.Context, assertions []mutation.Mutation) error {
	if m.b.fail != nil {
		if err := m.b.fail("mirror publish"); err != nil {
			return err
		}
	}
	m.pending = append(m.pending, assertions...)
	return nil
}

func (m *brokerMirror) Flush(context.Context) error {
	if m.b.fail != nil {
		if err := m.b.fail("mirror flush"); err != nil {
			return err
		}
	}
	for _, a := range m.pending {
		log := m.b.logs[m.b.shardOf(a.ID)]
		log[mirrorTopic] = append(log[mirrorTopic], record{a})
	}
	m.pending = nil
	return nil
}

// logFeed reads the logs of one shard from given offsets in random batches.
type logFeed struct {
	b     *broker
	shard int
	pos   map[string]int64
	rng   *rand.Rand
	max   int // records per batch
	reads int
}

func (f *logFeed) Next(ctx context.Context, _ time.Duration) (mutation.Batch, error) {
	if err := ctx.Err(); err != nil {
		return mutation.Batch{}, err
	}
	f.reads++
	log := f.b.logs[f.shard]
	for topic, floor := range f.b.floor[f.shard] {
		if f.pos[topic] < floor {
			return mutation.Batch{},
				fmt.Errorf("%s is read from offset %d, it begins at %d", topic, f.pos[topic], floor)
		}
	}
	batch := mutation.Batch{Next: map[string]int64{}}
	for n := 1 + f.rng.IntN(f.max); n > 0; n-- {
		var waiting []string
		for _, topic := range append([]string{mirrorTopic}, statingTopics...) {
			if f.pos[topic] < int64(len(log[topic])) {
				waiting = append(waiting, topic)
			}
		}
		if len(waiting) == 0 {
			break
		}
		topic := waiting[f.rng.IntN(len(waiting))]
		r := log[topic][f.pos[topic]]
		batch.State(inputOf(topic), f.pos[topic], r...)
		f.pos[topic]++
		batch.Next[topic] = f.pos[topic]
		batch.Bytes += int64(100 * len(r))
	}
	batch.CaughtUp = f.caughtUp()
	return batch, nil
}

// inputOf is the input of a topic.
func inputOf(topic string) mutation.Input {
	return map[string]mutation.Input{nodesTopic: mutation.Nodes, edgesTopic: mutation.Edges,
		pricesTopic: mutation.Further, ordersTopic: mutation.Further + 1, viewsTopic: mutation.Further + 2,
		mirrorTopic: mutation.Mirror}[topic]
}

func (f *logFeed) caughtUp() bool {
	for topic, log := range f.b.logs[f.shard] {
		if f.pos[topic] < int64(len(log)) {
			return false
		}
	}
	return true
}

// pipeline runs all shards over one broker and one store, and reopens shards that fail.
type pipeline struct {
	t      testing.TB
	b      *broker
	store  *memstore.Store
	rng    *rand.Rand
	window Window
	batch  int
	disks  []*vfs.MemFS // of the machine that runs the shard
	other  []*vfs.MemFS // of the machine that ran it before
	lost   int          // how often a shard was reopened
	object int64
	cache  *Cache
	// checkpoints: now and then the state is copied to the store, and the topics drop the records
	// that are no longer needed.
	checkpoints bool
	keep        time.Duration // of orders
}

// windowLimits: windows are kept in memory until they are committed, or written batch by batch, or
// something between.
var windowLimits = []int64{windowMemoryBytes, 0, 4000}

func newPipeline(t testing.TB, b *broker, seed uint64) *pipeline {
	p := &pipeline{
		t: t, b: b, store: &memstore.Store{}, rng: rand.New(rand.NewPCG(seed, 1)),
		window: withChanges(7), batch: 5, object: 3, cache: NewCache(),
	}
	t.Cleanup(p.cache.Release)
	p.cache.window.limit = windowLimits[seed%uint64(len(windowLimits))]
	for range b.shards {
		p.disks = append(p.disks, vfs.NewCrashableMem())
		p.other = append(p.other, vfs.NewCrashableMem())
	}
	return p
}

func (p *pipeline) open(shard int) (*Shard, error) {
	return Open(context.Background(), p.options(shard))
}

func (p *pipeline) options(shard int) Options {
	return Options{
		Pipeline: "test", Shard: shard, Shards: p.b.shards,
		Dir: "state", fs: p.disks[shard], Store: p.store, Cache: p.cache,
		Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics, Mirror: mirrorTopic},
		Window: p.window, Mirror: &brokerMirror{b: p.b}, Writer: "test",
		KeepOrders: p.keep,
		maxRows:    p.object, backoff: time.Microsecond, transfers: 1,
		Clock: func() time.Time { return time.Unix(1, 0) },
	}
}

func (p *pipeline) feed(s *Shard) *logFeed {
	return &logFeed{b: p.b, shard: s.opts.Shard, pos: s.Next(), rng: p.rng, max: p.batch}
}

// crash drops a shard. Its process is killed (everything written survives), its machine loses power
// (unsynced writes may or may not have reached the disk), or the disk is lost. Then the shard may
// move to another machine, which has the state from when the shard was last there.
func (p *pipeline) crash(s *Shard, shard int) {
	p.lost++
	switch p.rng.IntN(5) {
	case 0:
		p.disks[shard] = vfs.NewCrashableMem()
	case 1:
		p.disks[shard] = p.disks[shard].CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.rng.IntN(101), RNG: p.rng})
	default:
		if s != nil && p.rng.IntN(3) > 0 {
			_ = s.state.sync() // the engine may have flushed in time
		}
		p.disks[shard] = p.disks[shard].CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: p.rng})
	}
	if p.rng.IntN(3) == 0 {
		p.disks[shard], p.other[shard] = p.other[shard], p.disks[shard]
	}
	if s != nil {
		_ = s.Close() // writes to a file system that is no longer read
	}
}

// sync makes what was written survive a loss of power.
func (s *state) sync() error { return s.db.Flush() }

// drain runs the shards in turn until every log is consumed and committed. Meanwhile it drops
// shards as often as crashes says.
func (p *pipeline) drain(crashes int) {
	p.t.Helper()
	ctx := context.Background()
	shards := make([]*Shard, p.b.shards)
	feeds := make([]*logFeed, p.b.shards)
	failures := 0
	for turn := 0; ; turn++ {
		if turn > 200_000 {
			p.t.Fatal("the pipeline does not come to rest")
		}
		i := p.rng.IntN(p.b.shards)
		if shards[i] == nil {
			s, err := p.open(i)
			if err != nil {
				if failures++; failures > 1000 {
					p.t.Fatalf("shard %d cannot be opened: %v", i, err)
				}
				p.crash(nil, i)
				continue
			}
			shards[i], feeds[i] = s, p.feed(s)
		}
		s := shards[i]
		batch, err := feeds[i].Next(ctx, 0)
		if err == nil {
			err = s.Apply(ctx, batch)
		}
		if err == nil && (batch.CaughtUp || crashes > 0 && p.rng.IntN(4) == 0 ||
			s.window.full(s.opts.Window)) {
			_, err = s.Commit(ctx)
		}
		if err != nil || crashes > 0 && p.rng.IntN(6) == 0 {
			crashes--
			p.crash(s, i)
			shards[i] = nil
			continue
		}
		if p.checkpoints && s.atHead() && s.checkpoints.done < s.headSeq() {
			p.checkpoint(s, i)
		}
		if p.idle(shards, feeds) {
			break
		}
	}
	for _, s := range shards {
		if err := s.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// checkOrders compares the newest rows of orders with what was sent.
func (p *pipeline) checkOrders() {
	p.t.Helper()
	ctx := context.Background()
	cut, err := commitlog.CurrentCut(ctx, p.store, p.b.shards)
	if err != nil {
		p.t.Fatal(err)
	}
	g := oracle.New(true)
	for _, m := range p.b.everything() {
		g.Add(m)
	}
	horizon, err := cut.OrderHorizon(ctx, p.store)
	if want := g.OrderHorizon(p.keep); err != nil || horizon != want {
		p.t.Fatalf("orders count after %d, %v, want %d", horizon, err, want)
	}
	var got []rows.Order
	orders, lines := 0, 0
	for shard := range p.b.shards {
		for row, err := range cut.Orders(ctx, p.store, shard, horizon) {
			if err != nil {
				p.t.Fatal(err)
			}
			if p.b.shardOf(row.OrderID) != shard {
				p.t.Fatalf("order %q is in shard %d", row.OrderID, shard)
			}
			got = append(got, row)
		}
		if head, err := commitlog.Head(ctx, p.store, shard); err != nil {
			p.t.Fatal(err)
		} else if head != nil {
			orders, lines = orders+int(head.Orders), lines+int(head.Lines)
		}
	}
	slices.SortFunc(got, func(a, b rows.Order) int { return strings.Compare(rows.Orders.Key(&a), rows.Orders.Key(&b)) })
	want := g.OrdersAfter(horizon)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want[i]) {
			p.t.Fatalf("%d rows of orders, want %d; number %d:\n got %+v\nwant %+v", len(got), len(want), i,
				got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
		}
		if !want[i].Deleted {
			orders, lines = orders-1, lines-len(want[i].Items)
		}
	}
	if orders < 0 || lines < 0 || horizon == 0 && orders+lines > 0 { // else they may count what has expired
		p.t.Errorf("manifests count %d orders and %d lines more than there are", orders, lines)
	}
}

// checkpoint copies a shard's state to the store, unless that fails, removes orphans, and lets the
// topics drop records below the newest checkpoint.
func (p *pipeline) checkpoint(s *Shard, shard int) {
	p.t.Helper()
	ctx := context.Background()
	if err := s.Checkpoint(ctx); err != nil && !errors.Is(err, errInjected) {
		p.t.Fatal(err)
	}
	if _, err := commitlog.NewOrphans(p.store, shard).Remove(ctx); err != nil && !errors.Is(err, errInjected) {
		p.t.Fatal(err)
	}
	newest, err := checkpoint.Newest(ctx, p.store, shard)
	if err != nil && !errors.Is(err, errInjected) {
		p.t.Fatal(err)
	}
	if newest != nil {
		for topic, offset := range newest.Applied {
			p.b.floor[shard][topic] = max(p.b.floor[shard][topic], offset)
		}
	}
}

func (p *pipeline) idle(shards []*Shard, feeds []*logFeed) bool {
	for i, s := range shards {
		if s == nil || !feeds[i].caughtUp() || s.advanced() || s.window.dirty > 0 {
			return false
		}
	}
	return true
}

// newest reads the newest rows of all shards from the commit log. Those of orders and of vectors it compares with what
// was sent.
func (p *pipeline) newest() map[string]rows.Row {
	p.t.Helper()
	p.checkOrders()
	p.checkVectors()
	ctx := context.Background()
	cut, err := commitlog.CurrentCut(ctx, p.store, p.b.shards)
	if err != nil {
		p.t.Fatal(err)
	}
	out := map[string]rows.Row{}
	for shard := range p.b.shards {
		last := ""
		for row, err := range cut.Newest(ctx, p.store, shard) {
			if err != nil {
				p.t.Fatal(err)
			}
			if row.NodeID <= last {
				p.t.Fatalf("shard %d: node %q comes after %q", shard, row.NodeID, last)
			}
			if p.b.shardOf(row.NodeID) != shard {
				p.t.Fatalf("node %q is in shard %d", row.NodeID, shard)
			}
			last = row.NodeID
			out[row.NodeID] = row.Row
		}
	}
	return out
}

// checkLog verifies what must hold of every commit log.
func (p *pipeline) checkLog() {
	p.t.Helper()
	ctx := context.Background()
	named := map[string]bool{}
	for shard := range p.b.shards {
		next := map[string]int64{}
		for m, err := range commitlog.Manifests(ctx, p.store, shard, 0) {
			if err != nil {
				p.t.Fatal(err)
			}
			for topic, offset := range next {
				if m.Next[topic] < offset {
					p.t.Errorf("shard %d, manifest %d: offset of %s goes back from %d to %d",
						shard, m.Seq, topic, offset,
						m.Next[topic])
				}
			}
			next = m.Next
			for topic, next := range m.Next {
				if c := m.Counted[topic]; c.From != 0 || c.Gap(next) != 0 {
					p.t.Errorf("shard %d, manifest %d: %s was consumed up to %d, and was counted as %+v",
						shard, m.Seq, topic, next, c)
				}
			}
			last := ""
			for _, o := range m.Objects {
				if o.Table != "" {
					continue
				}
				if named[o.Key] {
					p.t.Errorf("object %s is named twice", o.Key)
				}
				named[o.Key] = true
				n := int64(0)
				for row, err := range rows.Nodes.Read(ctx, p.store, o.Ref(), rows.ReadOptions{}) {
					if err != nil {
						p.t.Fatal(err)
					}
					if row.NodeID <= last {
						p.t.Errorf("%s: node %q comes after %q", o.Key, row.NodeID, last)
					}
					last = row.NodeID
					n++
				}
				if n != o.Rows || n > p.object {
					p.t.Errorf("%s has %d rows, manifest says %d", o.Key, n, o.Rows)
				}
			}
		}
		for topic, log := range p.b.logs[shard] {
			if next[topic] != int64(len(log)) {
				p.t.Errorf("shard %d: %s is committed up to %d of %d", shard, topic, next[topic], len(log))
			}
		}
	}
}

// everything returns all mutations sent, mirrors left out.
func (b *broker) everything() (all []mutation.Mutation) {
	for _, log := range b.logs {
		for _, topic := range statingTopics {
			for _, r := range log[topic] {
				all = append(all, r...)
			}
		}
	}
	return all
}

var errInjected = errors.New("injected failure")

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
