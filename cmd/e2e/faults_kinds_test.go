package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"giantstream/cmd/e2e/internal/faults"
)

// fault is something that happens once, to be undone some time later.
type fault struct {
	what    string
	atLeast time.Duration
	begin   func(*faultRun) (undo func(*faultRun))
}

// faultKinds are all kinds of faults. Of is what they happen to: the workers, the brokers or the
// store.
var faultKinds = []struct {
	of   string
	draw func(random *rand.Rand, workers int) fault
}{
	{"workers", killed},
	{"workers", killed},
	{"workers", frozen},
	{"workers", stopped},
	{"workers", diskFull},
	{"brokers", brokerKilled},
	{"brokers", func(random *rand.Rand, _ int) fault {
		return connections("brokers", random, func(r *faultRun) []*faults.Proxy { return r.kafka })
	}},
	{"store", storeErrors},
	{"store", func(random *rand.Rand, _ int) fault {
		return connections("store", random, func(r *faultRun) []*faults.Proxy { return []*faults.Proxy{r.s3} })
	}},
}

// killed kills some workers, and sometimes takes their state away; they come back at once or later.
func killed(random *rand.Rand, workers int) fault {
	victims := random.Perm(workers)[:1+random.IntN(workers)]
	lost, atOnce := random.IntN(3) == 0, random.IntN(2) == 0
	what := fmt.Sprintf("kill -9 of workers %v", victims)
	if lost {
		what += ", whose state is lost"
	}
	back := func(r *faultRun) {
		for _, i := range victims {
			r.crew[i].start(r.t)
		}
	}
	return fault{what: what, begin: func(r *faultRun) func(*faultRun) {
		for _, i := range victims {
			r.crew[i].kill()
		}
		for _, i := range victims {
			if lost {
				if err := os.RemoveAll(r.crew[i].state); err != nil {
					r.t.Fatal(err)
				}
			}
		}
		if atOnce {
			back(r)
		}
		return back
	}}
}

// frozen stops a worker for longer than the group waits for it: then it is a zombie, and does not
// know.
func frozen(random *rand.Rand, workers int) fault {
	i := random.IntN(workers)
	long := faultSession + time.Duration(200+random.IntN(1000))*time.Millisecond
	return fault{fmt.Sprintf("worker %d is frozen", i), long, func(r *faultRun) func(*faultRun) {
		r.crew[i].signal(r.t, syscall.SIGSTOP)
		return func(r *faultRun) { r.crew[i].signal(r.t, syscall.SIGCONT) }
	}}
}

// stopped ends a worker in order, as a new version is rolled out.
func stopped(random *rand.Rand, workers int) fault {
	i := random.IntN(workers)
	return fault{fmt.Sprintf("worker %d is stopped", i), 0, func(r *faultRun) func(*faultRun) {
		r.crew[i].signal(r.t, syscall.SIGTERM)
		return func(r *faultRun) {
			r.crew[i].stop(r.t)
			r.crew[i].start(r.t)
		}
	}}
}

// diskFull takes a worker's disk space: none of its files grows beyond some KiB. If the worker
// fails because of this, it is started again.
func diskFull(random *rand.Rand, workers int) fault {
	i, space := random.IntN(workers), uint64(1+random.IntN(64))<<10
	return fault{fmt.Sprintf("worker %d may write no file beyond %d KiB", i, space>>10), 0,
		func(r *faultRun) func(*faultRun) {
			r.crew[i].diskless[r.crew[i].pid()] = true
			if err := faults.FillDisk(r.crew[i].pid(), space); err != nil {
				r.t.Log(err) // it has just ended, or this is not Linux
			}
			return func(r *faultRun) {
				if r.crew[i].ended() {
					return // the next process has no limit
				}
				if err := faults.FreeDisk(r.crew[i].pid()); err != nil {
					r.t.Log(err)
				}
			}
		}}
}

func brokerKilled(random *rand.Rand, _ int) fault {
	n := random.IntN(3)
	return fault{"kill -9 of a broker", 0, func(r *faultRun) func(*faultRun) {
		back := r.killBroker(r.t, n)
		return func(*faultRun) { back() }
	}}
}

// storeErrors lets the store answer with errors, or not answer although it has done what it was
// asked.
func storeErrors(random *rand.Rand, _ int) fault {
	rates := []faults.Rates{
		{Refused: 1}, {Refused: 0.1 + 0.5*random.Float64()}, {Lost: 0.1 + 0.5*random.Float64()}, {Refused: 0.2, Lost: 0.2},
	}[random.IntN(4)]
	return fault{fmt.Sprintf("of requests to the store, %.2f are refused, %.2f carried out without an answer",
		rates.Refused, rates.Lost), 0,
		func(r *faultRun) func(*faultRun) {
			r.http.Fail(rates)
			return func(r *faultRun) { r.http.Fail(faults.Rates{}) }
		}}
}

// connections breaks, delays or stalls connections to a server.
func connections(to string, random *rand.Rand, proxies func(*faultRun) []*faults.Proxy) fault {
	stream := []string{"upstream", "downstream"}[random.IntN(2)]
	toxicity := []float32{1, 0.5}[random.IntN(2)]
	number := func(from, to int) int { return from + random.IntN(to-from) }
	toxic := func(kind string, attributes map[string]any) fault {
		what := fmt.Sprintf("connections to the %s: %s %v %s, %.1f of them", to, kind, attributes, stream, toxicity)
		return fault{what, 0, func(r *faultRun) func(*faultRun) {
			for _, p := range proxies(r) {
				if err := p.Poison(faults.Toxic{Type: kind, Stream: stream, Toxicity: toxicity,
					Attributes: attributes}); err != nil {
					r.t.Fatal(err)
				}
			}
			return func(r *faultRun) {
				for _, p := range proxies(r) {
					p.Heal()
				}
			}
		}}
	}
	switch random.IntN(6) {
	case 0:
		return toxic("latency", map[string]any{"latency": number(20, 300), "jitter": number(1, 50)})
	case 1:
		return toxic("limit_data", map[string]any{"bytes": number(1, 20_000)})
	case 2:
		return toxic("timeout", map[string]any{"timeout": number(50, 1000)})
	case 3:
		return toxic("reset_peer", map[string]any{"timeout": number(0, 300)})
	case 4:
		return toxic("slicer", map[string]any{"average_size": 64, "size_variation": 32, "delay": 100})
	}
	return fault{"connections to the " + to + " are cut", 0, func(r *faultRun) func(*faultRun) {
		for _, p := range proxies(r) {
			p.Cut()
		}
		return func(r *faultRun) {
			for _, p := range proxies(r) {
				if err := p.Restore(); err != nil {
					r.t.Fatal(err)
				}
			}
		}
	}}
}
