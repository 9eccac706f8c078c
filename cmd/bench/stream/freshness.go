package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"giantstream/ingest/embeddingtopic"
	"giantstream/stream/commitlog"
)

// freshness measures the time from a produced change to the arrival of its embedding at a consumer
// of the sink topic, also while one of several workers is restarted or killed.
func freshness(ctx context.Context, args []string) error {
	fl := newFlags("freshness")
	nodes := fl.Int("nodes", 20_000, "nodes")
	rate := fl.Int("rate", 1000, "changes per second")
	length := fl.Duration("for", time.Minute, "how long changes are sent")
	window := fl.Duration("window", time.Second, "window.time")
	workers := fl.Int("workers", 1, "workers")
	lose := fl.String("lose", "", "stop or kill: what happens to worker 1 after a third of the time; "+
		"it starts again at once")
	standby := fl.Int("standby", 0, "stream.standby")
	session := fl.Duration("session", 10*time.Second, "kafka.session_timeout")
	p, err := fl.open(args)
	if err != nil {
		return err
	}
	if *lose != "" && *lose != "stop" && *lose != "kill" {
		return fmt.Errorf("-lose must be stop or kill, got %q", *lose)
	}
	l := pipeline{name: "fresh", nodes: "fresh.nodes", edges: "fresh.edges", shards: shards, window: window.String(),
		session: *session,
		// One generation, which serves throughout.
		more: "train: {encoder: bag, epochs: 2}\nrefresh: {min_changes: 1000000000}\nevaluate: {probe_rates: []}\n" +
			fmt.Sprintf("stream: {standby: %d}\n", *standby)}
	g := newGraph(*nodes, 3, fl.seed)
	if err := p.topics(ctx, shards, l.nodes, l.edges); err != nil {
		return err
	}
	if err := g.produce(ctx, p.client, l.nodes, l.edges); err != nil {
		return err
	}
	crew := &crew{place: p, line: l}
	defer crew.stop()
	for i := range *workers {
		if err := crew.start(ctx, i); err != nil {
			return err
		}
	}
	progress("waiting for the first generation")
	err = crew.live[0].during(ctx, func(ctx context.Context) error { return p.awaitPublished(ctx, l) })
	if err != nil {
		return err
	}
	w := watch{latest: map[string]int64{}}
	lost := make(chan error, 1)
	go func() { lost <- crew.lose(ctx, *lose, *length/3) }()
	if err := errors.Join(w.run(ctx, p, l, g, *rate, *length), <-lost, crew.err()); err != nil {
		return err
	}
	fmt.Printf("\n%d of %d workers, standby %d, session timeout %v, lost by %q after a third of the time\n",
		min(1, len(*lose)), *workers, *standby, *session, *lose)
	w.print(*rate, *length, *window)
	return nil
}

// crew are the workers of a pipeline.
type crew struct {
	*place
	line pipeline
	live []*process
}

func (c *crew) start(ctx context.Context, i int) error {
	l := c.line
	l.worker = fmt.Sprintf("-%d", i+1)
	w, err := c.giantstreamRun(ctx, l, fmt.Sprintf("%s-%d-%d.log", l.name, i+1, len(c.live)))
	if err == nil && i < len(c.live) {
		c.live[i] = w
	} else if err == nil {
		c.live = append(c.live, w)
	}
	return err
}

// lose ends worker 1 after a while, in the given way, and starts it again.
func (c *crew) lose(ctx context.Context, how string, after time.Duration) error {
	if how == "" {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(after):
	}
	if how == "kill" {
		c.live[0].kill()
	} else {
		c.live[0].stop()
	}
	return c.start(ctx, 0)
}

// err says which worker has ended by itself.
func (c *crew) err() error {
	for _, w := range c.live {
		select {
		case <-w.ended:
			return fmt.Errorf("a worker has ended before it should, see %s: %w", w.log.Name(), w.err)
		default:
		}
	}
	return nil
}

func (c *crew) stop() {
	for _, w := range c.live {
		w.stop()
	}
}

// awaitPublished returns once a generation serves and everything is published.
func (p *place) awaitPublished(ctx context.Context, l pipeline) error {
	store, err := p.store(ctx, l.name)
	if err != nil {
		return err
	}
	return poll(ctx, time.Second, func() (bool, error) {
		for i := range l.shards {
			head, err := commitlog.Head(ctx, store, i)
			if err != nil || head == nil {
				return false, err
			}
			at, err := commitlog.LoadPublished(ctx, store, i)
			if err != nil || at.Generation < 1 || at.Seq < head.Seq {
				return false, err
			}
		}
		return true, nil
	})
}

// watch pairs changes with their embeddings. A record's event time is that of the change. A change
// that a later change of the same node overtakes in its window has no embedding of its own.
type watch struct {
	mu      sync.Mutex
	latest  map[string]int64 // event time of the newest change of a node, ms
	sent    int
	arrived []time.Duration
	open    int // nodes whose newest change has not arrived
}

func (w *watch) run(ctx context.Context, p *place, l pipeline, g *graph, rate int, length time.Duration) error {
	topic := l.name + ".embeddings"
	ends, err := p.client.EndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers, readCtx := errgroup.WithContext(ctx)
	for partition, end := range ends[topic] {
		readers.Go(func() error { return w.read(readCtx, p, topic, partition, end) })
	}
	if err := w.send(ctx, p, l, g, rate, length); err != nil {
		return err
	}
	deadline := time.Now().Add(time.Minute)
	err = poll(ctx, 100*time.Millisecond, func() (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.open == 0 || time.Now().After(deadline), nil
	})
	cancel()
	if e := readers.Wait(); err == nil && e != nil && ctx.Err() == nil {
		err = e
	}
	return err
}

// send produces changes at an even rate, over the nodes in random order, again and again.
func (w *watch) send(ctx context.Context, p *place, l pipeline, g *graph, rate int, length time.Duration) error {
	producer := p.client.NewProducer()
	order := rand.New(rand.NewPCG(g.seed, 2)).Perm(g.nodes)
	const period = 10 * time.Millisecond
	tick := time.NewTicker(period)
	defer tick.Stop()
	began := time.Now()
	total := int(length.Seconds() * float64(rate))
	for w.sent < total {
		due := min(int(time.Since(began).Seconds()*float64(rate)), total)
		var msgs []kafka.Message
		w.mu.Lock()
		for ; w.sent < due; w.sent++ {
			i := order[w.sent%g.nodes]
			m := g.node(l.nodes, i, 1+w.sent/g.nodes)
			m.Time = time.Now()
			if at, known := w.latest[string(m.Key)]; !known || at < 0 {
				w.open++
			}
			w.latest[string(m.Key)] = m.Time.UnixMilli()
			msgs = append(msgs, m)
		}
		w.mu.Unlock()
		if len(msgs) > 0 {
			if err := producer.Send(ctx, msgs...); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	return producer.Close()
}

// arrivedMark in latest says that the newest change of the node has arrived.
const arrivedMark = -1

func (w *watch) read(ctx context.Context, p *place, topic string, partition int, from int64) error {
	r := newReader(p.client.Brokers(), topic, partition)
	defer r.Close() //nolint:errcheck // it has been read
	if err := r.SetOffset(from); err != nil {
		return err
	}
	for {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		rec, err := embeddingtopic.Decode(m)
		if err != nil {
			return err
		}
		w.mu.Lock()
		changed := time.UnixMicro(rec.EventTime)
		w.arrived = append(w.arrived, now.Sub(changed))
		if at := w.latest[rec.NodeID]; at >= 0 && changed.UnixMilli() == at {
			w.latest[rec.NodeID] = arrivedMark
			w.open--
		}
		w.mu.Unlock()
	}
}

func (w *watch) print(rate int, length, window time.Duration) {
	slices.Sort(w.arrived)
	at := func(q float64) float64 {
		if len(w.arrived) == 0 {
			return 0
		}
		return w.arrived[int(q*float64(len(w.arrived)-1))].Seconds()
	}
	fmt.Printf("\n%d changes at %d/s for %v, windows of %v, encoder bag: "+
		"%d embeddings arrived, %d nodes still open; load %.1f\n",
		w.sent, rate, length, window, len(w.arrived), w.open, loadAverage())
	fmt.Printf("from change to arrival: p50 %.2f s, p90 %.2f s, p99 %.2f s, maximum %.2f s\n",
		at(0.5), at(0.9), at(0.99), at(1))
}
