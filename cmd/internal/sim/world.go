package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/shard"
)

// world is one simulation.
type world struct {
	dice  dice
	plan  plan
	start time.Time
	trace trace
	store memstore.Store
	watch *watch
	late  sync.WaitGroup // effects that come after their call
	cache *shard.Cache

	topics   *topics
	sinks    map[commitlog.Outlet]*sinkTopic
	machines []*machine
	// group guards machines, owner and kills.
	group sync.Mutex
	owner []int // machine that the group gave the shard to last
	kills int

	healed   atomic.Bool  // no failures any more
	building atomic.Int32 // processes that build a generation
	mu       sync.Mutex
	outOf    map[string]time.Time // by service: until when it is away
	failed   string               // the first broken rule
}

// machine has a disk, which outlives processes.
type machine struct {
	disk    disk
	lives   int
	process *process // nil while none runs
}

// Result is the outcome of one simulation.
type Result struct {
	Seed uint64
	// Failure says which rule was broken, "" if none.
	Failure string
	// Trace identifies all that happened: two runs of one seed have the same.
	Trace string
	// Tail are the last events before the end.
	Tail string
	// Counts of what the simulation was made of. Late are writes under a lost lease, of which each holder may complete
	// one; Excused are nodes on the sink topic of the case that docs/PROTOCOL.md, "Publication", leaves open.
	Events, Manifests, Checkpoints, Blocks, Generations, Kills, Late, Excused int
	// Folds are moves of a boundary, Fakes manifests that late workers created behind one.
	Folds, Fakes int
}

// Run simulates one seed. It must be called in a bubble of testing/synctest.
func Run(seed uint64, line func(string)) Result {
	w := &world{dice: dice(seed), start: time.Now(), outOf: map[string]time.Time{}}
	w.plan = newPlan(w.dice)
	w.sinks = map[commitlog.Outlet]*sinkTopic{}
	for _, o := range w.outlets() {
		w.sinks[o] = &sinkTopic{canaries: o == commitlog.Canary}
	}
	w.trace.start, w.trace.all = w.start, line
	w.watch = newWatch(w)
	w.topics = newTopics(w.plan.shards)
	w.cache = shard.NewCache()
	w.cache.LimitWindows(w.plan.memory)
	for range w.plan.machines {
		w.machines = append(w.machines, &machine{disk: newDisk()})
	}
	w.owner = make([]int, w.plan.shards)
	w.live()
	w.cache.Release()
	result := w.check()
	result.Seed, result.Failure, result.Trace, result.Tail = seed, w.failure(), w.trace.Sum(), w.trace.tail()
	result.Events = w.trace.n
	return result
}

// fail notes that a rule was broken. The first one counts.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == "" {
		w.failed = fmt.Sprintf("after %v: %s", time.Since(w.start), fmt.Sprintf(format, args...))
	}
}

func (w *world) failure() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// recovered makes a panic a failure.
func (w *world) recovered() {
	if r := recover(); r != nil {
		w.fail("panic: %v\n%s", r, debug.Stack())
	}
}

func (w *world) isHealed() bool { return w.healed.Load() }

// isOut reports whether the service that an operation belongs to is away.
func (w *world) isOut(op string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.outOf[serviceOf(op)])
}

func (w *world) outage(service string, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outOf[service] = until
}

const (
	brokers = "brokers"
	stores  = "store"
)

func serviceOf(op string) string {
	switch op {
	case "fetch", "publish", "mirror publish", "mirror flush":
		return brokers
	}
	return stores
}

// boot starts a process on a machine.
func (w *world) boot(i int) {
	m := w.machines[i]
	m.lives++
	m.process = newProcess(w, i, m.lives, m.disk)
	p := m.process
	p.goes(p.refresh)
	if w.plan.janitors {
		p.goes(p.janitor)
	}
	w.trace.note("group", p.name+" starts")
}

// alive returns the machines with a process.
func (w *world) alive() (up []int) {
	for i, m := range w.machines {
		if m.process != nil {
			up = append(up, i)
		}
	}
	return up
}

// sleep waits until a time of the simulation. Times of disturbances are odd, so that they meet no call.
func (w *world) sleep(ctx context.Context, until time.Duration) {
	_ = w.pause(ctx, until-time.Since(w.start), 0)
}
