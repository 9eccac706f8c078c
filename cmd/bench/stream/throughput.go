package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// workload is a pair of graphs in topics of their own.
type workload struct {
	name        string
	short, long *graph
	contenders  []contender
}

// topics of a workload's graph, nodes and edges.
func (w *workload) topics(size string) []string {
	base := fmt.Sprintf("bench-%d.", w.long.nodes) + strings.ReplaceAll(w.name, " ", ".") + "." + size
	return []string{base + ".nodes", base + ".edges"}
}

// throughput compares contenders on nodes, and on nodes and edges.
func throughput(ctx context.Context, args []string) error {
	fl := newFlags("throughput")
	nodes := fl.Int("nodes", 500_000, "nodes of the long topic")
	degree := fl.Int("degree", 2, "edges per node in the workload with edges, which has nodes/(1+degree) nodes")
	rounds := fl.Int("rounds", 3, "rounds")
	only := fl.String("only", "", "only contenders whose name contains this `text`")
	profile := fl.Bool("profile", false, "write CPU profiles of giantstream to the directory")
	p, err := fl.open(args)
	if err != nil {
		return err
	}
	own := []contender{p.bareConsumer(), p.giantstream("1s", "zstd", *profile), p.giantstream("1s", "snappy", *profile),
		p.giantstream("30s", "zstd", *profile)}
	peers, missing := p.peers()
	for _, m := range missing {
		progress("%s is not installed here and is left out", m)
	}
	short := max(1000, *nodes/20)
	newWorkload := func(name string, parts, degree int, contenders []contender) workload {
		return workload{name,
			newGraph(short/parts, degree, fl.seed), newGraph(*nodes/parts, degree, fl.seed), contenders}
	}
	began := time.Now()
	var lines []*entry
	for _, w := range []workload{
		newWorkload("nodes", 1, 0, slices.Concat(own, peers)),
		newWorkload("nodes and edges", 1+*degree, *degree, own),
	} {
		measured, err := p.compare(ctx, &w, *rounds, *only)
		if err != nil {
			return err
		}
		lines = append(lines, measured...)
	}
	fmt.Printf("\n%d records of %d bytes per node and of about 50 per edge; "+
		"up to %d rounds, medians; %d cores; %.0f minutes\n\n",
		*nodes, recordBytes, *rounds, runtime.NumCPU(), time.Since(began).Minutes())
	return printLines(lines)
}

// compare runs a workload. Contenders that never finished have no figures.
func (p *place) compare(ctx context.Context, w *workload, rounds int, only string) (in []*entry, err error) {
	for i, c := range w.contenders {
		if strings.Contains(c.name, only) {
			in = append(in, &entry{contender: c, workload: w.name,
				run: fmt.Sprintf("b%s-%d", strings.ReplaceAll(w.name, " ", "-"), i)})
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
		if err := g.produce(ctx, p.client, t[0], t[1]); err != nil {
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
				progress("%v; it is left out from here on", err) // a second attempt would only make the others wait
				e.failed = true
			default:
				return nil, err
			}
		}
	}
	return in, nil
}

// entry is a contender of one workload, and a line of the table.
type entry struct {
	contender
	workload string
	run      string // the prefix of its runs' names
	figures  []figure
	failed   bool
}

// measure runs a contender on both topics.
func (p *place) measure(ctx context.Context, w *workload, e *entry, round int) (figure, error) {
	var took [2]usage
	for j, size := range []string{"short", "long"} {
		rows := []*graph{w.short, w.long}[j].records()
		var err error
		took[j], err = e.contender.measure(ctx, p.dir, fmt.Sprintf("%s-%d-%s", e.run, round, size),
			w.topics(size), rows)
		if err != nil {
			return figure{}, err
		}
		progress("round %d, %s, %s: %.2f s wall, %.2f s CPU, %d MiB, load %.1f", round+1, e.name, size,
			took[j].wall.Seconds(), took[j].cpu.Seconds(), took[j].peak, loadAverage())
	}
	return marginal(took[0], took[1], w.long.records()-w.short.records()), nil
}

func printLines(lines []*entry) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| \t| \t| records/s \t| CPU s per million records \t| peak MiB \t| load \t| rounds \t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, l := range lines {
		if len(l.figures) == 0 {
			fmt.Fprintf(t, "| %s \t| %s \t| did not finish \t| \t| \t| \t| 0 \t|\n", l.workload, l.name)
			continue
		}
		m := median(l.figures)
		fmt.Fprintf(t, "| %s \t| %s \t| %.0f \t| %.2f \t| %.0f \t| %.1f \t| %d \t|\n",
			l.workload, l.name, m[0], m[1], m[2], m[3], len(l.figures))
	}
	return t.Flush()
}
