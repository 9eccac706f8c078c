package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"giantstream/stream/commitlog/checkpoint"
)

// live runs the simulation: records are sent and disturbances happen until the time is over. Then everything heals, and
// the pipeline must come to rest.
func (w *world) live() {
	for i := range w.machines {
		w.boot(i)
	}
	for s := range w.owner {
		w.owner[s] = s % len(w.machines)
		w.machines[w.owner[s]].process.assign(s)
	}
	w.late.Go(w.produce)
	r := w.dice.randFor("disturbances")
	times := make([]time.Duration, w.plan.disturbances)
	for i := range times {
		times[i] = drawDuration(r, 0, w.plan.active)
	}
	slices.Sort(times)
	if w.plan.longFreeze {
		times[0] = min(times[0], 15*time.Second)
	}
	for i, at := range times {
		w.sleep(context.Background(), at)
		if w.failure() != "" {
			break
		}
		w.disturb(w.dice.randFor("disturbance", fmt.Sprint(i)), i)
	}
	w.sleep(context.Background(), w.plan.active)
	w.heal()
	w.rest()
	for _, m := range w.machines {
		if m.process != nil {
			m.process.kill()
			m.process.running.Wait()
		}
	}
	w.late.Wait()
}

// produce sends the records. Clients send in any order of event times.
func (w *world) produce() {
	defer w.recovered()
	records := slices.Clone(w.plan.records)
	slices.SortStableFunc(records, func(a, b sent) int { return int(a.at - b.at) })
	for i, s := range records {
		_ = w.pause(context.Background(), s.at-time.Since(w.start), time.Duration(w.dice.hash("producer")%slots))
		w.topics.send(s.topic, s.eventTime, s.record)
		w.trace.note("producer", fmt.Sprintf("record %d to %s", i, s.topic))
	}
}

// disturb does one of the things that happen to workers and servers.
func (w *world) disturb(r *rand.Rand, n int) {
	w.group.Lock()
	defer w.group.Unlock()
	up := w.alive()
	if len(up) == 0 {
		return
	}
	i := up[r.IntN(len(up))]
	p := w.machines[i].process
	kinds := []string{"kill", "kill", "move", "outage", "cut off", "jump", "retention", "retention"}
	if w.plan.zombies {
		kinds = append(kinds, "freeze", "freeze", "split", "split")
	}
	kind := pick(r, kinds...)
	if n == 0 && w.plan.longFreeze {
		kind = "long freeze"
		if owner := w.machines[w.owner[0]].process; owner != nil {
			i, p = w.owner[0], owner
		}
	}
	w.trace.note("disturbance", kind+" "+p.name)
	switch kind {
	case "kill":
		w.kill(i, r, n)
	case "freeze":
		long := drawDuration(r, time.Second, 40*time.Second)
		p.freeze(time.Now().Add(long))
		if long > 3*time.Second { // the group notices
			w.leave(i, r, n, 3*time.Second, long)
		}
	case "long freeze":
		long := drawDuration(r, 30*time.Second, 50*time.Second)
		p.freeze(time.Now().Add(long))
		w.leave(i, r, n, 3*time.Second, long)
	case "cut off":
		long := drawDuration(r, time.Second, 20*time.Second)
		p.cutOff(time.Now().Add(long))
		if long > 3*time.Second {
			w.leave(i, r, n, 3*time.Second, long)
		}
	case "move":
		w.move(r.IntN(w.plan.shards), up[r.IntN(len(up))], r, n, 0)
	case "split":
		w.move(r.IntN(w.plan.shards), up[r.IntN(len(up))], r, n, drawDuration(r, 0, 15*time.Second))
	case "outage":
		service, until := pick(r, stores, brokers), time.Now().Add(drawDuration(r, 0, 12*time.Second))
		w.outage(service, until)
	case "jump":
		p.jump(drawDuration(r, -2*time.Hour, 2*time.Hour))
	case "retention":
		w.retain()
	}
}

// kill ends a process and starts the next one on its machine in a while. Everything it wrote stays, or only what it had
// synced, or nothing.
func (w *world) kill(i int, r *rand.Rand, n int) {
	m := w.machines[i]
	p := m.process
	p.mu.Lock()
	p.crash = true
	p.mu.Unlock()
	p.kill()
	m.process = nil
	switch r.IntN(6) {
	case 0:
		m.disk = newDisk()
	case 1, 2: // the machine lost power
		m.disk = m.disk.afterPowerLoss()
	default:
		m.disk = m.disk.afterKill(r)
	}
	w.kills++
	w.schedule("boot", n, drawDuration(r, 0, 10*time.Second), func() { w.boot(i) })
	w.leave(i, r, n, drawDuration(r, 0, 5*time.Second), 0)
	w.late.Go(p.running.Wait)
}

// leave gives the shards of a machine's process to others once the group has noticed that the process is away, and
// takes them from the process once it is back.
func (w *world) leave(i int, r *rand.Rand, n int, notice, back time.Duration) {
	p := w.machines[i].process
	for s, owner := range w.owner {
		if owner != i {
			continue
		}
		to, late := r.IntN(len(w.machines)), drawDuration(r, 0, 3*time.Second)
		w.schedule(fmt.Sprintf("reassign %d", s), n, notice, func() {
			if up := w.alive(); len(up) > 0 && w.owner[s] == i {
				w.give(s, up[to%len(up)])
			}
		})
		if p != nil {
			w.schedule(fmt.Sprintf("rejoin %d", s), n, back+late, func() {
				if w.owner[s] != i {
					p.revoke(s)
				}
			})
		}
	}
}

// move gives a shard to a machine, and takes it from its owner after a while, in which both believe to own it.
func (w *world) move(s, to int, r *rand.Rand, n int, gap time.Duration) {
	from := w.machines[w.owner[s]].process
	if w.owner[s] == to && r.IntN(2) == 0 {
		return
	}
	w.give(s, to)
	if target := w.machines[to].process; from != nil && from != target {
		if gap == 0 {
			from.revoke(s)
			return
		}
		w.schedule(fmt.Sprintf("revoke %d", s), n, gap, func() {
			if w.machines[w.owner[s]].process != from {
				from.revoke(s)
			}
		})
	}
}

// give assigns a shard to a machine's process.
func (w *world) give(s, to int) {
	w.owner[s] = to
	w.trace.note("group", fmt.Sprintf("shard %d to %s", s, w.machines[to].process.name))
	w.machines[to].process.assign(s)
}

// schedule calls f after d, while it holds the group. Each call has a slot of its own.
func (w *world) schedule(what string, n int, d time.Duration, f func()) {
	slot := time.Duration(w.dice.hash("after", what, fmt.Sprint(n)) % slots)
	w.late.Go(func() {
		defer w.recovered()
		_ = w.pause(context.Background(), d, slot)
		w.group.Lock()
		defer w.group.Unlock()
		f()
	})
}

// retain lets the topics drop what no restart needs: the records below the newest checkpoint.
func (w *world) retain() {
	if !w.plan.retention {
		return
	}
	for s := range w.owner {
		c, err := checkpoint.Newest(context.Background(), &w.store, s)
		if err != nil {
			w.fail("checkpoints of shard %d: %v", s, err)
		} else if c != nil {
			w.topics.retain(s, c.Applied)
		}
	}
}

// heal ends all failures, waits for the work under way, and leaves each shard to one process.
func (w *world) heal() {
	w.healed.Store(true)
	w.trace.note("group", "everything heals")
	w.group.Lock() // a process may start at this moment
	for _, m := range w.machines {
		if m.process != nil {
			m.process.freeze(time.Now())
		}
	}
	w.group.Unlock()
	w.late.Wait()
	w.group.Lock()
	defer w.group.Unlock()
	up := w.alive()
	for s := range w.owner {
		if owner := w.machines[w.owner[s]].process; owner == nil || !owner.owns(s) {
			w.give(s, up[s%len(up)])
		}
		for i, m := range w.machines {
			if i != w.owner[s] && m.process != nil {
				m.process.revoke(s)
			}
		}
	}
}

// restTime is how long the pipeline may take to come to rest.
const restTime = 20 * time.Minute

// rest waits until everything sent is committed and published, by one process for each shard.
func (w *world) rest() {
	for began := time.Now(); ; {
		w.sleep(context.Background(), time.Since(w.start)+time.Second)
		busy := w.busy()
		if w.failure() != "" || busy == "" {
			return
		}
		if time.Since(began) > restTime {
			w.fail("the pipeline does not come to rest: %s", busy)
			return
		}
	}
}

// busy says what is not done yet.
func (w *world) busy() string {
	for s, owner := range w.owner {
		for i, m := range w.machines {
			if i != owner && m.process.owns(s) {
				return fmt.Sprintf("%s has not given up shard %d", m.process.name, s)
			}
		}
	}
	// What began before everything healed may become a generation, which is to be published.
	if n := w.building.Load(); n > 0 {
		return fmt.Sprintf("%d processes build a generation", n)
	}
	ctx := context.Background()
	at, err := w.stand(ctx, &w.store)
	if err != nil {
		return err.Error()
	}
	_, heads := w.watch.graph()
	for s, head := range heads {
		var next map[string]int64
		var seq int64
		if head != nil {
			next, seq = head.Next, head.Seq
		}
		if ends := w.topics.ends(s); !covered(next, ends) {
			return fmt.Sprintf("shard %d is committed up to %v of %v", s, next, ends)
		}
		if at == nil {
			continue
		}
		for _, o := range w.outlets() {
			published, err := o.Load(ctx, &w.store, s)
			if err != nil {
				return err.Error()
			}
			if g := at.generationOn(o).number; published.Generation != g || published.Seq < seq {
				return fmt.Sprintf("shard %d is published up to %+v of manifest %d, generation %d", s, published, seq,
					g)
			}
		}
	}
	return ""
}
