package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Killing the pipeline at random moments, any number of times, changes nothing: the graph, the
// newest row and the embedding of every node, the orders, of which the links are, too, and the dead
// letters are those of an undisturbed run.
//
// GIANTSTREAM_SEED repeats the kill moments of an earlier run, as far as the machine's own timing
// allows; GIANTSTREAM_KILLS changes their number.
func TestKilledAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("kills and restarts the program 25 times, which takes minutes")
	}
	t.Parallel()
	kills := envNumber(t, "GIANTSTREAM_KILLS", 25)
	seed := envNumber(t, "GIANTSTREAM_SEED", uint64(time.Now().UnixNano()))
	t.Logf("GIANTSTREAM_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 2))

	inputs := t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	a := newAuthor(1, 1000)
	histories := []history{a.beginning(), a.later()}
	phases := make([]phase, len(histories))
	for i, h := range histories {
		phases[i].args = append([]string{"run", "-c", config, "--until-idle"},
			h.write(t, filepath.Join(inputs, strconv.Itoa(i)))...)
	}

	wantOrders := writeOrders(t, inputs, graphOf(histories...), phases)

	bad := filepath.Join(inputs, "bad.jsonl")
	writeLines(t, bad, histories[0].nodes[:10])
	mix(t, bad, badNodes[:10])
	phases[0].args = append(phases[0].args, "--nodes", bad)

	dir := t.TempDir()
	for i := range phases {
		p := start(t, phases[i].in(dir)...)
		if code := p.wait(nil, nil); code != 0 {
			t.Fatalf("undisturbed run %d: exit code %d\n%s", i, code, p.log())
		}
		phases[i].timeline = p.timeline()
	}
	checkLog(t, dir)
	want := readOutcome(t, dir)
	checkGraph(t, want.rows, graphOf(histories...))
	lines := map[string][]string{}
	for id, o := range want.orders {
		lines[id] = o.Items
	}
	sameMap(t, "order", lines, wantOrders)
	if o := want.doc.Graph.Orders; o == nil || o.Orders != len(wantOrders) || o.Kept == 0 {
		t.Errorf("of %d orders the generation has %+v", len(wantOrders), o)
	}
	if len(want.refused) != 10 {
		t.Errorf("%d dead letters, want 10", len(want.refused))
	}
	if want.doc.Generation != 2 {
		t.Fatalf("the undisturbed runs end at generation %d, want 2", want.doc.Generation)
	}

	const killsPerStore = 5
	killedDuring := map[string]int{}
	done := uint64(0)
	for i := 0; done < kills && i < 4*int(kills); i++ {
		t.Run(fmt.Sprintf("store %d", i+1), func(t *testing.T) {
			dir := t.TempDir()
			here := uint64(0)
			for k := range phases {
				// The first half of the kills falls into the first run.
				budget := min(killsPerStore*uint64(k+1)/uint64(len(phases)), here+kills-done)
				for finished := false; !finished; {
					p := start(t, phases[k].in(dir)...)
					var at alarm
					if here < budget {
						at = phases[k].draw(random)
					}
					switch code := p.wait(os.Kill, at); code {
					case -1:
						here++
						done++
						killedDuring[phases[k].during(p)]++
						checkNothingLeft(t, p.cmd.Dir)
					case 0:
						finished = true
					default:
						t.Fatalf("run %d after %d kills: exit code %d\n%s", k, here, code, p.log())
					}
				}
			}
			checkLog(t, dir)
			checkSame(t, readOutcome(t, dir), want)
		})
		if t.Failed() {
			break
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(killedDuring)) {
		t.Logf("killed during %-32s %3d", stage, killedDuring[stage])
	}
	if !t.Failed() && done < kills {
		t.Errorf("only %d of %d kills came before the end of their run", done, kills)
	}
}

// writeOrders writes the lines of orders for each phase, adds the flags, and returns each order's items at the end.
// A third of the orders of the first phase get more lines in the second.
func writeOrders(t *testing.T, dir string, graph map[string]node, phases []phase) map[string][]string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 3))
	ids := slices.Sorted(maps.Keys(graph))
	want := map[string][]string{}
	for i := range phases {
		var csv strings.Builder
		csv.WriteString("order,sku\n")
		for n := range 900 {
			if i > 0 && n%3 > 0 {
				continue
			}
			order, near := fmt.Sprint("o", n), random.IntN(len(ids))
			for range 1 + random.IntN(6) { // of few items together, so that some are often
				item := ids[(near/8*8+random.IntN(8))%len(ids)]
				fmt.Fprintf(&csv, "%s,%s\n", order, item)
				if !slices.Contains(want[order], item) {
					want[order] = append(want[order], item)
				}
			}
		}
		phases[i].args = append(phases[i].args, "--orders",
			writeFile(t, filepath.Join(dir, fmt.Sprint("orders", i, ".csv")), csv.String()),
			"--order-id", "order", "--order-item", "sku")
	}
	for _, items := range want {
		slices.Sort(items)
	}
	return want
}

// A training that is killed continues from its checkpoint, and ends with the same encoder as one
// that was not.
func TestKilledInTraining(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for seconds")
	}
	t.Parallel()
	inputs := t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), longTraining)
	h := newAuthor(2, 4000).beginning()
	args := append([]string{"run", "-c", config, "--until-idle"}, h.write(t, inputs)...)

	undisturbed := t.TempDir()
	succeed(t, append(args, "--store", undisturbed)...)
	want := readOutcome(t, undisturbed)

	dir := t.TempDir()
	checkpoints := filepath.Join(dir, "generations", "000001", "tasks", "encoder", "00000", "encoder", "checkpoints")
	p := start(t, append(args, "--store", dir)...)
	code := p.wait(os.Kill, func(stage string) <-chan time.Time {
		if stage != "dataset" {
			return nil
		}
		return appears(t, filepath.Join(checkpoints, "000000000001"))
	})
	if code != -1 {
		t.Fatalf("exit code %d\n%s", code, p.log())
	}
	// A generation does not say how often its training was resumed, so that its bytes are the same; the log does.
	rest := run(t, append(args, "--store", dir)...)
	if rest.code != 0 || !strings.Contains(rest.stderr, "the training was resumed") {
		t.Errorf("exit code %d, or the training started from the beginning\n%s", rest.code, rest.stderr)
	}
	checkSame(t, readOutcome(t, dir), want)
	if left, err := os.ReadDir(checkpoints); len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("checkpoints are still there: %v, %v", left, err)
	}
}

// appears returns a channel that receives the time when a file appears.
func appears(t *testing.T, path string) <-chan time.Time {
	there := make(chan time.Time, 1)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case now := <-tick.C:
				if _, err := os.Stat(path); err == nil {
					there <- now
					return
				}
			}
		}
	}()
	return there
}

// checkNothingLeft checks that a killed process has left no temporary files. A file that the
// process had only just made may still be there, but without content.
func checkNothingLeft(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if info, err := entry.Info(); err != nil || info.Size() > 0 {
			t.Errorf("temporary file %s is left (%v)", entry.Name(), err)
		}
	}
}

func envNumber(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// phase is a command that is repeated until it succeeds.
type phase struct {
	args []string
	// timeline is how the stages of an undisturbed run followed on each other; the last one,
	// without a name, is the way out.
	timeline []stage
}

func (p *phase) in(dir string) []string { return append(slices.Clone(p.args), "--store", dir) }

// draw draws a moment of the run, some time after its start or after the end of a stage: a third of
// them uniformly over its duration, the others uniformly over its stages, so that the short ones
// are met as well.
func (p *phase) draw(random *rand.Rand) alarm {
	i := random.IntN(len(p.timeline))
	if random.IntN(3) == 0 {
		var total time.Duration
		for _, s := range p.timeline {
			total += s.took
		}
		at := time.Duration(random.Int64N(int64(total)))
		for i = 0; at >= p.timeline[i].took; i++ {
			at -= p.timeline[i].took
		}
	}
	after, delay := "", time.Duration(random.Int64N(int64(p.timeline[i].took)+1))
	if i > 0 {
		after = p.timeline[i-1].name
	}
	return func(stage string) <-chan time.Time {
		if stage != after {
			return nil
		}
		return time.After(delay)
	}
}

// kill runs a command until it succeeds, and kills it at most some times. It returns how often it has done so.
func (p *phase) kill(t *testing.T, random *rand.Rand, most uint64, args ...string) (done uint64) {
	t.Helper()
	for {
		proc := start(t, args...)
		var at alarm
		if done < most {
			at = p.draw(random)
		}
		switch code := proc.wait(os.Kill, at); code {
		case -1:
			done++
			t.Logf("killed during %s", p.during(proc))
		case 0:
			return done
		default:
			t.Fatalf("exit code %d after %d kills\n%s", code, done, proc.log())
		}
	}
}

// during names the stage that a process was in at its end.
func (p *phase) during(proc *process) string {
	if len(proc.ended) == 0 {
		return "start and " + p.timeline[0].name
	}
	last := proc.ended[len(proc.ended)-1].name
	i := slices.IndexFunc(p.timeline, func(s stage) bool { return s.name == last })
	if i < 0 || i+1 == len(p.timeline)-1 {
		return "the way out"
	}
	return p.timeline[i+1].name
}
