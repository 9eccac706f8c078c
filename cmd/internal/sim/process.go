package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"giantstream/sink/recent"
	"giantstream/stream/commitlog"
)

// Ends of a call that did not go well.
var (
	errRefused = errors.New("simulated failure: refused")
	errNoReply = errors.New("simulated failure: no reply")
	errKilled  = errors.New("simulated failure: the process was killed")
)

// process is one life of a worker on a machine. Everything it does to the world is a call of one of its actors. Between
// any two calls it may be killed (no later call has an effect), frozen (calls wait), cut off (calls fail), or have its
// clock changed.
type process struct {
	world   *world
	machine int
	name    string
	disk    disk
	ctx     context.Context // ends with the process
	stop    context.CancelFunc
	running sync.WaitGroup
	serving atomic.Pointer[standing]
	// rows and manifests are what the process has committed last.
	rows      *recent.Cache
	manifests commitlog.Recent

	mu     sync.Mutex
	killed bool
	crash  bool      // killed by a disturbance, not at the end
	thaw   time.Time // frozen until
	joined time.Time // cut off until
	skew   time.Duration
	// shards are those that the process believes to own.
	shards map[int]*assignment
	lives  map[int]int // openings by shard
}

// assignment is a shard that the group gave to a process.
type assignment struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func newProcess(w *world, machine, life int, d disk) *process {
	p := &process{world: w, machine: machine, name: fmt.Sprintf("p%d.%d", machine, life), disk: d,
		shards: map[int]*assignment{}, lives: map[int]int{},
		rows: recent.New(1<<20, func(key string) bool { return w.plan.remember && commitlog.IsRows(key) })}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// wallClock returns the time by the process's wall clock. Durations are measured correctly on a machine whose clock
// jumps, so leases use time.Now.
func (p *process) wallClock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.skew)
}

// kill ends the process. What its goroutines still do reaches nobody.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.stop()
}

// isCrashed reports whether a disturbance has killed the process.
func (p *process) isCrashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crash
}

func (p *process) isKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

func (p *process) freeze(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thaw = until
}

func (p *process) frozenFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.thaw)
}

func (p *process) cutOff(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joined = until
}

func (p *process) isCutOff() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.joined)
}

func (p *process) jump(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skew += by
}

// goes runs f as a goroutine of the process.
func (p *process) goes(f func()) {
	p.running.Go(func() {
		defer p.world.recovered()
		f()
	})
}

// actor is a part of a process that makes calls one after another, or several with different keys at once.
type actor struct {
	process *process
	name    string
	mu      sync.Mutex
	calls   map[string]int // made so far, by operation and key
}

func (p *process) actor(name string) *actor {
	return &actor{process: p, name: p.name + "/" + name, calls: map[string]int{}}
}

// fate is what becomes of a call.
type fate int

const (
	served  fate = iota
	refused      // no effect
	dropped      // no reply; the effect may come later, if the operation allows it
)

// begin waits until a call takes effect, or returns the error with which it fails without having had an effect.
func (a *actor) begin(ctx context.Context, op, key string) (fate, error) {
	p, w := a.process, a.process.world
	n, slot := a.count(op, key)
	r := w.dice.randFor("begin", a.name, op, key, n)
	if err := w.pause(ctx, w.plan.delay(r), slot); err != nil {
		return refused, err
	}
	if err := a.stand(slot); err != nil {
		return refused, err
	}
	f := served
	switch {
	case w.isHealed():
	case p.isCutOff() || w.isOut(op):
		f = refused
	case r.Float64() < w.plan.refuse:
		f = refused
	case r.Float64() < w.plan.drop:
		f = dropped
	}
	w.trace.add(a.name, op, key, n, int(f))
	switch f {
	case refused:
		return f, errRefused
	case dropped:
		return f, errNoReply
	}
	return f, nil
}

// end waits until the reply to a call that has had its effect arrives, or returns an error in its place.
func (a *actor) end(ctx context.Context, op, key string) error {
	w := a.process.world
	n, slot := a.count("end "+op, key)
	r := w.dice.randFor("end", a.name, op, key, n)
	if err := w.pause(ctx, w.plan.delay(r)/2, slot); err != nil {
		return err
	}
	if err := a.stand(slot); err != nil {
		return err
	}
	if !w.isHealed() && r.Float64() < w.plan.lose {
		w.trace.add(a.name, op, key, n, -1)
		return errNoReply
	}
	return nil
}

// stand waits while the process is frozen.
func (a *actor) stand(slot time.Duration) error {
	p := a.process
	for left := p.frozenFor(); left > 0 && !p.isKilled(); left = p.frozenFor() {
		_ = p.world.pause(p.ctx, left, slot) // a process's context ends when it is killed
	}
	if p.isKilled() {
		return errKilled
	}
	return nil
}

// count numbers the calls of one operation with one key, and gives the call its slot.
func (a *actor) count(op, key string) (n string, slot time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := op + " " + key
	a.calls[id]++
	return strconv.Itoa(a.calls[id]), time.Duration(a.process.world.dice.hash("slot", a.name, id) % slots)
}

// slots is how many nanoseconds a tick of the simulation has. Every actor's call ends at the same place within a tick,
// so no two calls end at the same time, and chance alone decides their order.
const slots = 1 << 20

// pause sleeps for about d, until the slot's next time.
func (w *world) pause(ctx context.Context, d, slot time.Duration) error {
	now := time.Since(w.start)
	until := (now+d)/slots*slots + slot
	if until <= now {
		until += slots
	}
	timer := time.NewTimer(until - now)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
