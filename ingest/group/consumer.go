package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"giantstream/ingest/client"
	"giantstream/internal/retry"

	"github.com/segmentio/kafka-go"
)

// Options configure a member of the group.
type Options struct {
	Client *client.Client
	// Group is the consumer group's id.
	Group string
	// Protocol is what the members of the group must agree on; "" means ProtocolName.
	Protocol string
	// Topics are the input topics; they have the same number of partitions.
	Topics []string
	// WatchPartitions assigns partitions that are added to the topics while members run.
	WatchPartitions bool
	// SessionTimeout is how long the coordinator waits for a heartbeat before it takes this member
	// for dead; 0 means 10 s. The member sends ten heartbeats in that time. When the group
	// rebalances, members have three times as long to stop their handlers and join again, so
	// handlers should end well within it.
	SessionTimeout time.Duration
	// Warm, if not nil, returns the shards whose state this member has a copy of. It gets those rather than others
	// when they are free. It is called when the group rebalances, on any goroutine.
	Warm func() []int
	// Assigned, if not nil, is called with the shards of each generation of the group, before their handlers begin and
	// after those of the generation before have ended. An error ends Run.
	Assigned func(ctx context.Context, shards []int) error
	Log      *slog.Logger
}

const (
	defaultSessionTimeout = 10 * time.Second
	leaveTimeout          = 5 * time.Second
)

// Assignment is a shard that this worker has, for one generation of the group.
type Assignment struct {
	Shard int
	// Committed is what the group had for this partition when the generation began: per topic the
	// next offset to read, negative if there is none.
	Committed map[string]int64

	commits *committer
}

// CommitOffsets commits to the group, per topic, the offset of the next record to read. For shards
// it is a hint that shows the lag; nothing reads it back.
func (a Assignment) CommitOffsets(next map[string]int64) error {
	return a.commits.commit(a.Shard, next)
}

// Handler works on a shard until its context ends. Returning nil before that is fine: the shard
// stays assigned and idle until the group rebalances.
type Handler func(ctx context.Context, a Assignment) error

// Run is a member of the group until ctx ends, when it returns ctx.Err(), or until a handler fails,
// when it stops all handlers and returns that error. For each generation it runs handle once per
// assigned shard, in goroutines, and waits for all of them before it joins the next generation. A
// broker that is away is no error: Run logs and retries.
func Run(ctx context.Context, o Options, handle Handler) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	members := &balancer{protocol: o.Protocol, warm: o.Warm}
	session := cmp.Or(o.SessionTimeout, defaultSessionTimeout)
	cg, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                o.Group,
		Brokers:           o.Client.Brokers(),
		Dialer:            o.Client.Dialer(),
		Topics:            o.Topics,
		GroupBalancers:    []kafka.GroupBalancer{members},
		HeartbeatInterval: session / 10,
		SessionTimeout:    session,
		RebalanceTimeout:  3 * session,
		JoinGroupBackoff:  session / 10,
		StartOffset:       kafka.FirstOffset,

		WatchPartitionChanges: o.WatchPartitions,
	})
	if err != nil {
		return fmt.Errorf("kafka group %q: %w", o.Group, err)
	}
	var handlers sync.WaitGroup
	defer func() {
		stop(nil)
		handlers.Wait()
		leave(cg)
	}()
	var outage retry.Outage
	for {
		gen, err := cg.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !client.IsRetryable(err):
			return fmt.Errorf("kafka group %q: %w", o.Group, err)
		case err != nil:
			level := slog.LevelDebug
			if outage.Failed(o.Group, time.Now()) {
				level = slog.LevelWarn
			}
			o.Log.Log(ctx, level, "cannot join the consumer group, trying again until it succeeds", "group", o.Group,
				"error", err)
			continue
		}
		if lasted, over := outage.EndFailure(o.Group, time.Now()); over {
			o.Log.Warn("joined the consumer group again", "group", o.Group, "after", lasted.Round(time.Millisecond))
		}
		shards := assigned(gen)
		members.assigned(gen.ID, shards)
		o.Log.Info("shards assigned", "group", o.Group, "rebalance", gen.ID, "shards", shards)
		if o.Assigned != nil {
			if err := o.Assigned(ctx, shards); err != nil {
				return err
			}
		}
		commits := &committer{gen: gen}
		for _, shard := range shards {
			handlers.Add(1)
			gen.Start(func(ended context.Context) {
				defer handlers.Done()
				if err := handleShard(ctx, ended, commits, shard, handle); err != nil {
					stop(err)
				}
			})
		}
	}
}

// leave leaves the group. It does not wait for long: kafka-go closes only after the other members
// have joined again, which can take up to the rebalance timeout.
func leave(cg *kafka.ConsumerGroup) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = cg.Close() // always nil
	}()
	timer := time.NewTimer(leaveTimeout)
	defer timer.Stop()
	select {
	case <-left:
	case <-timer.C:
	}
}

// handleShard runs the handler of one shard until ctx or the generation ends.
func handleShard(ctx, ended context.Context, commits *committer, shard int, handle Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ended, cancel)()
	err := handle(ctx, Assignment{Shard: shard, Committed: committed(commits.gen, shard), commits: commits})
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	// kafka-go ends a generation when one of its functions returns.
	<-ctx.Done()
	return nil
}

// committer commits the offsets of a generation's shards, one shard at a time: kafka-go sends all
// of them over one connection, and a goroutine whose answer is not the next to arrive there waits
// in a busy loop (segmentio/kafka-go#966).
type committer struct {
	gen *kafka.Generation
	mu  sync.Mutex
}

func (c *committer) commit(shard int, next map[string]int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	offsets := map[string]map[int]int64{}
	for topic, at := range next {
		offsets[topic] = map[int]int64{shard: at}
	}
	if err := c.gen.CommitOffsets(offsets); err != nil {
		return fmt.Errorf("kafka group %q: committing offsets of shard %d: %w", c.gen.GroupID, shard, err)
	}
	return nil
}

// committed returns the offsets that the group has for a partition number.
func committed(gen *kafka.Generation, shard int) map[string]int64 {
	offsets := map[string]int64{}
	for topic, partitions := range gen.Assignments {
		for _, p := range partitions {
			if p.ID == shard {
				offsets[topic] = p.Offset
			}
		}
	}
	return offsets
}

// assigned returns the partition numbers of a generation, ascending.
func assigned(gen *kafka.Generation) []int {
	set := map[int]bool{}
	for _, partitions := range gen.Assignments {
		for _, p := range partitions {
			set[p.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
