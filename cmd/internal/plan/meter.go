package plan

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/train/generation"
	"giantstream/train/generation/staged"
)

// Meter measures a staged build that does one task at a time in this process: Store counts the bytes, Work the
// processor time of each stage.
type Meter struct {
	sink.Store
	read, models, written atomic.Int64
	stages                map[string]*spent
}

// spent is what the tasks of a stage took.
type spent struct {
	cpu, wall             time.Duration
	read, models, written int64
}

// NewMeter returns a meter that counts what goes through store.
func NewMeter(store sink.Store) *Meter { return &Meter{Store: store, stages: map[string]*spent{}} }

// Put implements sink.Store.
func (m *Meter) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	m.written.Add(size)
	return m.Store.Put(ctx, key, r, size)
}

// Open implements sink.Store.
func (m *Meter) Open(ctx context.Context, key string) (sink.Object, error) {
	o, err := m.Store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	to := &m.read
	if g, model := strings.CutPrefix(key, "generations/"); model && !strings.Contains(g, "/"+generation.TasksFolder) {
		to = &m.models
	}
	return metered{o, to}, nil
}

type metered struct {
	sink.Object
	read *atomic.Int64
}

func (o metered) ReadAt(b []byte, at int64) (int, error) {
	n, err := o.Object.ReadAt(b, at)
	o.read.Add(int64(n))
	return n, err
}

// Work returns work that is measured. It is for an engine that does one task at a time.
func (m *Meter) Work(w tasks.Work) tasks.Work { return measured{w, m} }

type measured struct {
	tasks.Work
	m *Meter
}

func (w measured) Do(ctx context.Context, t tasks.Task) error {
	s := w.m.stages[t.Stage]
	if s == nil {
		s = &spent{}
		w.m.stages[t.Stage] = s
	}
	cpu, start := processorTime(), time.Now()
	read, models, written := w.m.read.Load(), w.m.models.Load(), w.m.written.Load()
	err := w.Work.Do(ctx, t)
	s.cpu += processorTime() - cpu
	s.wall += time.Since(start)
	s.read += w.m.read.Load() - read
	s.models += w.m.models.Load() - models
	s.written += w.m.written.Load() - written
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

// Rates returns what was measured, per unit of each stage's driver. in is the graph that was built, on in.Cores cores.
func (m *Meter) Rates(in Input, division staged.Plan) Rates {
	rates := Rates{}
	for _, s := range division.Stages() {
		got := m.stages[s.Name]
		if got == nil {
			continue // nothing was left to do
		}
		units := max(1, driverOf(s.Name).units(in, division))
		rates[s.Name] = Rate{CoreSeconds: got.cpu.Seconds() / units, ReadBytes: float64(got.read) / units,
			WrittenBytes: float64(got.written) / units, ModelBytes: float64(got.models),
			Parallel: parallelShare(got.cpu, got.wall, in.Cores)}
	}
	return rates
}

// parallelShare is p of Amdahl's law, wall = cpu·(1-p + p/cores).
func parallelShare(cpu, wall time.Duration, cores int) float64 {
	if cores < 2 || cpu <= 0 {
		return 0
	}
	p := (1 - float64(wall)/float64(cpu)) / (1 - 1/float64(cores))
	return min(1, max(0, p))
}
