package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// workload is a pair of graphs in topics of their own.
type workload struct {
	name        string
	short, long *graph
	withEdges   bool
	contenders  []contender
}

func (w *workload) records(g *graph) int64 {
	if w.withEdges {
		return int64(g.nodes) * int64(1+g.degree)
	}
	return int64(g.nodes)
}

// topics of a workload's graph, nodes and edges.
func (w *workload) topics(size string) []string {
	base := fmt.Sprintf("bench-%d.", w.long.nodes) + strings.ReplaceAll(w.name, " ", ".") + "." + size
	return []string{base + ".nodes", base + ".edges"}
}

// throughput compares contenders on nodes, and on nodes and edges.
func throughput(ctx context.Context, args []string) error {
	fl := flag.NewFlagSet("throughput", flag.ExitOnError)
	dir := fl.String("dir", ".dev/bench-stream/work", "`directory` for logs and state")
	nodes := fl.Int("nodes", 500_000, "nodes of the long topic")
	degree := fl.Int("degree", 2, "edges per node, where there are edges; that graph has nodes/(1+degree) nodes")
	rounds := fl.Int("rounds", 3, "rounds")
	only := fl.String("only", "", "only contenders whose name contains this `text`")
	profile := fl.Bool("profile", false, "write CPU profiles of giantstream to the directory")
	seed := fl.Uint64("seed", 1, "of the generated graph")
	if err := fl.Parse(args); err != nil {
		return err
	}
	p, err := openPlace(*dir)
	if err != nil {
		return err
	}
	own := []contender{p.bareConsumer(), p.giantstream("1s", "zstd", *profile), p.giantstream("1s", "snappy", *profile), p.giantstream("30s", "zstd", *profile)}
	peers, missing := p.peers()
	for _, m := range missing {
		progress("%s could not be had here and is left out", m)
	}
	short := max(1000, *nodes/20)
	pruned := *nodes / (1 + *degree)
	began := time.Now()
	var lines []line
	for _, w := range []workload{
		{name: "nodes", short: newGraph(short, 0, *seed), long: newGraph(*nodes, 0, *seed), contenders: append(own[:len(own):len(own)], peers...)},
		{name: "nodes and edges", short: newGraph(short/(1+*degree), *degree, *seed), long: newGraph(pruned, *degree, *seed), withEdges: true, contenders: own},
	} {
		measured, err := p.compare(ctx, &w, *rounds, *only)
		if err != nil {
			return err
		}
		lines = append(lines, measured...)
	}
	fmt.Printf("\n%d records of %d bytes per node and of about 50 per edge; up to %d rounds, medians; %d cores; %.0f minutes\n\n",
		*nodes, recordBytes, *rounds, runtime.NumCPU(), time.Since(began).Minutes())
	return printLines(lines)
}

// compare runs a workload. Figures are there for those contenders that have
// finished at least once.
func (p *place) compare(ctx context.Context, w *workload, rounds int, only string) ([]line, error) {
	var in []*entry
	for i, c := range w.contenders {
		if strings.Contains(c.name, only) {
			in = append(in, &entry{contender: c, run: fmt.Sprintf("b%s-%d", strings.ReplaceAll(w.name, " ", "-"), i)})
		}
	}
	if len(in) == 0 {
		return nil, nil
	}
	for size, g := range map[string]*graph{"short": w.short, "long": w.long} {
		t := w.topics(size)
		if err := p.topics(ctx, shards, t...); err != nil {
			return nil, err
		}
		edges := ""
		if w.withEdges {
			edges = t[1]
		}
		if err := g.produce(ctx, p.client, t[0], edges); err != nil {
			return nil, err
		}
	}
	for round := range rounds {
		for _, e := range in {
			if e.failed {
				continue
			}
			f, err := p.measure(ctx, w, e, round)
			switch {
			case err == nil:
				e.figures = append(e.figures, f)
			case e.peer && ctx.Err() == nil:
				// It has had its chance: that others wait for it again helps nobody.
				progress("%v; it is left out from here on", err)
				e.failed = true
			default:
				return nil, err
			}
		}
	}
	var lines []line
	for _, e := range in {
		lines = append(lines, line{w.name, e.name, e.figures})
	}
	return lines, nil
}

// entry is a contender of one workload.
type entry struct {
	contender
	run     string // begins the names of its runs
	figures []figure
	failed  bool
}

// measure runs a contender on both topics.
func (p *place) measure(ctx context.Context, w *workload, e *entry, round int) (figure, error) {
	var took [2]usage
	for j, size := range []string{"short", "long"} {
		rows := w.records([]*graph{w.short, w.long}[j])
		var err error
		took[j], err = e.contender.measure(ctx, p.dir, fmt.Sprintf("%s-%d-%s", e.run, round, size), w.topics(size), rows)
		if err != nil {
			return figure{}, err
		}
		progress("round %d, %s, %s: %.2f s wall, %.2f s CPU, %d MiB, load %.1f", round+1, e.name, size,
			took[j].wall.Seconds(), took[j].cpu.Seconds(), took[j].rss>>20, load())
	}
	return marginal(took[0], took[1], w.records(w.long)-w.records(w.short)), nil
}

// line of the table.
type line struct {
	workload, contender string
	figures             []figure
}

func printLines(lines []line) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| \t| \t| records/s \t| CPU s per million records \t| peak MiB \t| load \t| rounds \t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, l := range lines {
		if len(l.figures) == 0 {
			fmt.Fprintf(t, "| %s \t| %s \t| did not finish \t| \t| \t| \t| 0 \t|\n", l.workload, l.contender)
			continue
		}
		m := median(l.figures)
		fmt.Fprintf(t, "| %s \t| %s \t| %.0f \t| %.2f \t| %d \t| %.1f \t| %d \t|\n", l.workload, l.contender, m.rate, m.cpu, m.rss>>20, m.load, len(l.figures))
	}
	return t.Flush()
}
