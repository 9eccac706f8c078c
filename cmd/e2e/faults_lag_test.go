package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/stream/commitlog"
)

// lagMeter watches how far the commit log is behind the input, and how long it takes to catch up once
// faults are undone. It reads the store and the producer's acknowledgements, past everything that fails.
type lagMeter struct {
	input  *faultInput
	cancel context.CancelFunc
	done   chan struct{}
	err    error

	mu sync.Mutex
	// open are acknowledged records that are not committed.
	open  []ack
	marks []time.Time // when faults were undone, until what was acknowledged before is committed
	lagTimes
}

// ack is a record that a broker has acknowledged.
type ack struct {
	topic     string
	partition int
	offset    int64
	at        time.Time
}

// lagTimes is what a lagMeter has seen.
type lagTimes struct {
	records  int           // the most records that were acknowledged and not committed
	age      time.Duration // the most that such a record was old
	recovery []time.Duration
}

// lagTick is how exact a lagMeter is.
const lagTick = 50 * time.Millisecond

func newLagMeter(t *testing.T, store sink.Store, shards int, in *faultInput) *lagMeter {
	ctx, cancel := context.WithCancel(t.Context())
	m := &lagMeter{input: in, cancel: cancel, done: make(chan struct{})}
	t.Cleanup(cancel)
	go func() {
		defer close(m.done)
		tick := time.NewTicker(lagTick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := m.look(ctx, store, shards); err != nil && ctx.Err() == nil {
				m.err = err
				return
			}
		}
	}()
	return m
}

// mark says that faults were undone: now the pipeline catches up with what was acknowledged.
func (m *lagMeter) mark() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks = append(m.marks, time.Now())
}

// look compares the acknowledged records with the newest manifests.
func (m *lagMeter) look(ctx context.Context, store sink.Store, shards int) error {
	m.input.mu.Lock()
	acks := m.input.acks
	m.input.acks = nil
	m.input.mu.Unlock()

	committed := make([]map[string]int64, shards)
	for shard := range committed {
		head, err := commitlog.Head(ctx, store, shard)
		if err != nil {
			return err
		}
		if head != nil {
			committed[shard] = head.Next
		}
	}
	now := time.Now()

	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = slices.DeleteFunc(append(m.open, acks...), func(a ack) bool {
		return a.offset < committed[a.partition][a.topic]
	})
	oldest := now
	for _, a := range m.open {
		if a.at.Before(oldest) {
			oldest = a.at
		}
	}
	m.records = max(m.records, len(m.open))
	m.age = max(m.age, now.Sub(oldest))
	m.marks = slices.DeleteFunc(m.marks, func(mark time.Time) bool {
		if oldest.Before(mark) {
			return false
		}
		m.recovery = append(m.recovery, now.Sub(mark))
		return true
	})
	return nil
}

// stop ends the meter once everything is committed.
func (m *lagMeter) stop(t *testing.T) lagTimes {
	t.Helper()
	m.cancel()
	<-m.done
	if m.err != nil {
		t.Fatalf("the lag cannot be measured: %v", m.err)
	}
	return m.lagTimes
}

// faultTimes is how long a run and its recoveries took.
type faultTimes struct {
	whole, rest time.Duration
	lagTimes
}

func (f faultTimes) String() string {
	return fmt.Sprintf("%.1f s, %.1f s of them to come to rest; at most %d records not committed, the oldest for %.1f s; "+
		"caught up after faults within %.1f s", f.whole.Seconds(), f.rest.Seconds(), f.records, f.age.Seconds(),
		worst(f.recovery).Seconds())
}

// faultTable collects the times of runs, and logs a row for docs/MEASUREMENTS.md.
type faultTable struct {
	mu   sync.Mutex
	runs []faultTimes
}

func newFaultTable(t *testing.T) *faultTable {
	table := &faultTable{}
	t.Cleanup(func() { t.Log(table) })
	return table
}

func (f *faultTable) add(run faultTimes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, run)
}

// String gives the median and the maximum of each figure over the runs that passed.
func (f *faultTable) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var whole, rest, age, recovery []time.Duration
	var records []int
	for _, r := range f.runs {
		whole, rest, age = append(whole, r.whole), append(rest, r.rest), append(age, r.age)
		records, recovery = append(records, r.records), append(recovery, r.recovery...)
	}
	return fmt.Sprintf("%d runs came to their end; median, max: run %s, come to rest %s, records not committed %d, %d, "+
		"for %s, caught up %s (%d times)", len(f.runs), seconds(whole), seconds(rest), middle(records), worst(records),
		seconds(age), seconds(recovery), len(recovery))
}

func seconds(times []time.Duration) string {
	return fmt.Sprintf("%.1f, %.1f s", middle(times).Seconds(), worst(times).Seconds())
}

func middle[T cmp.Ordered](values []T) (median T) {
	if len(values) == 0 {
		return median
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

func worst[T cmp.Ordered](values []T) (most T) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}
