// Command alignment measures how successive generations line up, from scratch and with warm starts:
//
//	go run ./cmd/bench/alignment -data DIR -modes warm,full
//
// DIR holds nodes.jsonl.gz (id, text, label) and edges.jsonl.gz (src, dst). Before each generation after the first, a
// share of the nodes changes: some leave, others come (back), texts are edited and edges moved. Each generation is
// built as a service builds it, with default settings. Then new vectors are asked for their ten nearest nodes among the
// vectors that an earlier generation has published, and what they find is compared with what they find when all nodes
// are embedded anew.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/graphdir"
	"giantstream/sink/memstore"
	"giantstream/train"
	"giantstream/train/generation"
)

func main() {
	var b bench
	data := flag.String("data", "../shared/data/debian-packages", "folder of the graph")
	flag.Float64Var(&b.come, "come", 0.015, "share of the nodes that come, and that leave")
	flag.Float64Var(&b.edit, "edit", 0.01, "share of the nodes whose texts are edited")
	flag.Float64Var(&b.move, "move", 0.01, "share of the nodes half of whose edges move")
	flag.IntVar(&b.generations, "generations", 3, "how many")
	flag.Uint64Var(&b.seed, "seed", 1, "of the changes and of the training")
	modes := flag.String("modes", "warm,full", "how generations after the first are built; apart: full, in spaces of "+
		"their own")
	verbose := flag.Bool("v", false, "log the builds")
	flag.Parse()
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelInfo
	}
	b.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	stage.Exit("alignment", b.run(context.Background(), *data, strings.Split(*modes, ",")))
}

type bench struct {
	come, edit, move float64
	generations      int
	seed             uint64
	log              *slog.Logger

	graph  *train.Graph
	states []state
}

// built is a generation that was built, and what it says of every node: its vector of the node's text as it was then,
// zeros where the node was not there.
type built struct {
	doc     *generation.Doc
	used    time.Duration
	vectors []float32
}

func (b *bench) run(ctx context.Context, dir string, modes []string) error {
	g, err := graphdir.Read(dir)
	if err != nil {
		return err
	}
	b.graph = (*train.Graph)(g)
	b.evolve()
	b.printChanges()
	first := &memstore.Store{}
	one, err := b.build(ctx, first, 1, "full")
	if err != nil {
		return err
	}
	b.printBuilt("1", one)
	for _, mode := range modes {
		store, err := stage.CopyOf(ctx, first)
		if err != nil {
			return err
		}
		all := []*built{one}
		for k := 2; k <= b.generations; k++ {
			next, err := b.build(ctx, store, k, mode)
			if err != nil {
				return err
			}
			b.printBuilt(fmt.Sprintf("%d, %s", k, mode), next)
			for old := k - 2; old >= 0; old-- {
				if old == k-2 || old == 0 {
					b.compare(mode, old, k-1, all[old], next)
				}
			}
			all = append(all, next)
		}
	}
	return nil
}

// build builds generation k, and encodes every node of it.
func (b *bench) build(ctx context.Context, store *memstore.Store, k int, mode string) (*built, error) {
	cfg := config.Default()
	cfg.Train.Seed = b.seed
	builder := wiring.NewBuilder(&cfg, store, nil, nil, b.log)
	switch mode {
	case "warm":
		builder.Mode = generation.Warm
	case "apart":
		builder.NewSpace = true
	case "full":
	default:
		return nil, fmt.Errorf("mode %q: use warm, full or apart", mode)
	}
	began := cpu()
	doc, err := builder.Build(ctx, int64(k), source{b, k - 1}, generation.UntilReady)
	if err != nil {
		return nil, err
	}
	out := &built{doc: doc, used: cpu() - began}
	opened, err := generation.Open(ctx, store, doc, nil)
	if err != nil {
		return nil, err
	}
	defer train.Close(opened.Encoder) //nolint:errcheck // it was read
	s, dim := &b.states[k-1], opened.Encoder.Dim()
	out.vectors = make([]float32, len(s.texts)*dim)
	if err := opened.Encoder.Encode(s.texts, out.vectors); err != nil {
		return nil, err
	}
	for i, there := range s.there {
		if !there {
			clear(out.vectors[i*dim : (i+1)*dim])
		}
	}
	return out, nil
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (b *bench) printBuilt(name string, g *built) {
	line := fmt.Sprintf("generation %s: space %d, warm of %d, %.1f CPU s", name, g.doc.Space, g.doc.WarmOf,
		g.used.Seconds())
	for _, e := range g.doc.Evaluation {
		if e.Encoder != g.doc.Encoder.Kind {
			continue
		}
		if l := e.Links; l != nil {
			line += fmt.Sprintf("; AUC %.4f ± %.4f, MRR %.4f ± %.4f", l.AUC, l.AUCStdErr, l.MRR, l.MRRStdErr)
		}
		for _, p := range e.Probes {
			line += fmt.Sprintf("; class at %g %.4f ± %.4f", p.Rate, p.Accuracy, p.StdErr)
		}
	}
	fmt.Println(line)
}
