// Package generations is the frame of the benchmarks of successive generations: a graph that is read from a folder
// changes in memory, and each generation is built as a service builds it.
package generations

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/graphdir"
	"giantstream/sink"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/build"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/generationtest"
	"giantstream/train/numeric/blas"
)

// Bench is what the flags of a benchmark say.
type Bench struct {
	Graph *train.Graph
	// Modes are how generations after the first are built.
	Modes []string
	// Seed is that of all that chance decides about the changes.
	Seed   uint64
	Config config.Config
	Log    *slog.Logger
}

// Main registers the flags that benchmarks have in common, beside their own, and runs one. It ends the process if there
// is an error.
func Main(program, modes string, b *Bench, run func(ctx context.Context) error) {
	blas32.Use(blas.New())
	data := flag.String("data", "../shared/data/debian-packages", "folder of the graph")
	flag.Uint64Var(&b.Seed, "seed", 1, "of what chance decides")
	flag.StringVar(&modes, "modes", modes, "how generations after the first are built: warm, full; "+
		"apart: full, in spaces of their own")
	verbose := flag.Bool("v", false, "log the builds")
	flag.Parse()
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelInfo
	}
	b.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	b.Config, b.Modes = config.Default(), strings.Split(modes, ",")
	g, err := graphdir.Read(*data)
	if err == nil {
		b.Graph = (*train.Graph)(g)
		err = run(context.Background())
	}
	stage.Exit(program, err)
}

// Source is the graph at a cut as a build reads it.
type Source struct {
	Number int64 // of the last manifest
	Each   iter.Seq[generation.Row]
}

// Cut implements generation.Source.
func (s Source) Cut() map[int]int64 { return map[int]int64{0: s.Number} }

// Hash implements generation.Source.
func (s Source) Hash() string { return strconv.FormatInt(s.Number, 10) }

// Rows implements generation.Source.
func (s Source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for r := range s.Each {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Built is a generation, and the processor seconds that its build took.
type Built struct {
	*generation.Generation
	CPU float64
}

// Build builds the next generation in one of the modes, and opens it. The caller closes its encoder.
func (b *Bench) Build(ctx context.Context, store sink.Store, s Source, mode string) (*Built, error) {
	request := wiring.RequestOf(&b.Config)
	request.Shards = 1
	switch mode {
	case "full":
	case "warm":
		request.Warm = true
	case "apart":
		request.NewSpace = true
	default:
		return nil, fmt.Errorf("mode %q: use warm, full or apart", mode)
	}
	w := &build.Worker{Means: work.Means{Store: store, Resources: wiring.ResourcesOf(&b.Config, nil, nil, b.Log),
		Log: func(context.Context, map[int]int64) (work.Log, error) { return generationtest.LogOf(s), nil }}}
	began := stage.CPUSeconds()
	doc, err := w.Build(ctx, request, stages.Finish)
	if err != nil {
		return nil, err
	}
	used := stage.CPUSeconds() - began
	for _, s := range doc.Stages {
		b.Log.Info("stage", "generation", doc.Generation, "name", s.Name, "seconds", s.Seconds)
	}
	g, err := generation.Open(ctx, store, doc, nil)
	return &Built{g, used}, err
}

// Encode returns the vectors of texts, a row each.
func (g *Built) Encode(texts []string) ([]float32, error) {
	vectors := make([]float32, len(texts)*g.Encoder.Dim())
	return vectors, g.Encoder.Encode(texts, vectors)
}

// PrintDifference prints by how much scores differ from others of the same hidden edges.
func PrintDifference(what string, scores, others eval.LinkScores) error {
	d, err := eval.Difference(scores, others)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Printf("%s, on the same %d hidden edges: AUC %+.4f ± %.4f, MRR %+.4f ± %.4f\n", what, d.Edges, d.AUC,
		d.AUCStdErr,
		d.MRR, d.MRRStdErr)
	return nil
}
