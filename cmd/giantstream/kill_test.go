package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Killing the pipeline at random moments, as often as one likes, changes nothing:
// the graph, the newest row and the embedding of every node are those of a run
// that nobody disturbed.
//
// GIANTSTREAM_SEED repeats the kill moments of an earlier run, as far as the
// machine's own timing allows; GIANTSTREAM_KILLS changes their number.
func TestKilledAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("kills and restarts the program 50 times, which takes minutes")
	}
	kills := envNumber(t, "GIANTSTREAM_KILLS", 50)
	seed := envNumber(t, "GIANTSTREAM_SEED", uint64(time.Now().UnixNano()))
	t.Logf("GIANTSTREAM_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 2))

	inputs := t.TempDir()
	config := writeFile(t, filepath.Join(inputs, "pipeline.yaml"), smallConfig)
	a := newAuthor(1, 600)
	histories := []history{a.beginning(), a.later()}
	phases := make([]phase, len(histories))
	for i, h := range histories {
		phases[i].args = append([]string{"run", "-c", config, "--until-idle"}, h.write(t, filepath.Join(inputs, strconv.Itoa(i)))...)
	}

	dir := t.TempDir()
	for i := range phases {
		p := start(t, phases[i].in(dir)...)
		if killed := p.wait(nil); killed || p.code() != 0 {
			t.Fatalf("undisturbed run %d: exit code %d\n%s", i, p.code(), p.log())
		}
		phases[i].timeline = p.timeline()
	}
	checkLog(t, dir)
	want := readOutcome(t, dir)
	checkGraph(t, want.rows, graphOf(histories...))
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
					var at *moment
					if here < budget {
						at = phases[k].draw(random)
					}
					switch killed := p.wait(at); {
					case killed:
						here++
						done++
						killedDuring[phases[k].during(p)]++
					case p.code() != 0:
						t.Fatalf("run %d after %d kills: exit code %d\n%s", k, here, p.code(), p.log())
					default:
						finished = true
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
	// timeline is how the stages of an undisturbed run followed on each
	// other; the last one, without a name, is the way out.
	timeline []stage
}

type stage struct {
	name string
	took time.Duration
}

func (p *phase) in(dir string) []string { return append(slices.Clone(p.args), "--store", dir) }

// moment is a point in the life of a process: some time after the end of a
// stage, or for "" after its start.
type moment struct {
	after string
	delay time.Duration
}

// draw draws a moment: half of them uniformly over the run's duration, and half
// uniformly over its stages, however short, since the interesting ones are.
func (p *phase) draw(random *rand.Rand) *moment {
	i := random.IntN(len(p.timeline))
	if random.IntN(2) == 0 {
		var total time.Duration
		for _, s := range p.timeline {
			total += s.took
		}
		at := time.Duration(random.Int64N(int64(total)))
		for i = 0; at >= p.timeline[i].took; i++ {
			at -= p.timeline[i].took
		}
	}
	m := &moment{delay: time.Duration(random.Int64N(int64(p.timeline[i].took) + 1))}
	if i > 0 {
		m.after = p.timeline[i-1].name
	}
	return m
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

// process is a running `giantstream run` whose log is followed.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	began time.Time
	lines <-chan string
	tail  []string

	// ended are the stages that have ended so far, with the time since the
	// one before.
	ended []stage
	last  time.Time
}

// start starts the program with logs as JSON.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := command(t, append(args, "--log-format", "json", "--log-level", "info")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1024)
	now := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(lines)
		in := bufio.NewReader(stderr)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				if err != io.EOF && !strings.Contains(err.Error(), "closed") {
					lines <- err.Error()
				}
				return
			}
		}
	}()
	return &process{t: t, cmd: cmd, began: now, last: now, lines: lines}
}

// wait follows the process to its end, and kills it when the moment comes. It
// reports whether the kill was what ended it.
func (p *process) wait(at *moment) (killed bool) {
	p.t.Helper()
	var due <-chan time.Time
	if at != nil && at.after == "" {
		due = time.After(at.delay)
	}
	for open := true; open; {
		var line string
		select {
		case line, open = <-p.lines:
			if name, ok := p.follow(line); ok && at != nil && name == at.after {
				due = time.After(at.delay)
			}
		case <-due:
			due = nil
			if err := p.cmd.Process.Kill(); err != nil && err != os.ErrProcessDone {
				p.t.Fatal(err)
			}
		}
	}
	err := p.cmd.Wait()
	if p.t.Context().Err() != nil {
		p.t.Fatal(p.t.Context().Err())
	}
	// A process that ends before the signal arrives has a code of its own.
	return err != nil && p.cmd.ProcessState.ExitCode() == -1
}

// follow notes a line of the log and returns the stage that it ends, if it does.
func (p *process) follow(line string) (string, bool) {
	if line == "" {
		return "", false
	}
	if p.tail = append(p.tail, line); len(p.tail) > 50 {
		p.tail = p.tail[1:]
	}
	var entry struct{ Msg, Stage string }
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Msg != "stage done" {
		return "", false
	}
	now := time.Now()
	p.ended = append(p.ended, stage{entry.Stage, now.Sub(p.last)})
	p.last = now
	return entry.Stage, true
}

// timeline returns the stages of a process that has ended.
func (p *process) timeline() []stage { return append(p.ended, stage{took: time.Since(p.last)}) }

func (p *process) code() int { return p.cmd.ProcessState.ExitCode() }

// log returns the end of what the process wrote to stderr.
func (p *process) log() string { return strings.Join(p.tail, "") }
