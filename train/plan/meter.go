package plan

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/train/generation"
)

// meter measures a build that does one task at a time in this process: store counts the bytes, work the
// processor time of each stage.
type meter struct {
	task   tasks.Task // the one that is done now
	spent  counters
	stages map[string]*spent
}

type counters struct{ read, shuffled, models, written atomic.Int64 }

// spent is what the tasks of a stage took. Read has what is shuffled in it, and no models.
type spent struct {
	cpu, wall                       time.Duration
	read, shuffled, models, written int64
}

// store returns a store whose bytes are counted.
func (m *meter) store(s sink.Store) sink.Store { return &meteredStore{s, m} }

type meteredStore struct {
	sink.Store
	m *meter
}

func (s *meteredStore) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	s.m.spent.written.Add(size)
	return s.Store.Put(ctx, key, r, size)
}

func (s *meteredStore) Open(ctx context.Context, key string) (sink.Object, error) {
	o, err := s.Store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	return metered{o, s.m.kind(key)}, nil
}

// kind says what reading an object counts as.
func (m *meter) kind(key string) []*atomic.Int64 {
	prefix := generation.Prefix(m.task.Generation)
	of, own := strings.CutPrefix(key, prefix)
	if !own {
		return []*atomic.Int64{&m.spent.read}
	}
	of, exchanged := strings.CutPrefix(of, generation.TasksFolder)
	switch {
	case !exchanged:
		return []*atomic.Int64{&m.spent.models}
	case strings.Contains(of, fmt.Sprintf("/%05d/", m.task.Partition)):
		return []*atomic.Int64{&m.spent.read}
	}
	return []*atomic.Int64{&m.spent.read, &m.spent.shuffled}
}

type metered struct {
	sink.Object
	to []*atomic.Int64
}

func (o metered) ReadAt(b []byte, at int64) (int, error) {
	n, err := o.Object.ReadAt(b, at)
	for _, to := range o.to {
		to.Add(int64(n))
	}
	return n, err
}

// work returns work that is measured. It is for an engine that does one task at a time.
func (m *meter) work(w tasks.Work) tasks.Work { return measured{w, m} }

type measured struct {
	tasks.Work
	m *meter
}

func (w measured) Do(ctx context.Context, t tasks.Task) error {
	m := w.m
	s := m.stages[t.Stage]
	if s == nil {
		s = &spent{}
		m.stages[t.Stage] = s
	}
	m.task = t
	for _, c := range []*atomic.Int64{&m.spent.read, &m.spent.shuffled, &m.spent.models, &m.spent.written} {
		c.Store(0)
	}
	cpu, start := processorTime(), time.Now()
	err := w.Work.Do(ctx, t)
	s.cpu += processorTime() - cpu
	s.wall += time.Since(start)
	s.read += m.spent.read.Load()
	s.shuffled += m.spent.shuffled.Load()
	s.models += m.spent.models.Load()
	s.written += m.spent.written.Load()
	return err
}

// processorTime of this process so far.
func processorTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0 // it has no other errors than a wrong argument
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// parallelShare is p of Amdahl's law, wall = cpu·(1-p + p/cores).
func parallelShare(cpu, wall time.Duration, cores int) float64 {
	if cores < 2 || cpu <= 0 {
		return 0
	}
	p := (1 - float64(wall)/float64(cpu)) / (1 - 1/float64(cores))
	return min(1, max(0, p))
}
