package taskqueue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"giantstream/ingest/client"
	"giantstream/ingest/taskqueue"
	"giantstream/internal/tasks"
)

// TestWorkersThatJoinLater: one worker begins, two join while it is at work, and it leaves before the end.
func TestWorkersThatJoinLater(t *testing.T) {
	ctx, _, q := start(t)
	list := stage(7, "vectorise", 40)
	work := &folder{dir: t.TempDir()}
	var begun atomic.Int32
	third, twentieth := make(chan struct{}), make(chan struct{})
	work.begin = func(context.Context, tasks.Task) error {
		switch begun.Add(1) {
		case 3:
			close(third)
		case 20:
			close(twentieth)
		}
		return nil
	}
	wait := engine(ctx, q, list, work)
	leave := worker(ctx, t, q, 7, work)
	<-third
	worker(ctx, t, q, 7, work)
	worker(ctx, t, q, 7, work)
	<-twentieth
	leave()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	work.check(t, list)
	// All is done: a second run needs nobody.
	if err := (&taskqueue.Engine{Queue: q}).Run(ctx, list, work); err != nil {
		t.Fatal(err)
	}
}

// TestALeavingWorkerGivesItsTaskBack: at once, without waiting for the lock.
func TestALeavingWorkerGivesItsTaskBack(t *testing.T) {
	ctx, _, q := start(t)
	list, work := stage(7, "write", 1), &folder{dir: t.TempDir()}
	var left atomic.Bool
	begun := make(chan struct{})
	work.begin = func(ctx context.Context, _ tasks.Task) error {
		if left.Load() {
			return nil
		}
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	wait := engine(ctx, q, list, work)
	leave := worker(ctx, t, q, 7, work)
	<-begun
	leave()
	left.Store(true)
	worker(ctx, t, q, 7, work)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	work.check(t, list)
	if n := work.count(list[0]); n != 2 {
		t.Errorf("the task was begun %d times", n)
	}
}

// TestKilledWorker: the task of a process that is killed goes to another worker.
func TestKilledWorker(t *testing.T) {
	ctx, _, q := start(t)
	list, work := stage(7, "pifa", 5), &folder{dir: t.TempDir()}
	wait := engine(ctx, q, list, work)
	victim := startProcess(ctx, t, q, work.dir)
	held := victim.await(t, "begun")
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	worker(ctx, t, q, 7, work)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	work.check(t, list)
	if task, err := tasks.ParseTask(held); err != nil || work.count(task) != 1 {
		t.Errorf("task %s: %v, done %d times after its worker was killed", held, err, work.count(task))
	}
}

// TestFrozenWorker: the task of a process that stands still goes to another worker when its lock expires, and what the
// frozen one writes later changes nothing.
func TestFrozenWorker(t *testing.T) {
	ctx, _, q := start(t)
	list, work := stage(7, "tree", 3), &folder{dir: t.TempDir()}
	wait := engine(ctx, q, list, work)
	frozen := startProcess(ctx, t, q, work.dir)
	held := frozen.await(t, "begun")
	if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	worker(ctx, t, q, 7, work)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if got := frozen.await(t, "finished"); got != held+" <nil>" {
		t.Errorf("the frozen worker says %q", got)
	}
	work.check(t, list)
}

// TestALockIsRenewed: a task that takes longer than its lock is not handed out again.
func TestALockIsRenewed(t *testing.T) {
	ctx, _, q := start(t)
	list, work := stage(7, "encoder", 1), &folder{dir: t.TempDir()}
	work.begin = func(context.Context, tasks.Task) error {
		time.Sleep(3 * lock) // the work
		return nil
	}
	worker(ctx, t, q, 7, work)
	worker(ctx, t, q, 7, work)
	if err := engine(ctx, q, list, work)(); err != nil {
		t.Fatal(err)
	}
	if n := work.count(list[0]); n != 1 {
		t.Errorf("the task was begun %d times", n)
	}
}

// TestAPoisonousTaskFailsTheStage: with what it failed with, after five deliveries; the other tasks are done.
func TestAPoisonousTaskFailsTheStage(t *testing.T) {
	ctx, _, q := start(t)
	list, work := stage(7, "project", 6), &folder{dir: t.TempDir()}
	var mended atomic.Bool
	work.begin = func(_ context.Context, task tasks.Task) error {
		if task == list[2] && !mended.Load() {
			return errors.New("row 41 is no vector")
		}
		return nil
	}
	worker(ctx, t, q, 7, work)
	err := engine(ctx, q, list, work)()
	if err == nil || !strings.Contains(err.Error(), "7/project/2") ||
		!strings.Contains(err.Error(), "row 41 is no vector") {
		t.Fatalf("the stage ended with %v", err)
	}
	if n := work.count(list[2]); n != taskqueue.MaxDeliveries {
		t.Errorf("the task was tried %d times, want %d", n, taskqueue.MaxDeliveries)
	}
	// What was wrong is mended: the next run has the task done, and only that one.
	mended.Store(true)
	if err := engine(ctx, q, list, work)(); err != nil {
		t.Fatal(err)
	}
	for i, task := range list {
		if i != 2 && work.count(task) != 1 {
			t.Errorf("task %v was done %d times", task, work.count(task))
		}
	}
}

// TestATaskThatKillsItsWorkers: nobody lives to say what is wrong; the stage fails all the same.
func TestATaskThatKillsItsWorkers(t *testing.T) {
	ctx, _, q := start(t)
	list, dir := stage(7, "top", 1), t.TempDir()
	wait := engine(ctx, q, list, &folder{dir: dir})
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	for n := 1; ; n++ {
		p := startProcess(ctx, t, q, dir)
		begun := make(chan struct{})
		go func() {
			if _, ok := p.next("begun"); ok {
				close(begun)
			}
		}()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "7/top/0") || !strings.Contains(err.Error(), "without a word") {
				t.Errorf("the stage ended with %v", err)
			}
			return
		case <-begun:
			t.Logf("worker %d has begun, and is killed", n)
		}
		if n > taskqueue.MaxDeliveries {
			t.Fatal("the task was handed out once more")
		}
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTasksOfAnAbandonedGenerationAreDropped: they are delivered, and not done.
func TestTasksOfAnAbandonedGenerationAreDropped(t *testing.T) {
	ctx, _, q := start(t)
	abandoned, list := stage(6, "number", 4), stage(7, "number", 4)
	work := &folder{dir: t.TempDir()}
	abandon(ctx, t, q, abandoned, work)
	worker(ctx, t, q, 7, work)
	if err := engine(ctx, q, list, work)(); err != nil {
		t.Fatal(err)
	}
	work.check(t, list)
	for _, task := range abandoned {
		if work.count(task) > 0 {
			t.Errorf("task %v was done", task)
		}
	}
}

// TestTasksInFlightAreNotPublishedAgain: a run that was broken off and begins again finds its tasks in the topic.
func TestTasksInFlightAreNotPublishedAgain(t *testing.T) {
	ctx, e, q := start(t)
	list, work := stage(7, "counts", 8), &folder{dir: t.TempDir()}
	abandon(ctx, t, q, list, work)
	wait := engine(ctx, q, list, work)
	worker(ctx, t, q, 7, work)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	work.check(t, list)
	published := 0
	for _, m := range e.Read(t, "tasks") {
		if _, err := tasks.ParseTask(string(m.Value)); err == nil { // else it is a probe
			published++
		}
	}
	if published != len(list) {
		t.Errorf("%d records for %d tasks", published, len(list))
	}
}

// abandon runs a stage until its tasks are published.
func abandon(ctx context.Context, t *testing.T, q taskqueue.Queue, list []tasks.Task, work tasks.Work) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	q.Log = logger(t)
	wait := engine(ctx, q, list, work)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		end, err := q.Client.EndOffsets(ctx, q.Tasks)
		if err == nil && end[q.Tasks][0] == int64(len(list)) {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestBrokersWithoutShareGroups: the error says what to use instead.
func TestBrokersWithoutShareGroups(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(kversion.V4_1_0()))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	c, err := client.New(client.Options{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := taskqueue.Queue{Client: c, Tasks: "tasks", Reports: "reports", Group: "build", Log: logger(t)}
	work := &folder{dir: t.TempDir()}
	for who, err := range map[string]error{
		"engine": (&taskqueue.Engine{Queue: q}).Run(t.Context(), stage(7, "number", 1), work),
		"worker": (&taskqueue.Worker{Queue: q}).Run(t.Context(), work),
	} {
		if !errors.Is(err, taskqueue.ErrNoShareGroups) || !strings.Contains(err.Error(), "giantstream build stage") {
			t.Errorf("%s: %v", who, err)
		}
	}
}
