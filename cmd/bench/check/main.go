// Command check compares the speed of the program in the working tree with that of a commit:
//
//	go run ./cmd/bench/check -base COMMIT -rounds 3
//
// Both sides do the same work in each round, one after the other, and the side that goes first alternates: other work
// on the machine then slows both alike. The table has the median of each side and of the rounds' ratios. The status
// is 1 if the processor time of some work has risen in every round, and by more than five per cent as the median.
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"giantstream/cmd/bench/internal/stage"
)

// tolerated is how much more processor time a piece of work may take.
const tolerated = 1.05

func main() {
	c := check{}
	flag.StringVar(&c.base, "base", "", "commit to compare the working tree with (default: the last tag)")
	flag.IntVar(&c.rounds, "rounds", 3, "how often each side does the work")
	flag.IntVar(&c.copies, "copies", 8, "copies of the sample graph that generations are built of")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx)
	stop()
	stage.Exit("check", err)
}

type check struct {
	base           string
	rounds, copies int
	dir            string
	sides          [2]string // programs: of the base, of the working tree
}

// work is a piece of work. It gets an empty folder, and a store that the program of the working tree has built.
type work struct {
	name string
	args func(folder, graph, store string) []string
}

func works() []work {
	run := func(encoder string) func(folder, graph, store string) []string {
		return func(folder, graph, _ string) []string {
			return []string{"run", "--nodes", filepath.Join(graph, "nodes.jsonl.gz"), "--edges",
				filepath.Join(graph, "edges.jsonl.gz"), "--store", folder, "--encoder", encoder, "--until-idle"}
		}
	}
	return []work{
		{"quickstart", func(folder, _, _ string) []string { return []string{"quickstart", "--dir", folder} }},
		{"files to embeddings, linear", run("linear")},
		{"files to embeddings, hybrid", run("hybrid")},
		{"2,000 similar items", func(_, graph, store string) []string {
			return []string{"similar", "--store", store, "--questions", filepath.Join(graph, "questions")}
		}},
	}
}

func (c *check) run(ctx context.Context) (err error) {
	if c.dir, err = os.MkdirTemp("", "check-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if err := c.build(ctx); err != nil {
		return err
	}
	graph, store := filepath.Join(c.dir, "graph"), filepath.Join(c.dir, "store")
	if err := c.prepare(ctx, graph, store); err != nil {
		return err
	}
	slower := false
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "work\ttime, before\tafter\tratio\tprocessor time, before\tafter\tratio\tpeak, before\tafter")
	for _, w := range works() {
		var measured [2][]usage
		for round := range c.rounds {
			for k := range 2 {
				side := (round + k) % 2
				u, err := c.measure(ctx, side, w, graph, store)
				if err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
				measured[side] = append(measured[side], u)
			}
			fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", w.name, round+1, c.rounds)
		}
		slower = row(table, w.name, measured) || slower
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if slower {
		return fmt.Errorf("some work takes over %.0f %% more processor time", 100*(tolerated-1))
	}
	return nil
}

// build compiles the program of both sides.
func (c *check) build(ctx context.Context) error {
	if c.base == "" {
		tag, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--abbrev=0").Output()
		if err != nil {
			return errors.New("there is no tag to compare with: name a commit by -base")
		}
		c.base = string(tag[:len(tag)-1])
	}
	tree := filepath.Join(c.dir, "base")
	if err := command(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", tree, c.base); err != nil {
		return err
	}
	c.sides = [2]string{filepath.Join(c.dir, "before"), filepath.Join(c.dir, "after")}
	err := errors.Join(command(ctx, tree, "go", "build", "-o", c.sides[0], "./cmd/giantstream"),
		command(ctx, ".", "go", "build", "-o", c.sides[1], "./cmd/giantstream"))
	// Without a context, since it has to be done after an interrupt, too.
	return errors.Join(err, command(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", tree))
}

// prepare writes the graph, questions and the store that is asked.
func (c *check) prepare(ctx context.Context, graph, store string) error {
	sample := filepath.Join(c.dir, "sample")
	after := c.sides[1]
	if err := errors.Join(command(ctx, ".", after, "quickstart", "--dir", sample, "--encoder", "linear"),
		command(ctx, ".", "go", "run", "./cmd/bench/large", "-data", filepath.Join(sample, "sample"),
			"-copies", strconv.Itoa(c.copies), "-out", graph)); err != nil {
		return err
	}
	args := works()[1].args(store, graph, "")
	return errors.Join(command(ctx, ".", after, args...), writeQuestions(graph))
}

func writeQuestions(graph string) (err error) {
	f, err := os.Open(filepath.Join(graph, "nodes.jsonl.gz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	var questions []byte
	nodes := json.NewDecoder(unzipped)
	for range 2000 {
		var node struct {
			ID string `json:"id"`
		}
		if err := nodes.Decode(&node); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		question, err := json.Marshal(node)
		if err != nil {
			return err
		}
		questions = append(append(questions, question...), '\n')
	}
	return os.WriteFile(filepath.Join(graph, "questions"), questions, 0o600)
}

// command runs a program whose output only matters if it fails.
func command(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(program), args, err, out)
	}
	return nil
}

// usage is what a piece of work took.
type usage struct{ time, processor, peak float64 } // seconds, seconds, MiB

func (c *check) measure(ctx context.Context, side int, w work, graph, store string) (u usage, err error) {
	folder := filepath.Join(c.dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	cmd := exec.CommandContext(ctx, c.sides[side], w.args(filepath.Join(folder, "it"), graph, store)...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return u, fmt.Errorf("%w\n%s", err, out)
	}
	u.time = time.Since(start).Seconds()
	u.processor = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = float64(r.Maxrss) / 1024 // KiB on Linux
	}
	return u, nil
}

// row prints the medians of some work and says whether it has become slower.
func row(to io.Writer, name string, measured [2][]usage) (slower bool) {
	of := func(side int, what func(usage) float64) []float64 {
		var all []float64
		for _, u := range measured[side] {
			all = append(all, what(u))
		}
		return all
	}
	fmt.Fprint(to, name)
	for _, what := range []func(usage) float64{
		func(u usage) float64 { return u.time }, func(u usage) float64 { return u.processor },
	} {
		before, after := of(0, what), of(1, what)
		var ratios []float64
		for k := range before {
			ratios = append(ratios, after[k]/before[k])
		}
		fmt.Fprintf(to, "\t%.1f s\t%.1f s\t%.2f (%.2f to %.2f)", median(before), median(after), median(ratios),
			slices.Min(ratios), slices.Max(ratios))
		slower = median(ratios) > tolerated && slices.Min(ratios) > 1 // of the processor time, which comes last
	}
	peak := func(u usage) float64 { return u.peak }
	fmt.Fprintf(to, "\t%.0f MiB\t%.0f MiB\n", median(of(0, peak)), median(of(1, peak)))
	return slower
}

func median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
