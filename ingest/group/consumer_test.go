package group_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"giantstream/ingest/group"
	"giantstream/ingest/internal/kafkatest"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// worker is a member of the group whose handlers note what they have.
type worker struct {
	mu     sync.Mutex
	shards map[int]bool
	change chan struct{} // a signal after each change
	stop   context.CancelFunc
	done   chan error
}

func startWorker(t *testing.T, e *kafkatest.Env) *worker {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &worker{shards: map[int]bool{}, change: make(chan struct{}, 1000), stop: cancel, done: make(chan error, 1)}
	go func() {
		w.done <- group.Run(ctx, options(e), func(ctx context.Context, a group.Assignment) error {
			w.set(a.Shard, true)
			<-ctx.Done()
			w.set(a.Shard, false)
			return ctx.Err()
		})
	}()
	return w
}

func options(e *kafkatest.Env) group.Options {
	return group.Options{Client: e.Client, Group: e.Group, Topics: e.Topics.Inputs(), Log: e.Log}
}

func (w *worker) set(shard int, has bool) {
	w.mu.Lock()
	if has {
		w.shards[shard] = true
	} else {
		delete(w.shards, shard)
	}
	w.mu.Unlock()
	w.change <- struct{}{}
}

func (w *worker) has() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var s []int
	for shard := range w.shards {
		s = append(s, shard)
	}
	slices.Sort(s)
	return s
}

// await waits until the workers have these numbers of shards.
func await(t *testing.T, workers []*worker, want ...int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		var got []int
		for _, w := range workers {
			got = append(got, len(w.has()))
		}
		if slices.Equal(got, want) {
			return
		}
		var first, second <-chan struct{} = workers[0].change, nil
		if len(workers) > 1 {
			second = workers[1].change
		}
		select {
		case <-first:
		case <-second:
		case <-deadline:
			t.Fatalf("workers have %v shards, want %v", got, want)
		}
	}
}

func TestShardsMoveBetweenWorkers(t *testing.T) {
	e := kafkatest.Start(t, 5)
	a := startWorker(t, e)
	await(t, []*worker{a}, 5)

	b := startWorker(t, e)
	await(t, []*worker{a, b}, 3, 2)
	all := append(a.has(), b.has()...)
	slices.Sort(all)
	if !slices.Equal(all, []int{0, 1, 2, 3, 4}) {
		t.Errorf("a has %v, b has %v", a.has(), b.has())
	}

	a.stop()
	if err := <-a.done; !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped with %v", err)
	}
	if len(a.has()) > 0 {
		t.Errorf("Run returned while handlers of %v ran", a.has())
	}
	await(t, []*worker{b}, 5)
	b.stop()
	<-b.done
}

// A worker of another version, or with other settings, that was killed stays a member until its session times out.
func TestAKilledMemberOfAnotherProtocolIsWaitedFor(t *testing.T) {
	t.Parallel() // it waits for the session
	e := kafkatest.Start(t, 3)
	franz, err := e.Client.Franz()
	if err != nil {
		t.Fatal(err)
	}
	defer franz.Close()
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "another"
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.Protocols = e.Group, "consumer", []kmsg.JoinGroupRequestProtocol{protocol}
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 6000, 6000
	for joined := false; !joined; {
		res, err := join.RequestWith(t.Context(), franz)
		if err != nil {
			t.Fatal(err)
		}
		join.MemberID = res.MemberID
		if joined = res.ErrorCode == 0; !joined && !errors.Is(kafka.Error(res.ErrorCode), kafka.MemberIDRequired) {
			t.Fatal(kafka.Error(res.ErrorCode))
		}
	}
	w := startWorker(t, e)
	await(t, []*worker{w}, 3)
	w.stop()
	<-w.done
}

func TestHandlerErrorStopsTheWorker(t *testing.T) {
	e := kafkatest.Start(t, 3)
	broken := errors.New("disk full")
	err := group.Run(t.Context(), options(e), func(ctx context.Context, a group.Assignment) error {
		if a.Shard == 1 {
			return broken
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, broken) {
		t.Errorf("Run returned %v", err)
	}
}

func TestHandlerMayReturnEarly(t *testing.T) {
	e := kafkatest.Start(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	runs, committed := 0, 0
	err := group.Run(ctx, options(e), func(ctx context.Context, a group.Assignment) error {
		mu.Lock()
		defer mu.Unlock()
		if err := a.CommitOffsets(map[string]int64{e.Topics.Nodes: 12, e.Topics.Edges: 3}); err != nil {
			t.Errorf("commit: %v", err)
		}
		runs++
		if committed++; committed == 2 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || runs != 2 {
		t.Errorf("%d runs, %v; want each shard handled once", runs, err)
	}
}
