package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// Generations are tried on a second topic, promoted, withdrawn (some of them halfway) and pinned, while nodes change
// and the publishing processes are killed. A consumer follows the control records from the first record on. At any
// time it answers from one generation, and it loses no node and sees no node go back in time. In the end it has what
// the pipeline serves. So has a consumer of the second topic.
//
// GIANTSTREAM_SEED is the first seed, GIANTSTREAM_CANARY_RUNS how many there are.
func TestCanaryUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("several generations in several processes")
	}
	s3 := startS3(t)
	eachSeed(t, "GIANTSTREAM_CANARY_RUNS", 1, func(t *testing.T, seed uint64) {
		runCanary(t, embeddedFaultPlace(t, s3, seed), seed)
	})
}

// The same on Apache Kafka and an S3 server in processes of their own.
func TestRealCanaryUnderLoad(t *testing.T) {
	eachSeed(t, "GIANTSTREAM_CANARY_RUNS", 1, func(t *testing.T, seed uint64) {
		runCanary(t, realFaultPlace(t, seed), seed)
	})
}

// canarySettings give a shard more nodes than the follower publishes at a time, and a generation every few seconds.
const canarySettings = `
shards: 3
window: {changes: 150, time: 200ms}
ingest:
  nodes: {event_time: at}
  edges: {event_time: at}
refresh: {min_nodes: 3600, min_changes: 400, keep: 5}
sink: {format: binary, control_records: true, canary_topic: %q}
` + smallGenerations

// canaryRun is a run under way.
type canaryRun struct {
	*faultRun
	random *rand.Rand
	reader *reader
	// next reads the canary topic.
	next     *reader
	promoted map[int64]bool
	kills    int
}

func runCanary(t *testing.T, p *faultPlace, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 8))
	p.topics.Canary = p.pipeline + ".next"
	c := &canaryRun{random: random, promoted: map[int64]bool{1: true}}
	c.faultRun = newFaultRun(t, p, faultPlan{workers: 2, shards: 3, nodes: 3600})
	for _, w := range c.crew {
		writeFile(t, w.config, p.connect+fmt.Sprintf(canarySettings, p.topics.Canary)+
			fmt.Sprintf("state_dir: %q\n", filepath.ToSlash(w.state)))
	}
	c.input = newFaultInput(t, p, c.faultPlan, rand.New(rand.NewPCG(seed, 9)))
	for i := range c.nodes {
		c.input.record(t, c.topics.Nodes, c.input.id(i), c.input.put(i, epoch))
		e := c.input.edge(i, epoch)
		c.input.record(t, c.topics.Edges, e.Src, e)
	}
	c.input.flush(t)

	c.reader = newReader(p.client, p.embeddings, c.shards)
	c.next = newReader(p.client, p.topics.Canary, c.shards)
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	c.supervise()
	for _, r := range c.readers() {
		c.until("readers of "+r.topic+" see a generation", func() bool {
			if err := r.catchUp(ctx); err != nil {
				t.Fatal(err)
			}
			return r.visible > 0
		})
		beside.Go(func() { r.follow(ctx) })
	}
	changing, settled := context.WithCancel(ctx)
	var changes sync.WaitGroup
	changes.Go(func() { c.change(changing) })
	for range 4 {
		c.round()
	}
	settled()
	changes.Wait()
	c.finish()
	stop()
	beside.Wait()
	c.check()
	for _, r := range c.readers() {
		t.Logf("%s: %d records, %d switches of the generation, %d kills; generation %d", r.topic, r.records, r.switches,
			c.kills, r.visible)
	}
}

// readers are those of the topics that embeddings are published to.
func (c *canaryRun) readers() []*reader { return []*reader{c.reader, c.next} }

// change changes nodes and links until ctx ends. Each change is news.
func (c *canaryRun) change(ctx context.Context) {
	tick := time.NewTicker(8 * time.Millisecond)
	defer tick.Stop()
	for at := int64(epoch + 1000); ; at++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		i := c.input.IntN(c.nodes / 4) // several changes of a node follow on each other
		switch c.input.IntN(8) {
		case 0:
			c.input.record(c.t, c.topics.Nodes, c.input.id(i), nodeEvent{ID: c.input.id(i), At: at, Deleted: true})
		case 1:
			e := c.input.edge(i, at)
			c.input.record(c.t, c.topics.Edges, e.Src, e)
		default:
			c.input.record(c.t, c.topics.Nodes, c.input.id(i), c.input.put(i, at))
		}
	}
}

// latest is which generations there are.
func (c *canaryRun) latest() generation.Latest {
	c.t.Helper()
	latest, err := generation.Newest(c.t.Context(), c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	return latest
}

// round waits for a canary, decides about it, and disturbs those who follow the decision.
func (c *canaryRun) round() {
	c.t.Helper()
	var canary, served int64
	c.until("there is a canary", func() bool {
		latest := c.latest()
		if latest.Canary == nil || latest.Current == nil {
			return false
		}
		canary, served = latest.Canary.Generation, latest.Current.Generation
		return true
	})
	switch c.random.IntN(4) {
	case 0: // the canary topic gets it
		c.halfway(c.next, canary, canary, c.killed)
	case 1:
		if c.decide("promote", canary) {
			c.halfway(c.reader, canary, canary, c.killed)
		}
	case 2: // promoted, and taken back before all have it
		if c.decide("promote", canary) {
			c.halfway(c.reader, canary, canary, func() { c.decide("rollback", 0) })
			c.halfway(c.reader, served, served, c.killed)
		}
	case 3:
		c.decide("rollback", 0)
		c.halfway(c.next, served, served, c.killed)
		if c.decide("pin", served) {
			c.decide("unpin", 0)
		}
	}
}

// halfway does something soon after the first records of a generation have come, unless none come, or readers see it.
func (c *canaryRun) halfway(r *reader, g, until int64, do func()) {
	before, _ := r.count(g)
	deadline := time.Now().Add(6 * time.Second)
	for time.Now().Before(deadline) {
		if n, visible := r.count(g); n > before || visible == until {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Duration(c.random.IntN(60)) * time.Millisecond)
	do()
}

// killed kills one of the workers or both; they start again.
func (c *canaryRun) killed() {
	which := c.random.IntN(3)
	for i, w := range c.crew {
		if which != 1-i && !w.ended() {
			w.kill()
			c.kills++
		}
	}
	c.supervise()
}

// decide is a decision that people make on the command line; false if it is not possible any more.
func (c *canaryRun) decide(action string, g int64) bool {
	c.t.Helper()
	args := []string{"generations", action, "-c", c.crew[0].config}
	if g > 0 {
		args = append(args, fmt.Sprint(g))
	}
	r := run(c.t, args...)
	if r.code != 0 && !strings.Contains(r.stderr, generation.ErrChoice.Error()) {
		c.t.Errorf("giantstream %q: exit code %d\n%s", args, r.code, r.stderr)
	}
	c.t.Logf("%s %d: exit code %d", action, g, r.code)
	if action == "promote" || action == "pin" {
		c.promoted[g] = true
	}
	return r.code == 0
}

// finish has one generation served, and waits until all of it is published.
func (c *canaryRun) finish() {
	c.t.Helper()
	c.input.flush(c.t)
	if current := c.latest().Current; !c.decide("pin", current.Generation) {
		c.t.Fatalf("generation %d cannot be pinned", current.Generation)
	}
	c.until("one generation is published", func() bool {
		if !c.published() {
			return false
		}
		for shard := range c.shards {
			at, err := commitlog.LoadPublished(c.t.Context(), c.store, shard)
			if err != nil {
				c.t.Fatal(err)
			}
			if at.Mixed || at.Announced != at.Generation {
				return false
			}
			next, err := commitlog.Canary.Load(c.t.Context(), c.store, shard)
			if err != nil {
				c.t.Fatal(err)
			}
			if next.Generation != at.Generation || next.Announced != at.Generation || next.Seq != at.Seq {
				return false
			}
		}
		return true
	})
	for _, w := range c.crew {
		w.stop(c.t)
	}
}

// check compares what readers see with what the pipeline serves.
func (c *canaryRun) check() {
	c.t.Helper()
	c.checkTrace()
	c.checkCrew()
	for _, r := range c.readers() {
		c.checkReader(r)
	}
	for g := range c.reader.seen {
		if !c.promoted[g] {
			c.t.Errorf("the embeddings topic has records of generation %d, which was only a canary", g)
		}
	}
}

// checkReader compares what readers of a topic see with what the pipeline serves.
func (c *canaryRun) checkReader(r *reader) {
	c.t.Helper()
	if err := r.catchUp(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	for _, what := range r.wrong {
		c.t.Error(what)
	}
	if current := c.latest().Current.Generation; r.visible != current {
		c.t.Errorf("readers see generation %d, and %d is served", r.visible, current)
		return
	}
	r.checkOne(r.visible)
	seen := r.tables[r.visible].rows
	cut, err := commitlog.CurrentCut(c.t.Context(), c.store, c.shards)
	if err != nil {
		c.t.Fatal(err)
	}
	live := 0
	for shard := range c.shards {
		for row, err := range cut.Graph(c.t.Context(), c.store, shard) { // with the manifest of the own row
			if err != nil {
				c.t.Fatal(err)
			}
			got, ok := seen[row.NodeID]
			if ok == row.Deleted || ok && got.Seq != row.Seq {
				c.t.Errorf("readers have %+v of %s, whose newest row is of manifest %d, deleted %t", got, row.NodeID,
					row.Seq, row.Deleted)
			}
			if !row.Deleted {
				live++
			}
		}
	}
	if len(seen) != live {
		c.t.Errorf("readers see %d nodes of %d", len(seen), live)
	}
}
