package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// backlog compares the heads of a pipeline's commit log with the ends of its topics: covered is the
// number of records below the heads' offsets, open the number of those above.
func (p *place) backlog(ctx context.Context, store sink.Store, l pipeline) (covered, open int64, err error) {
	heads := make([]*commitlog.Manifest, l.shards)
	for i := range heads {
		if heads[i], err = commitlog.Head(ctx, store, i); err != nil {
			return 0, 0, err
		}
	}
	// The ends are read after the heads: what a head covers was sent before.
	ends, err := p.client.EndOffsets(ctx, l.nodes, l.edges, l.name+".mirror")
	if err != nil {
		return 0, 0, err
	}
	for topic, partitions := range ends {
		for i, end := range partitions {
			next := int64(0)
			if heads[i] != nil {
				next = heads[i].Next[topic]
			}
			covered += next
			open += end - next
		}
	}
	return covered, open, nil
}

// outcome is what the commit log says of a pipeline.
type outcome struct {
	nodes, edges int64 // as the heads count
	manifests    int64
	rows         int64 // committed, repetitions included
	objects      int64
	ids, labels  int64          // in the newest rows of the nodes that are not deleted
	writers      map[string]int // per process, the number of heads it has written
}

// readOutcome reads the whole commit log and checks the invariants of every log: sequence numbers
// have no gaps, offsets never decrease, no object is named twice, and every object exists and has
// the rows that its manifest says.
func readOutcome(ctx context.Context, store sink.Store, shards int) (o outcome, err error) {
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return o, err
	}
	o.writers = map[string]int{}
	named := map[string]bool{}
	for shard := range shards {
		var last *commitlog.Manifest
		for m, err := range commitlog.Manifests(ctx, store, shard, 0) {
			if err != nil {
				return o, err
			}
			for topic, next := range m.Next {
				if last != nil && next < last.Next[topic] {
					return o, fmt.Errorf("shard %d, manifest %d: the offset of %s went back from %d to %d",
						shard, m.Seq, topic, last.Next[topic], next)
				}
			}
			for _, obj := range m.Objects {
				if named[obj.Key] {
					return o, fmt.Errorf("%s is named twice", obj.Key)
				}
				named[obj.Key] = true
			}
			o.manifests++
			o.rows += m.Rows
			last = m
		}
		if last != nil {
			o.nodes += last.Nodes
			o.edges += last.Edges
			// host-process-session
			o.writers[last.Writer[:max(0, strings.LastIndexByte(last.Writer, '-'))]]++
		}
		for row, err := range cut.Facts(ctx, store, shard) {
			if err != nil {
				return o, err
			}
			if !row.Deleted {
				o.ids++
				o.labels += int64(len(row.Labels))
			}
		}
	}
	o.objects = int64(len(named))
	return o, nil
}

// poll calls f every period until it says yes.
func poll(ctx context.Context, period time.Duration, f func() (bool, error)) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		if ok, err := f(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
