package tasks

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestParseTask(t *testing.T) {
	for _, want := range []Task{{1, "number", 0}, {7, "vectorise", 12}} {
		if got, err := ParseTask(want.String()); err != nil || got != want {
			t.Errorf("ParseTask(%q) = %v, %v", want, got, err)
		}
	}
	for _, bad := range []string{"", "7", "7/a", "7//1", "0/a/1", "-1/a/1", "7/a/-1", "7/a/1/2", "07/a/1", "7/a/+1",
		"x/a/1"} {
		if got, err := ParseTask(bad); err == nil {
			t.Errorf("ParseTask(%q) = %v, want an error", bad, got)
		}
	}
}

// ledger notes which tasks were done; those in fail fail.
type ledger struct {
	mu   sync.Mutex
	runs map[Task]int
	done map[Task]bool
	fail map[Task]error
}

func (l *ledger) Do(_ context.Context, t Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[t]++
	if err := l.fail[t]; err != nil {
		return err
	}
	l.done[t] = true
	return nil
}

func (l *ledger) Done(_ context.Context, t Task) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done[t], nil
}

func newLedger() *ledger {
	return &ledger{runs: map[Task]int{}, done: map[Task]bool{}, fail: map[Task]error{}}
}

func TestLocalDoesWhatIsNotDone(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 7, 100} {
		l, all := newLedger(), stage(37)
		l.done[all[5]] = true
		if err := (Local{Workers: workers}).Run(t.Context(), all, l); err != nil {
			t.Fatal(err)
		}
		for k, task := range all {
			want := 1
			if k == 5 {
				want = 0
			}
			if l.runs[task] != want {
				t.Errorf("%d workers: task %v ran %d times, want %d", workers, task, l.runs[task], want)
			}
		}
	}
}

func TestLocalReturnsTheFailure(t *testing.T) {
	l, all := newLedger(), stage(10)
	broken := errors.New("broken")
	l.fail[all[3]] = broken
	if err := (Local{Workers: 1}).Run(t.Context(), all, l); !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
	if l.runs[all[9]] != 0 {
		t.Error("a task began after another one had failed")
	}
}

func TestLocalStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := newLedger()
	if err := (Local{Workers: 2}).Run(ctx, stage(10), l); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want context.Canceled", err)
	}
	if len(l.runs) != 0 {
		t.Errorf("%d tasks ran after the cancellation", len(l.runs))
	}
}

func stage(n int) []Task {
	all := make([]Task, n)
	for i := range all {
		all[i] = Task{Generation: 1, Stage: "number", Partition: i}
	}
	return all
}
