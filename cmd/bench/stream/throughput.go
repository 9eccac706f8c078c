package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
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
	own := []contender{p.bareConsumer(), p.giantstream("1s", *profile), p.giantstream("30s", *profile)}
	peers, missing := p.peers()
	for _, m := range missing {
		progress("%s could not be had here and is left out", m)
	}
	short := max(1000, *nodes/20)
	pruned := *nodes / (1 + *degree)
	for _, w := range []workload{
		{name: "nodes", short: newGraph(short, 0, *seed), long: newGraph(*nodes, 0, *seed), contenders: append(own[:len(own):len(own)], peers...)},
		{name: "nodes and edges", short: newGraph(short/(1+*degree), *degree, *seed), long: newGraph(pruned, *degree, *seed), withEdges: true, contenders: own},
	} {
		if err := p.compare(ctx, &w, *rounds, *only); err != nil {
			return err
		}
	}
	return nil
}

// compare runs a workload and prints its table.
func (p *place) compare(ctx context.Context, w *workload, rounds int, only string) error {
	sizes := []struct {
		name string
		g    *graph
	}{{"short", w.short}, {"long", w.long}}
	for _, s := range sizes {
		t := w.topics(s.name)
		if err := p.topics(ctx, shards, t...); err != nil {
			return err
		}
		edges := ""
		if w.withEdges {
			edges = t[1]
		}
		if err := s.g.produce(ctx, p.client, t[0], edges); err != nil {
			return err
		}
	}
	figures := map[string][]figure{}
	for round := range rounds {
		for i, c := range w.contenders {
			if !strings.Contains(c.name, only) {
				continue
			}
			var took [2]usage
			for j, s := range sizes {
				run := fmt.Sprintf("b%s-%d-%d-%s", strings.ReplaceAll(w.name, " ", "-"), i, round, s.name)
				var err error
				if took[j], err = c.measure(ctx, p.dir, run, w.topics(s.name), w.records(s.g)); err != nil {
					return err
				}
				progress("round %d, %s, %s: %.2f s wall, %.2f s CPU, %d MiB, load %s", round+1, c.name, s.name,
					took[j].wall.Seconds(), took[j].cpu.Seconds(), took[j].rss>>20, load())
			}
			figures[c.name] = append(figures[c.name], marginal(took[0], took[1], w.records(w.long)-w.records(w.short)))
		}
	}
	fmt.Printf("\n%s: %d records of %d bytes per node, %d in all; %d rounds, medians; %d cores, load %s\n\n",
		w.name, 1, recordBytes, w.records(w.long), rounds, runtime.NumCPU(), load())
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| \t| records/s \t| CPU s per million records \t| peak MiB \t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|")
	for _, c := range w.contenders {
		if f := figures[c.name]; len(f) > 0 {
			m := median(f)
			fmt.Fprintf(t, "| %s \t| %.0f \t| %.2f \t| %d \t|\n", c.name, m.rate, m.cpu, m.rss>>20)
		}
	}
	return t.Flush()
}
