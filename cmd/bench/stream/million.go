package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
)

// million takes a large graph through three workers, kills one of them on the way, starts it again,
// and checks the outcome. It runs the giantstream beside its directory.
func million(ctx context.Context, args []string) error {
	fl := newFlags("million")
	nodes := fl.Int("nodes", 1_000_000, "nodes")
	degree := fl.Int("degree", 5, "edges per node")
	shards := fl.Int("shards", 32, "shards")
	workers := fl.Int("workers", 3, "workers")
	killAt := fl.Float64("kill-at", 0.4, "share of the records that are committed when a worker is killed")
	limit := fl.Int64("limit", 600, "`MiB` that no worker may exceed")
	if err := fl.Parse(args); err != nil {
		return err
	}
	p, err := openPlace(fl.dir)
	if err != nil {
		return err
	}
	run := &largeRun{place: p, graph: newGraph(*nodes, *degree, fl.seed), limit: *limit, line: pipeline{
		name: "million", nodes: "million.nodes", edges: "million.edges", shards: *shards, window: "1s",
		// No generation is built: this measures the stream. The limit bounds the Go heap; a worker
		// also has the caches of its shards.
		more: "refresh: {min_nodes: 1000000000}\nfeaturize: {memory_limit: 300MiB}\n",
	}}
	if err := p.topics(ctx, *shards, run.line.nodes, run.line.edges); err != nil {
		return err
	}
	if err := run.graph.produce(ctx, p.client, run.line.nodes, run.line.edges); err != nil {
		return err
	}
	return run.runWorkers(ctx, *workers, *killAt)
}

type largeRun struct {
	*place
	graph *graph
	line  pipeline
	limit int64
	peaks []int64 // MiB; the killed process comes first
}

func (r *largeRun) runWorkers(ctx context.Context, workers int, killAt float64) error {
	began := time.Now()
	live := make([]*process, workers)
	defer func() {
		for _, w := range live {
			if w != nil {
				w.stop()
			}
		}
	}()
	for i := range live {
		var err error
		if live[i], err = r.worker(ctx, i, ""); err != nil {
			return err
		}
	}
	store, err := r.store(ctx, r.line.name)
	if err != nil {
		return err
	}
	expected := int64(r.graph.nodes) * int64(1+2*r.graph.degree) // with mirrored edges
	killed, reported := false, time.Now()
	var back time.Time // when the killed worker starts again
	err = poll(ctx, time.Second, func() (bool, error) {
		covered, open, err := r.backlog(ctx, store, r.line)
		if errors.Is(err, client.ErrNoTopic) {
			return false, nil // the mirror topic is about to be made
		}
		if err != nil {
			return false, err
		}
		if time.Since(reported) > 10*time.Second {
			reported = time.Now()
			progress("%4.0f s: %d of %d records committed, peaks %v MiB, load %.1f",
				time.Since(began).Seconds(), covered, expected, peaksOf(live), loadAverage())
		}
		switch {
		case !killed && float64(covered) >= killAt*float64(expected):
			progress("%4.0f s: killing worker 1 of %d at %d records; shards per worker were %v",
				time.Since(began).Seconds(), workers, covered, r.assigned(ctx))
			live[0].kill()
			r.peaks = peaksOf(live[:1])
			live[0], killed, back = nil, true, time.Now().Add(20*time.Second)
		case killed && live[0] == nil && (open == 0 || time.Now().After(back)):
			progress("%4.0f s: starting it again; shards per worker were %v",
				time.Since(began).Seconds(), r.assigned(ctx))
			if live[0], err = r.worker(ctx, 0, "-again"); err != nil {
				return false, err
			}
		}
		for _, w := range live {
			if w == nil {
				continue
			}
			select {
			case <-w.ended:
				return false, fmt.Errorf("a worker has ended, see %s: %w", w.log.Name(), w.err)
			default:
			}
		}
		return open == 0 && covered >= expected && (!killed || live[0] != nil), nil
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	shares, err := r.awaitBalance(ctx, workers)
	if err != nil {
		return err
	}
	var cpu time.Duration
	for _, w := range live {
		w.stop()
		cpu += w.cpu()
	}
	r.peaks = append(r.peaks, peaksOf(live)...)
	clear(live)
	fmt.Printf("\n%d nodes, %d edges, %d shards, %d workers: "+
		"%.0f s wall, %.0f s CPU of the workers that lived; load %.1f\n",
		r.graph.nodes, r.graph.nodes*r.graph.degree, r.line.shards, workers, took.Seconds(), cpu.Seconds(),
		loadAverage())
	return r.check(ctx, workers, shares, killed)
}

func (r *largeRun) worker(ctx context.Context, i int, suffix string) (*process, error) {
	l := r.line
	l.worker = fmt.Sprintf("-%d", i+1)
	return r.giantstreamRun(ctx, l, fmt.Sprintf("million-%d%s.log", i+1, suffix))
}

// assigned returns how many shards each member of the consumer group has.
func (r *largeRun) assigned(ctx context.Context) []int {
	c := kafka.Client{Addr: kafka.TCP(r.client.Brokers()...)}
	res, err := c.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{"giantstream-" + r.line.name}})
	if err != nil || len(res.Groups) == 0 {
		return nil
	}
	var n []int
	for _, m := range res.Groups[0].Members {
		for _, t := range m.MemberAssignments.Topics {
			if t.Topic == r.line.nodes {
				n = append(n, len(t.Partitions))
			}
		}
	}
	slices.Sort(n)
	return n
}

// awaitBalance waits until all workers have shards again, for a minute at most.
func (r *largeRun) awaitBalance(ctx context.Context, workers int) (shares []int, err error) {
	deadline := time.Now().Add(time.Minute)
	err = poll(ctx, time.Second, func() (bool, error) {
		shares = r.assigned(ctx)
		return len(shares) == workers || time.Now().After(deadline), nil
	})
	return shares, err
}

// check compares the outcome with the graph.
func (r *largeRun) check(ctx context.Context, workers int, shares []int, killed bool) error {
	store, err := r.store(ctx, r.line.name)
	if err != nil {
		return err
	}
	o, err := readOutcome(ctx, store, r.line.shards)
	if err != nil {
		return err
	}
	n, links := int64(r.graph.nodes), int64(r.graph.nodes)*int64(r.graph.degree)
	var failed []string
	check := func(what string, ok bool, format string, args ...any) {
		verdict := "ok  "
		if !ok {
			verdict = "FAIL"
			failed = append(failed, what)
		}
		fmt.Printf("%s %-28s %s\n", verdict, what, fmt.Sprintf(format, args...))
	}
	check("commit log", true,
		"%d manifests without gaps, offsets never decrease, %d objects, none named twice, %d rows",
		o.manifests, o.objects, o.rows)
	check("live nodes", o.nodes == n, "%d of %d", o.nodes, n)
	check("edge assertions", o.edges == links, "%d of %d", o.edges, links)
	check("newest rows", o.ids == n, "%d of %d", o.ids, n)
	check("labels in them", o.labels == 2*links, "%d of %d", o.labels, 2*links)
	check("balance", len(shares) == workers && shares[len(shares)-1]-shares[0] <= 1,
		"shards per worker at the end: %v", shares)
	check("a worker killed on the way", killed, "%t", killed)
	check("memory", slices.Max(r.peaks) < r.limit,
		"peak resident size per process (the killed one first): %v MiB, limit %d", r.peaks, r.limit)
	fmt.Printf("     %-28s %v\n", "shards by last committer", slices.Sorted(maps.Values(o.writers)))
	if len(failed) > 0 {
		return fmt.Errorf("checks failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// peaksOf returns the peak resident sizes of the processes that exist, in MiB.
func peaksOf(live []*process) (mib []int64) {
	for _, w := range live {
		if w != nil {
			mib = append(mib, w.peak.Load())
		}
	}
	return mib
}
