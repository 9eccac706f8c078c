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
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
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
	// Dissolved, if not nil, is called when the handlers of a generation have ended.
	Dissolved func()
	// Failed, if not nil, is called when an attempt to join has failed that is made again.
	Failed func(error)
	Log    *slog.Logger
}

const (
	// DefaultSessionTimeout is that of Options.
	DefaultSessionTimeout = 10 * time.Second
	// lookForPartitions is how often Options.WatchPartitions counts the partitions.
	lookForPartitions = 5 * time.Second
)

// Assignment is a shard that this worker has, for one generation of the group.
type Assignment struct {
	Shard int

	client        *client.Client
	group, member string
	generation    int32
}

// CommitOffsets commits to the group, per topic, the offset of the next record to read. For shards
// it is a hint that shows the lag; nothing reads it back. It works for a handler whose context has ended.
func (a Assignment) CommitOffsets(next map[string]int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	return a.client.CommitOffsets(ctx, a.group, a.member, a.generation, a.Shard, next)
}

// Committed returns what the group has for this partition of a topic.
func (a Assignment) Committed(ctx context.Context, topic string) (client.Commit, error) {
	commits, err := a.client.Committed(ctx, a.group, topic, a.Shard+1)
	if err != nil {
		return client.Commit{}, err
	}
	return commits[a.Shard], nil
}

// Handler works on a shard until its context ends. Returning nil before that is fine: the shard
// stays assigned and idle until the group rebalances.
type Handler func(ctx context.Context, a Assignment) error

// Run is a member of the group until ctx ends, when it returns ctx.Err(), or until a handler fails,
// when it stops all handlers and returns that error. For each generation it runs handle once per
// assigned shard, in goroutines, and waits for all of them before it joins the next generation. A
// broker that is away is no error: Run logs and retries. Members of another protocol are an error once they have
// stayed longer than a session.
func Run(ctx context.Context, o Options, handle Handler) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	session := cmp.Or(o.SessionTimeout, DefaultSessionTimeout)
	franz, err := o.Client.Franz(kgo.RequestRetries(0)) // Run retries
	if err != nil {
		return fmt.Errorf("kafka group %q: %w", o.Group, err)
	}
	defer franz.Close()
	m := &membership{client: o.Client, group: o.Group, topics: o.Topics, franz: franz, session: session,
		balancer: &balancer{protocol: o.Protocol, warm: o.Warm}}
	defer func() { _ = m.leave(context.WithoutCancel(ctx)) }() // or the session times out
	var outage retry.Outage
	var differs time.Time // since when another member is of another protocol
	pause := retry.Backoff{Min: session / 100, Max: session / 10}
	for {
		shards, err := m.join(ctx)
		if err != nil && ctx.Err() == nil && o.Failed != nil {
			o.Failed(err)
		}
		differ := errors.Is(err, kafka.InconsistentGroupProtocol)
		if differ && differs.IsZero() {
			differs = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		// The others may have been killed, and stay members until their sessions time out.
		case differ && time.Since(differs) < session+session/2:
			if outage.Failed(o.Group, time.Now()) {
				o.Log.Warn("members of the consumer group run another version or other settings; waiting for them to "+
					"leave, as those do that were killed", "group", o.Group, "up_to", session+session/2)
			}
			_ = pause.Wait(ctx)
			continue
		case err != nil && !client.IsRetryable(err):
			return fmt.Errorf("kafka group %q: %w", o.Group, err)
		case err != nil:
			level := slog.LevelDebug
			if outage.Failed(o.Group, time.Now()) {
				level = slog.LevelWarn
			}
			o.Log.Log(ctx, level, "cannot join the consumer group, trying again until it succeeds", "group", o.Group,
				"error", err)
			_ = pause.Wait(ctx)
			continue
		}
		pause.Reset()
		differs = time.Time{}
		if lasted, over := outage.EndFailure(o.Group, time.Now()); over {
			o.Log.Warn("joined the consumer group again", "group", o.Group, "after", lasted.Round(time.Millisecond))
		}
		m.balancer.assigned(m.generation, shards)
		o.Log.Info("shards assigned", "group", o.Group, "rebalance", m.generation, "shards", shards)
		if err := m.hold(ctx, stop, &o, shards, handle); err != nil {
			return err
		}
	}
}

// hold runs the handlers of one generation until the group rebalances or ctx ends, and waits for them.
func (m *membership) hold(ctx context.Context, stop context.CancelCauseFunc, o *Options, shards []int,
	handle Handler) error {
	var handlers sync.WaitGroup
	place := Assignment{client: m.client, group: m.group, member: m.id, generation: m.generation}
	generation, end := context.WithCancel(ctx)
	alive, rest := context.WithCancel(context.WithoutCancel(ctx))
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		defer end()
		m.keepAlive(alive, end, o.WatchPartitions)
	}()
	// The member lives while its handlers stop: what they commit now is not lost to a session that has timed out.
	defer func() { <-beats }()
	defer rest()
	defer func() {
		end()
		handlers.Wait()
		if o.Dissolved != nil {
			o.Dissolved()
		}
	}()
	if o.Assigned != nil {
		if err := o.Assigned(generation, shards); err != nil && generation.Err() == nil {
			return err
		}
	}
	for _, shard := range shards {
		handlers.Go(func() {
			a := place
			a.Shard = shard
			if err := handle(generation, a); err != nil && !ended(generation, err) {
				stop(err)
			}
		})
	}
	<-generation.Done()
	return nil
}

// ended reports whether a handler's error is that its context has ended.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// keepAlive sends heartbeats until ctx ends. It calls rebalance when the group is to form again: the coordinator says
// so, or has not answered for a session, or a topic has other partitions.
func (m *membership) keepAlive(ctx context.Context, rebalance func(), watch bool) {
	tick := time.NewTicker(m.session / 10)
	defer tick.Stop()
	answered, counted := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := m.beat(ctx)
		switch {
		case err == nil:
			answered = began
		case errors.Is(err, kafka.RebalanceInProgress):
			answered = began
			rebalance()
		case errors.Is(err, kafka.UnknownMemberId), errors.Is(err, kafka.IllegalGeneration), !client.IsRetryable(err),
			time.Since(answered) > m.session:
			rebalance()
			return
		}
		if watch && time.Since(counted) > lookForPartitions {
			counted = time.Now()
			if now, err := m.countPartitions(ctx); err == nil && !maps.Equal(now, m.partitions) {
				rebalance()
			}
		}
	}
}

// assigned returns the partition numbers of an assignment, ascending.
func assigned(a *kmsg.ConsumerMemberAssignment) []int {
	set := map[int]bool{}
	for _, topic := range a.Topics {
		for _, p := range topic.Partitions {
			set[int(p)] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
