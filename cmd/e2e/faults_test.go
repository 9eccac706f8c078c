package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Workers are killed, frozen and lose their disks, and brokers and the object store fail in every
// way that a network allows, while records of all kinds keep coming. In the end the commit log, the
// graph, the rows and the embeddings are exactly what the records state. See faultKinds for what
// happens, checkFaults for what must hold.
//
// Every run follows from its seed, as far as the machine's own timing allows; GIANTSTREAM_SEED is
// the first one's, GIANTSTREAM_FAULT_RUNS how many there are. `make test-faults` runs many.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("several runs of several processes")
	}
	s3 := startS3(t)
	table := newFaultTable(t)
	eachSeed(t, "GIANTSTREAM_FAULT_RUNS", 5, func(t *testing.T, seed uint64) {
		t.Parallel()
		table.add(runFaults(t, embeddedFaultPlace(t, s3, seed), seed))
	})
}

// The same on Apache Kafka and an S3 server in processes of their own.
func TestRealFaults(t *testing.T) {
	table := newFaultTable(t)
	eachSeed(t, "GIANTSTREAM_FAULT_RUNS", 2, func(t *testing.T, seed uint64) {
		table.add(runFaults(t, realFaultPlace(t, seed), seed))
	})
}

// eachSeed runs as many seeds as the environment says, or n.
func eachSeed(t *testing.T, runs string, n uint64, run func(t *testing.T, seed uint64)) {
	t.Helper()
	first := faultSeed(t)
	for i := range envNumber(t, runs, n) {
		t.Run(fmt.Sprint("seed=", first+i), func(t *testing.T) { run(t, first+i) })
	}
}

func faultSeed(t *testing.T) uint64 {
	t.Helper()
	return envNumber(t, "GIANTSTREAM_SEED", uint64(time.Now().UnixNano())%1_000_000)
}

// faultPlan is what a seed says.
type faultPlan struct {
	workers, shards, nodes, records int
	directed                        bool
	windowChanges                   int
	windowTime                      time.Duration
	format                          string
	// generationFirst: the faults wait until there is a generation.
	generationFirst bool
	steps           []faultStep
	// standby is how many workers besides its own keep a shard's newest checkpoint.
	standby int
}

// faultStep are faults that happen at one time.
type faultStep struct {
	faults []fault
	hold   time.Duration
}

func drawPlan(random *rand.Rand) faultPlan {
	p := faultPlan{
		workers: 1 + random.IntN(3), shards: 1 + random.IntN(4),
		nodes: 120 + random.IntN(200), records: 600 + random.IntN(900),
		directed:        random.IntN(4) == 0,
		windowChanges:   20 + random.IntN(400),
		windowTime:      time.Duration(50+random.IntN(400)) * time.Millisecond,
		format:          []string{"json", "binary"}[random.IntN(2)],
		generationFirst: random.IntN(2) == 0,
	}
	for range 2 + random.IntN(3) {
		step := faultStep{hold: time.Duration(200+random.IntN(1000)) * time.Millisecond}
		// At most one thing happens to the workers at a time, and one to each server, so that every
		// fault can be undone.
		busy := map[string]bool{}
		for range 1 + random.IntN(2) {
			kind := faultKinds[random.IntN(len(faultKinds))]
			if busy[kind.of] {
				continue
			}
			busy[kind.of] = true
			f := kind.draw(random, p.workers)
			step.hold = max(step.hold, f.atLeast)
			step.faults = append(step.faults, f)
		}
		p.steps = append(p.steps, step)
	}
	p.standby = random.IntN(2)
	return p
}

func (p faultPlan) String() string {
	s := fmt.Sprintf("%d workers, %d shards, %d nodes, %d records, windows of %d changes or %v, "+
		"directed %t, generation first %t, standby %d",
		p.workers, p.shards, p.nodes, p.records, p.windowChanges, p.windowTime, p.directed, p.generationFirst,
		p.standby)
	for _, step := range p.steps {
		s += fmt.Sprintf("\n  %5d ms:", step.hold.Milliseconds())
		for i, f := range step.faults {
			if i > 0 {
				s += "; and"
			}
			s += " " + f.what
		}
	}
	return s
}

// settings are a pipeline's as the plan has them. Generations are small, quick and made often.
func (p faultPlan) settings() string {
	return fmt.Sprintf(`
shards: %d
stream: {standby: %d}
window: {changes: %d, time: %v}
ingest:
  undirected: %t
  nodes: {event_time: at}
  edges: {event_time: at}
refresh: {min_nodes: 20, min_changes: 0.4}
sink: {format: %s}
`, p.shards, p.standby, p.windowChanges, p.windowTime, !p.directed, p.format) + smallGenerations
}

// smallGenerations are settings of generations that take a moment to build.
const smallGenerations = `
featurize:
  projection_dim: 24
  tree: {leaf_size: 8, branching: 4}
embedding: {dim: 16}
train: {encoder: linear}
evaluate: {holdout_edges: 0, probe_rates: []}
http: {listen: ""}
`

// faultRun is a run under way.
type faultRun struct {
	t *testing.T
	faultPlan
	*faultPlace
	crew  []*faultWorker
	input *faultInput
	lag   *lagMeter
}

// newFaultRun makes the topics and the workers, which do not run yet.
func newFaultRun(t *testing.T, p *faultPlace, plan faultPlan) *faultRun {
	r := &faultRun{t: t, faultPlan: plan, faultPlace: p}
	r.createTopics()
	for i := range plan.workers {
		r.crew = append(r.crew, r.newWorker(i))
	}
	t.Cleanup(func() {
		if t.Failed() {
			r.dump()
		}
	})
	return r
}

func runFaults(t *testing.T, p *faultPlace, seed uint64) faultTimes {
	random := rand.New(rand.NewPCG(seed, 5))
	plan := drawPlan(random)
	began := time.Now()
	t.Logf("repeat with: make test-faults RUNS=1 SEED=%d%s\n%v", seed, p.flags, plan)
	r := newFaultRun(t, p, plan)
	r.input = newFaultInput(t, p, plan, rand.New(rand.NewPCG(seed, 6)))
	r.lag = newLagMeter(t, r.store, r.shards, r.input)
	for _, w := range r.crew {
		w.start(t)
	}

	share := plan.records / (len(plan.steps) + 2)
	r.input.send(t, max(share, 2*plan.nodes), 0)
	if plan.generationFirst {
		r.input.flush(t)
		r.until("there is a generation", func() bool { return r.generation() > 0 })
	}
	for _, step := range plan.steps {
		var undo []func(*faultRun)
		for _, f := range step.faults {
			undo = append(undo, f.begin(r))
		}
		r.input.send(t, share, step.hold)
		for _, u := range undo {
			u(r)
		}
		r.lag.mark()
		r.supervise()
	}
	r.input.send(t, share, 0)
	r.input.lastWords(t)
	r.input.flush(t)
	healed := time.Now()
	r.comeToRest()
	times := faultTimes{rest: time.Since(healed), lagTimes: r.lag.stop(t)}
	checkFaults(t, r)
	times.whole = time.Since(began)
	t.Logf("%v; generation %d", times, r.generation())
	return times
}

// until waits for something that the workers do, and keeps them running.
func (r *faultRun) until(what string, holds func() bool) {
	r.t.Helper()
	deadline := time.After(r.patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	ghosts := time.NewTicker(10 * faultSession)
	defer ghosts.Stop()
	for !holds() {
		select {
		case <-deadline:
			r.t.Fatalf("after %v, still not: %s", r.patience, what)
		case <-ghosts.C:
			r.dropGhosts()
		case <-tick.C:
			r.supervise()
		}
	}
}

// comeToRest waits until all that was sent is committed and published, stops the workers, and makes
// sure that it stays so.
func (r *faultRun) comeToRest() {
	r.t.Helper()
	for range 5 {
		r.until("everything is committed and published", r.published)
		for _, w := range r.crew {
			w.stop(r.t)
		}
		if r.published() {
			return
		}
		// A generation became ready while they stopped.
		for _, w := range r.crew {
			w.start(r.t)
		}
	}
	r.t.Fatal("the pipeline does not come to rest: generation follows on generation")
}
