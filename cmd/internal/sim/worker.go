package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
	"giantstream/stream/publish"
	"giantstream/stream/shard"
)

// What follows does for simulated processes what cmd/internal/service/worker.go, orphans.go and compact.go do for real
// ones. The Kafka client is left out: it opens sockets, which do not exist in a bubble of testing/synctest.

// assign gives a shard to the process.
func (p *process) assign(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.shards[number]
	if p.killed {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	a := &assignment{cancel, make(chan struct{})}
	p.shards[number] = a
	p.goes(func() {
		defer close(a.done)
		defer cancel()
		if before != nil {
			before.cancel()
			<-before.done // the group gives a shard again only after it was given back
		}
		p.work(ctx, number)
	})
}

// revoke takes a shard away from the process, which ends its work in good order.
func (p *process) revoke(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.shards[number]; a != nil {
		a.cancel()
	}
}

// owns reports whether the process works on a shard, or has not stopped yet.
func (p *process) owns(number int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.shards[number]
	if a == nil {
		return false
	}
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// restartPause is the pause before a shard that failed is opened again.
const restartPause = 2 * time.Second

// work opens and runs a shard until the group takes it away.
func (p *process) work(ctx context.Context, number int) {
	for ctx.Err() == nil {
		err := p.runShard(ctx, number)
		for _, never := range []error{commitlog.ErrIdentity, commitlog.ErrDamaged, shard.ErrLogIncomplete} {
			if errors.Is(err, never) {
				p.world.fail("shard %d cannot go on in process %s: %v", number, p.name, err)
			}
		}
		if ctx.Err() != nil {
			return
		}
		p.world.trace.note(p.name, fmt.Sprintf("shard %d stopped: %v", number, err))
		timer := time.NewTimer(restartPause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// runShard opens shard, feed and follower and runs them until one fails.
func (p *process) runShard(ctx context.Context, number int) (err error) {
	w := p.world
	p.mu.Lock()
	p.lives[number]++
	name := func(part string) string { return fmt.Sprintf("%s/%d.%d", part, number, p.lives[number]) }
	shardActor := p.actor(name("shard"))
	followActors := map[commitlog.Outlet]*actor{}
	for _, o := range w.outlets() {
		part := "follow"
		if o == commitlog.Canary {
			part = "canary"
		}
		followActors[o] = p.actor(name(part))
	}
	orphansActor, compactActor := p.actor(name("orphans")), p.actor(name("compact"))
	mirrorActor := p.actor(name("mirror"))
	p.mu.Unlock()
	opts := shard.Options{
		Pipeline: "sim", Shard: number, Shards: w.plan.shards,
		Dir: "state-" + strconv.Itoa(number), Store: p.rows.Store(shardActor.store()), Cache: w.cache,
		Topics: shard.Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics},
		Window: shard.Window{Changes: w.plan.changes, Bytes: 1 << 20, Time: w.plan.window},
		Writer: p.name, CheckpointEvery: w.plan.checkpointEvery, KeepOrders: w.plan.keep,
		Drain: w.isHealed, Load: w.plan.load, Clock: p.wallClock, Rand: &ids{dice: w.dice, name: shardActor.name},
		Listener: shardListener{process: p},
	}
	if w.plan.undirected {
		opts.Topics.Mirror = mirrorTopic
		opts.Mirror = &mirror{actor: mirrorActor}
	}
	sh, err := shard.Open(ctx, opts.Simulated(p.disk))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sh.Close()) }()
	in := &feed{actor: shardActor, shard: number, next: sh.Next(), most: w.plan.batch}
	ended := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return sh.Run(ctx, in) })
	for _, o := range w.outlets() {
		g.Go(func() error { return p.follow(ctx, number, o, followActors[o]) })
	}
	g.Go(func() error { return p.removeOrphans(ctx, number, orphansActor) })
	g.Go(func() error { return p.compact(ctx, number, compactActor) })
	err = g.Wait()
	if ended.Err() != nil && w.plan.checkpointEvery > 0 {
		last, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = sh.Checkpoint(last) // if it fails, the next owner reads more from the topics
	}
	return err
}

// shardListener notes the manifests that a shard of the process takes for committed.
type shardListener struct {
	shard.NopListener
	process *process
}

// Committed implements shard.Listener.
func (l shardListener) Committed(m *commitlog.Manifest) {
	l.process.world.watch.believed(m)
	if l.process.world.plan.remember {
		l.process.manifests.Add(m)
	}
}

// follow publishes the shard's embeddings to a topic.
func (p *process) follow(ctx context.Context, number int, outlet commitlog.Outlet, a *actor) error {
	w := p.world
	to := w.sinks[outlet]
	run := to.begin(p, number)
	defer to.end(run)
	s := a.store()
	s.wrote = func(string) { to.settled(run) } // a follower writes its cursor and nothing else
	s.answered = func(err error) { run.unanswered.Store(err != nil) }
	return publish.New(publish.Options{
		Shard: number, Store: p.rows.Store(s), Outlet: outlet, Publisher: &publisher{a, to, run},
		Attributes: (&publisher{a, to, run}).PublishAttributes,
		Known:      p.manifests.LookupFor(number),
		SaveEvery:  func() time.Duration { return w.plan.saveEvery },
		Model:      func() *publish.Model { return p.serving.Load().model(outlet, number) },
		Poll:       time.Second, Log: slog.New(slog.DiscardHandler),
	}).Run(ctx)
}

// removeOrphans removes the shard's orphans now and then.
func (p *process) removeOrphans(ctx context.Context, number int, a *actor) error {
	orphans := commitlog.NewOrphans(a.store(), number)
	tick := time.NewTicker(p.world.plan.orphansEvery)
	defer tick.Stop()
	for {
		_, _ = orphans.Remove(ctx) // it is tried again
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// compact merges the shard's rows, and removes what was merged.
func (p *process) compact(ctx context.Context, number int, a *actor) error {
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: number, Store: p.rows.Store(a.store()),
		Known: p.manifests.LookupFor(number), Grace: p.world.plan.grace,
		Clock: p.wallClock, Rand: &ids{dice: p.world.dice, name: a.name}})
	tick := time.NewTicker(p.world.plan.compactEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if _, err := c.Merge(ctx); err != nil {
			continue // it is tried again
		}
		p.removeMerged(ctx, c, a.store(), number)
	}
}

// removeMerged removes what was merged, and folds the log.
func (p *process) removeMerged(ctx context.Context, c *commitlog.Compactor, s *store, number int) {
	keep, err := oldestCut(ctx, s, number)
	if err != nil {
		return
	}
	_, _ = c.Remove(ctx, keep) // both are tried again
	_, _ = c.Fold(ctx, commitlog.FoldOptions{Keep: keep, History: p.world.plan.history})
}

// janitor merges rows and removes orphans of any shard: both may run in any process at any time.
func (p *process) janitor() {
	a := p.actor("janitor")
	w := p.world
	s := a.store()
	for i := 0; p.ctx.Err() == nil; i++ {
		r := w.dice.randFor("janitor", a.name, strconv.Itoa(i))
		_, slot := a.count("tick", "")
		_ = w.pause(p.ctx, drawDuration(r, 100*time.Millisecond, 3*time.Second), slot)
		number := r.IntN(w.plan.shards)
		if oneIn(r, 2) {
			_, _ = commitlog.NewOrphans(s, number).Remove(p.ctx)
			continue
		}
		c := commitlog.NewCompactor(commitlog.CompactorOptions{Shard: number, Store: s, Grace: w.plan.grace,
			Clock: p.wallClock, Rand: &ids{dice: w.dice, name: fmt.Sprint(a.name, i)}})
		if oneIn(r, 2) {
			_, _ = c.Merge(p.ctx)
		}
		p.removeMerged(p.ctx, c, s, number)
	}
}

// publisher sends embeddings to the sink topic. Kafka does not fence it.
type publisher struct {
	actor *actor
	topic *sinkTopic
	run   *followerRun
}

// Publish implements publish.Publisher.
func (p *publisher) Publish(ctx context.Context, records []embedding.Record) error {
	if len(records) == 0 {
		return nil
	}
	return p.send(ctx, len(records), records[0].NodeID, func(n int) { p.topic.append(p.run, records[:n]) })
}

// PublishAttributes sends attributes in the same way.
func (p *publisher) PublishAttributes(ctx context.Context, all []embedding.Attributes) error {
	if len(all) == 0 {
		return nil
	}
	return p.send(ctx, len(all), "attributes of "+all[0].NodeID, func(n int) {
		p.topic.appendAttributes(p.run, all[:n])
	})
}

// send lets all n records arrive, or, after a failure, none or the first of them.
func (p *publisher) send(ctx context.Context, n int, first string, arrive func(n int)) error {
	fate, err := p.actor.begin(ctx, "publish", "")
	if err != nil {
		if fate != dropped {
			return err
		}
		// Some of it arrives.
		n = p.actor.process.world.dice.randFor("publish", p.actor.name, first).IntN(n + 1)
	}
	arrive(n)
	if err != nil {
		return err
	}
	return p.actor.end(ctx, "publish", "")
}
