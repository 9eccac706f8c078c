// Command lived measures a catalog that lives through generations beside one that is built from scratch each time:
//
//	go run ./cmd/bench/lived -data DIR -steps 10 -modes kept,turned,scratch
//
// DIR holds nodes.jsonl.gz (id, text, label) and edges.jsonl.gz (src, dst). The catalog begins with three fifths of the
// nodes. Each step is one of -history, in turn:
//
//	grow     a tenth of all nodes comes
//	change   7.5 % of the texts change: they lose a third of their words and gain as many of a neighbour's
//	family   nodes that are linked with each other come at once, a twentieth of all
//	remove   a tenth of the nodes goes
//	rewire   half of the links of a tenth of the nodes move to neighbours of neighbours
//	drift    1.5 % of the nodes come, 1.5 % go, 1 % of the texts change, half of the links of 1 % of the nodes move
//
// After each, every mode builds a generation on the graph as it is then: "kept" is averaged with the one before and
// turned to it, "turned" is only turned, "scratch" has never had another. A tenth of the links is hidden from all of
// them, from the first step to the last, so that none has learned in an earlier generation what it is asked in a later
// one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/config"
	"giantstream/internal/graphdir"
	"giantstream/sink/memstore"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric/blas"
)

func main() {
	blas32.Use(blas.New())
	b := bench{config: config.Default()}
	data := flag.String("data", "../shared/data/citeseer", "folder of the graph")
	history := flag.String("history", "grow,change,family,remove,rewire", "what happens, a step each, in turn")
	modes := flag.String("modes", "kept,scratch", "how generations are built: kept, turned, scratch")
	flag.IntVar(&b.steps, "steps", 5, "how many steps after the first generation")
	flag.Uint64Var(&b.seed, "seed", 1, "of what chance decides")
	verbose := flag.Bool("v", false, "log the builds")
	flag.Parse()
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelInfo
	}
	b.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	b.history, b.modes = strings.Split(*history, ","), strings.Split(*modes, ",")
	g, err := graphdir.Read(*data)
	if err == nil {
		b.graph = (*train.Graph)(g)
		err = b.run(context.Background())
	}
	stage.Exit("lived", err)
}

type bench struct {
	graph *train.Graph
	// modes are how generations are built, a line each.
	modes   []string
	seed    uint64
	steps   int
	history []string
	config  config.Config
	log     *slog.Logger
}

// line is a mode's generations.
type line struct {
	mode  string
	store *memstore.Store
	last  *lived
}

// lived is a generation, and what it says of every node of its graph.
type lived struct {
	*built
	state   *state
	vectors []float32 // zeros for nodes that are not there
	scores  eval.LinkScores
	probes  []eval.ProbeMetrics // by rate
}

func (b *bench) run(ctx context.Context) error {
	fmt.Println("| step | mode | class | link AUC | MRR | less scratch: AUC, MRR | new on old | kept | CPU s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	return b.replay(ctx, func(o outcome) { fmt.Println(o) })
}

// replay lives through the history in every mode.
func (b *bench) replay(ctx context.Context, each func(outcome)) error {
	b.config.Train.Seed = b.seed
	lines := make([]*line, len(b.modes))
	for i, mode := range b.modes {
		lines[i] = &line{mode: mode}
	}
	now := b.begin()
	for step := 0; step <= b.steps; step++ {
		what := "beginning"
		if step > 0 {
			what = b.history[(step-1)%len(b.history)]
			if err := b.happen(now, what, step); err != nil {
				return err
			}
		}
		all, err := b.live(ctx, now.clone(), fmt.Sprintf("%d, %s", step, what), lines)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		for _, o := range all {
			each(o)
		}
	}
	return nil
}

// outcome is what a step has made of a line.
type outcome struct {
	what, mode string
	*lived
	less *eval.LinkDifference // nil beside no generation from scratch
	kin  *eval.Overlap        // with the generation before, nil for the first
}

// String is a line of the table.
func (o outcome) String() string {
	less, kin := "", " | "
	if d := o.less; d != nil {
		less = fmt.Sprintf("%+.4f ± %.4f, %+.4f ± %.4f", d.AUC, d.AUCStdErr, d.MRR, d.MRRStdErr)
	}
	if o.kin != nil {
		kin = fmt.Sprintf("%.3f | %.3f", o.kin.NewOnOld, o.kin.Kept)
	}
	m := o.scores.Metrics()
	var class []string
	for _, p := range o.probes {
		class = append(class, fmt.Sprintf("%.3f", p.Accuracy))
	}
	return fmt.Sprintf("| %s | %s | %s | %.3f | %.3f | %s | %s | %.0f |", o.what, o.mode, strings.Join(class, " / "),
		m.AUC, m.MRR, less, kin, o.CPU)
}

// live builds the next generation of every line, and compares it with the one from scratch and with the one before.
func (b *bench) live(ctx context.Context, now *state, what string, lines []*line) ([]outcome, error) {
	var scratch *lived
	next := make([]*lived, len(lines))
	for i, l := range lines {
		var err error
		if next[i], err = b.build(ctx, l, now); err != nil {
			return nil, fmt.Errorf("%s: %w", l.mode, err)
		}
		if l.mode == "scratch" {
			scratch = next[i]
		}
	}
	out := make([]outcome, len(lines))
	for i, l := range lines {
		out[i] = outcome{what: what, mode: l.mode, lived: next[i]}
		if scratch != nil && scratch != next[i] {
			d, err := eval.Difference(next[i].scores, scratch.scores)
			if err != nil {
				return nil, err
			}
			out[i].less = &d
		}
		if l.last != nil {
			o := kinship(l.last, next[i])
			out[i].kin = &o
		}
		l.last = next[i]
	}
	return out, nil
}

// build builds a line's next generation, and asks it what it was not shown.
func (b *bench) build(ctx context.Context, l *line, now *state) (*lived, error) {
	if l.mode == "scratch" {
		l.store = nil
	}
	if l.store == nil {
		l.store = &memstore.Store{}
	}
	g, err := b.buildNext(ctx, l.store, b.source(now), l.mode)
	if err != nil {
		return nil, err
	}
	if _, err := generation.Prune(ctx, l.store, 2); err != nil {
		return nil, err
	}
	out := &lived{built: g, state: now}
	if out.vectors, err = g.encode(now.texts); err != nil {
		return nil, err
	}
	dim := g.Encoder.Dim()
	for i, there := range now.there {
		if !there {
			clear(out.vectors[i*dim : (i+1)*dim])
		}
	}
	known, hidden, classes := b.exam(now)
	o := eval.LinkOptions{Seed: b.seed}
	if out.scores, err = eval.ScoreLinks(out.vectors, dim, known, hidden, o); err != nil {
		return nil, err
	}
	for _, rate := range b.config.Evaluate.ProbeRates {
		p, err := eval.Probe(out.vectors, dim, classes, eval.ProbeOptions{Fraction: rate, Seed: b.seed})
		if errors.Is(err, eval.ErrNoClasses) {
			break
		}
		if err != nil {
			return nil, err
		}
		out.probes = append(out.probes, p)
	}
	return out, nil
}
