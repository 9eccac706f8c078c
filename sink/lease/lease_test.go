package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/memstore"
)

// clock is a clock that a test turns.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

// process is a contender for the lease in a test, with a clock of its own.
func process(t *testing.T, store sink.Store, name string, c *clock) *Lease {
	t.Helper()
	l, err := New(Options{Store: store, Name: "refresh", Holder: name, Process: name, Clock: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acquire(t *testing.T, l *Lease) *Held {
	t.Helper()
	held, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func mustBeHeld(t *testing.T, l *Lease) *HeldError {
	t.Helper()
	_, err := l.Acquire(t.Context())
	var by *HeldError
	if !errors.Is(err, ErrHeld) || !errors.As(err, &by) {
		t.Fatalf("error %v, want ErrHeld", err)
	}
	return by
}

func TestOneHolderAtATime(t *testing.T) {
	store := &memstore.Store{}
	a, b := process(t, store, "a", &clock{}), process(t, store, "b", &clock{})
	held := acquire(t, a)
	by := mustBeHeld(t, b)
	if by.Holder != "a" || by.Number != 1 || !strings.Contains(by.Error(), "held by a") {
		t.Errorf("%v", by)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second := acquire(t, b); second.Number() != 2 {
		t.Errorf("number %d, want 2", second.Number())
	}
	_ = mustBeHeld(t, a)
}

func TestOnlyASilentHolderIsTakenOver(t *testing.T) {
	store := &memstore.Store{}
	// The clocks disagree by years: only differences on one's own count.
	there, here := &clock{time.Unix(4e9, 0)}, &clock{time.Unix(1e9, 0)}
	a, b := process(t, store, "a", there), process(t, store, "b", here)
	held := acquire(t, a)
	_ = mustBeHeld(t, b)
	for range 5 {
		here.advance(defaultTTL - 1)
		_ = mustBeHeld(t, b)
		if err := held.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if by := mustBeHeld(t, b); !by.Seen {
			t.Error("b has seen a renew the lease, but does not say so")
		}
	}
	here.advance(defaultTTL)
	if got := acquire(t, b); got.Number() != 2 {
		t.Errorf("number %d, want 2", got.Number())
	}
}

func TestHolderThatNobodyReplacedGoesOn(t *testing.T) {
	store, c := &memstore.Store{}, &clock{}
	held := acquire(t, process(t, store, "a", c))
	c.advance(10 * defaultTTL) // asleep, but alone
	for _, err := range []error{held.check(t.Context()), held.renew(t.Context())} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestProcessKnownToHaveEndedIsNotWaitedFor(t *testing.T) {
	store := &memstore.Store{}
	acquire(t, process(t, store, "a", &clock{}))
	b, err := New(Options{Store: store, Name: "refresh", Holder: "b", Ended: func(p string) bool { return p == "a" }})
	if err != nil {
		t.Fatal(err)
	}
	if held := acquire(t, b); held.Number() != 2 {
		t.Errorf("number %d, want 2", held.Number())
	}
}

func TestZombieWritesNothing(t *testing.T) {
	store, here := &memstore.Store{}, &clock{}
	zombie := acquire(t, process(t, store, "zombie", &clock{}))
	if err := sink.PutBytes(t.Context(), zombie.Store(), "work", []byte("first half")); err != nil {
		t.Fatal(err)
	}
	b := process(t, store, "b", here)
	_ = mustBeHeld(t, b)
	here.advance(defaultTTL)
	successor := acquire(t, b)
	if err := sink.PutBytes(t.Context(), successor.Store(), "work", []byte("whole")); err != nil {
		t.Fatal(err)
	}

	fenced := zombie.Store()
	for op, err := range map[string]error{
		"check":  zombie.check(t.Context()),
		"renew":  zombie.renew(t.Context()),
		"put":    sink.PutBytes(t.Context(), fenced, "work", []byte("late")),
		"create": fenced.Create(t.Context(), "more", []byte("late")),
		"delete": fenced.Delete(t.Context(), "work"),
	} {
		if !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v, want ErrLost", op, err)
		}
	}
	if err := zombie.Release(t.Context()); err != nil {
		t.Errorf("release of a lost lease: %v", err)
	}
	if data, err := sink.ReadAll(t.Context(), store, "work"); err != nil || string(data) != "whole" {
		t.Errorf("work is %q (%v)", data, err)
	}
	if err := successor.check(t.Context()); err != nil {
		t.Errorf("the successor: %v", err)
	}
}

// A process that has looked, and then slept while others took, released and tidied away, creates a
// number that is long past. It must not believe in it.
func TestLateCreateIsNoHolding(t *testing.T) {
	store := &memstore.Store{}
	first := acquire(t, process(t, store, "a", &clock{}))
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	slept := false
	sleepy := &sleeper{Store: store, before: func(ctx context.Context) {
		if slept {
			return
		}
		slept = true
		for _, name := range []string{"b", "c"} { // numbers 2 and 3; 3 removes 2
			held := acquire(t, process(t, store, name, &clock{}))
			if name == "b" {
				if err := held.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	}}
	if by := mustBeHeld(t, process(t, sleepy, "late", &clock{})); by.Holder != "c" || by.Number != 3 {
		t.Errorf("%v", by)
	}
}

// sleeper does something before each Create.
type sleeper struct {
	sink.Store
	before func(context.Context)
}

func (s *sleeper) Create(ctx context.Context, key string, data []byte) error {
	s.before(ctx)
	return s.Store.Create(ctx, key, data)
}

func TestLostAnswerOfCreateIsFoundAgain(t *testing.T) {
	lost := errors.New("connection reset")
	fail := true
	store := &memstore.Store{FailAfter: func(op, _ string) error {
		if op == "create" && fail {
			return lost
		}
		return nil
	}}
	a := process(t, store, "a", &clock{})
	if _, err := a.Acquire(t.Context()); !errors.Is(err, lost) {
		t.Fatalf("error %v, want %v", err, lost)
	}
	fail = false
	if held := acquire(t, a); held.Number() != 1 {
		t.Errorf("number %d, want 1", held.Number())
	}
}

// Of many that try at once, exactly one holds the lease at any time, and numbers only grow.
func TestManyContenders(t *testing.T) {
	store := &memstore.Store{}
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		numbers []int64
	)
	for i := range 8 {
		l := process(t, store, fmt.Sprint(i), &clock{})
		wg.Go(func() {
			for done := 0; done < 10; {
				held, err := l.Acquire(t.Context())
				if err != nil {
					// ErrHeld, or beaten again and again.
					if !errors.Is(err, ErrHeld) && !errors.Is(err, sink.ErrExists) && !errors.Is(err, ErrLost) {
						t.Error(err)
						return
					}
					continue
				}
				mu.Lock() // the lease itself excludes others: this only appends
				numbers = append(numbers, held.Number())
				mu.Unlock()
				if err := held.check(t.Context()); err != nil {
					t.Errorf("number %d: %v", held.Number(), err)
				}
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
				done++
			}
		})
	}
	wg.Wait()
	for i, n := range numbers {
		if n != int64(i+1) {
			t.Fatalf("numbers %v: want 1, 2, 3, …", numbers)
		}
	}
	left, err := list(t.Context(), store, "refresh", 0)
	if err != nil || len(left) > 2 {
		t.Errorf("objects %v are left (%v)", left, err)
	}
}

func TestKeepEndsWhenTheLeaseIsLost(t *testing.T) {
	store := &memstore.Store{}
	a, err := New(Options{Store: store, Name: "refresh", Holder: "a", Process: "a", TTL: 3 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, release := acquire(t, a).Keep(t.Context())
	defer release()
	b, err := New(Options{Store: store, Name: "refresh", Holder: "b", Ended: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, b)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, ErrLost) {
		t.Errorf("cause %v, want ErrLost", err)
	}
}

func TestKeepReleasesAtTheEnd(t *testing.T) {
	store := &memstore.Store{}
	ctx, cancel := context.WithCancel(t.Context())
	_, release := acquire(t, process(t, store, "a", &clock{})).Keep(ctx)
	cancel() // the process is told to stop
	release()
	acquire(t, process(t, store, "b", &clock{}))
}

func TestStoreErrorsAreNoHolding(t *testing.T) {
	for _, op := range []string{"list", "open", "read", "create"} {
		away := errors.New("store is away")
		var failing string
		store := &memstore.Store{Fail: func(o, _ string) error {
			if o == failing {
				return away
			}
			return nil
		}}
		held := acquire(t, process(t, store, "a", &clock{}))
		if op == "create" {
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		failing = op
		if _, err := process(t, store, "b", &clock{}).Acquire(t.Context()); !errors.Is(err, away) {
			t.Errorf("%s fails: error %v", op, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	r := Record{Format: recordFormat, Number: 3, Holder: "a", Session: "x", TTLMillis: 30_000}
	data, err := r.encode(seal.Place{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"format": 2}`))
	f.Add([]byte(`{"format": 1, "number": -1}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data, seal.Place{}, 12)
		if err != nil {
			return
		}
		again, err := r.encode(seal.Place{})
		if err != nil {
			t.Skip(err) // years that RFC 3339 cannot write
		}
		if _, err := decode(again, seal.Place{}, 12); err != nil {
			t.Errorf("%s is read, but not %s: %v", data, again, err)
		}
	})
}
