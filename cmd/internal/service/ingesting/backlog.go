package ingesting

import (
	"context"
	"fmt"
	"slices"
	"time"

	"giantstream/ingest/client"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// drainPoll is the interval at which Drain looks. Each look costs a few small
// requests to the store per shard.
const drainPoll = 200 * time.Millisecond

// Drain returns once everything that was sent to the input topics before the call is committed, by
// any worker, however long brokers are away, and whatever is sent meanwhile. Until then the shards of
// this process commit as soon as they have caught up. The end offsets are read after the manifests.
// When the manifests reach them, the pipeline itself sends nothing more: only edges make mirror
// records, and a shard flushes the mirror records before it creates the manifest that covers the
// edges. Records of repartitioned topics count as open until they are copied.
func (in *Ingest) Drain(ctx context.Context) error {
	in.finishing.Store(true)
	in.draining.Add(1)
	defer in.draining.Add(-1)
	in.Progress.Stage("ingest", 0)
	defer in.Progress.Done()
	var reported, held int64
	var sent awaited
	err := client.PollThrough(ctx, drainPoll, in.Log, func() (bool, error) {
		b, err := in.backlog(ctx)
		if err != nil {
			return false, err
		}
		done := max(reported, b.covered)
		if in.Load { // nothing is committed before everything is read
			done = max(done, in.metrics.feed.Records.Load())
		}
		in.Progress.Add(done - reported)
		reported, held = done, b.held
		return sent.uncommitted(b) == 0, nil
	})
	if err == nil && held > 0 {
		in.Log.Warn("records that follow the beginning of an open transaction are not read before it ends; "+
			"run again then", "offsets", held)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("drain: %w", err)
	}
	return err
}

// Await returns a function that says how many input records no manifest covers yet, and 0 as soon as there is one for
// all that had been sent at its first call.
func (in *Ingest) Await() (uncommitted func(context.Context) (int64, error)) {
	var sent awaited
	return func(ctx context.Context) (int64, error) {
		b, err := in.backlog(ctx)
		if err != nil {
			return 0, err
		}
		return sent.uncommitted(b), nil
	}
}

// backlog is how many input records there are.
type backlog struct {
	covered int64 // by the commit log
	open    int64 // not yet
	held    int64 // back by open transactions, and in neither of the two
	parts   map[source]part
}

// acceptedLosses is the source of losses that a shard has yet to commit as accepted. No topic has its name.
const acceptedLosses = "accepted losses"

// part is where the records of a source end, and how many of them are not committed.
type part struct {
	end, open int64
}

func (b *backlog) ends() map[source]int64 {
	ends := map[source]int64{}
	for s, p := range b.parts {
		ends[s] = p.end
	}
	return ends
}

// add adds the records of a source.
func (b *backlog) add(of string, partition int, end, open int64) {
	b.parts[source{of, partition}] = part{end, open}
	b.open += open
}

// addGroup adds the records that a group copies. A group may have the name of a topic, which has no space in its own.
func (b *backlog) addGroup(group string, partition int, end, open int64) {
	b.add("group "+group, partition, end, open)
}

// backlog compares the commit log with the input topics.
func (in *Ingest) backlog(ctx context.Context) (b backlog, err error) {
	b.parts = map[source]part{}
	heads, err := in.Heads.NewestOfAll(ctx)
	if err != nil {
		return b, err
	}
	if err = in.copies.Check(ctx); err != nil {
		return b, err
	}
	// What is copied by now is below the end offsets read after it.
	if err = in.copies.Lag(ctx, b.addGroup); err != nil {
		return b, err
	}
	if err = in.texts.lag(ctx, b.addGroup); err != nil {
		return b, err
	}
	// Before the others: what comes in between would look like records of open transactions.
	logEnds, err := in.Groups.Client.LogEndOffsets(ctx, in.Topics.Inputs()...)
	if err != nil {
		return b, err
	}
	ends, err := in.Groups.Client.EndOffsets(ctx, in.Topics.Inputs()...)
	if err != nil {
		return b, err
	}
	first, err := in.Groups.Client.FirstOffsets(ctx, in.Topics.Inputs()...)
	if err != nil {
		return b, err
	}
	if why := in.strayed(first, ends); why != "" {
		return b, fmt.Errorf("%w: %s", shard.ErrPartitions, why)
	}
	ids, err := in.Groups.Client.Identify(ctx, in.Topics.Inputs()...)
	if err != nil {
		return b, err
	}
	for shard, head := range heads {
		pending := int64(0)
		if in.streams(head) {
			pending = in.accepted.pending(head)
		}
		b.add(acceptedLosses, shard, pending, pending)
	}
	for topic, partitions := range ends {
		for p, end := range partitions {
			logEnd := end
			if p < len(logEnds[topic]) {
				logEnd = max(end, logEnds[topic][p])
			}
			c, o := coverage(heads[p], topic, ids[topic].ID, first[topic][p], end, logEnd)
			b.covered, b.held = b.covered+c, b.held+logEnd-end
			b.add(topic, p, end, o)
		}
	}
	return b, nil
}

// streams reports whether this process will write the next manifest of a shard, as far as it knows.
func (in *Ingest) streams(head *commitlog.Manifest) bool {
	if head == nil || !in.Streams {
		return false
	}
	here := in.Watches.States()
	return len(here) == 0 || slices.ContainsFunc(here, func(w ShardState) bool { return w.Shard == head.Shard })
}

// coverage returns how many records of a partition with the offsets [first, end) the head covers,
// and how many it does not. A head that was read from another topic covers none of them. One that
// stands beyond the end of the log was read from another topic, too, whatever its id: what is open is
// then at least 1, until its shard has found out. From end to logEnd, transactions are open.
func coverage(head *commitlog.Manifest, topic, id string, first, end, logEnd int64) (covered, open int64) {
	next := first // earlier records are deleted
	if head != nil {
		in := head.Inputs[topic]
		at := head.Next[topic] - in.Base
		if in.ID != "" && id != "" && in.ID != id || at > logEnd {
			return 0, max(1, end-first)
		}
		next = max(next, at)
	}
	return next - first, max(0, end-next)
}
