// Command newfamily measures what a generation knows of a family of nodes that came after it, and what a refresh
// makes of that:
//
//	go run ./cmd/bench/newfamily -data DIR -label games
//	go run ./cmd/bench/newfamily -data DIR -word toner
//	go run ./cmd/bench/newfamily -data DIR -share 0.05
//
// DIR holds nodes.jsonl.gz (id, text, label) and edges.jsonl.gz (src, dst). The family are the nodes of a label, those
// whose text has a word, or for comparison a random share of all. A tenth of all edges is hidden from everything.
// Generation 1 is built without the family. Then the family comes with its edges, in random order: after each of
// several steps the measures of refresh.drift are printed. Generation 2 is built from all. Each generation is asked
// for the hidden edges of the family and for the other ones: AUC and MRR against nodes drawn by degree.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/internal/graphdir"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/drift"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
)

func main() {
	var b bench
	data := flag.String("data", "../shared/data/debian-packages", "folder of the graph")
	flag.StringVar(&b.label, "label", "", "the family: nodes of this label")
	flag.StringVar(&b.word, "word", "", "the family: nodes with this word in their text")
	flag.Float64Var(&b.share, "share", 0, "no family: this share of the nodes")
	flag.IntVar(&b.steps, "steps", 5, "steps in which the family comes")
	flag.Uint64Var(&b.seed, "seed", 1, "of the hidden edges and of the order")
	modes := flag.String("modes", "local,full", "how to build the second generation")
	verbose := flag.Bool("v", false, "log the builds")
	flag.Parse()
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelInfo
	}
	b.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	stage.Exit("newfamily", b.run(context.Background(), *data, strings.Split(*modes, ",")))
}

type bench struct {
	label, word string
	share       float64
	steps       int
	seed        uint64
	log         *slog.Logger

	graph  *train.Graph
	family []bool
	known  *train.Graph // without the hidden edges
	of     struct{ family, others []eval.Edge }
}

func (b *bench) run(ctx context.Context, dir string, modes []string) error {
	g, err := graphdir.Read(dir)
	if err != nil {
		return err
	}
	b.graph = (*train.Graph)(g)
	members := b.choose()
	b.hide()
	fmt.Printf("%d nodes, %d of them come later; hidden edges: %d of the family, %d others\n", b.graph.Len(),
		len(members), len(b.of.family), len(b.of.others))

	first := &memstore.Store{}
	before := b.source(1, func(i int) bool { return !b.family[i] })
	g1, used, err := b.build(ctx, first, 1, before, generation.Full)
	if err != nil {
		return err
	}
	if err := b.report("generation 1, without the family", g1, used); err != nil {
		return err
	}
	if err := b.stream(ctx, g1, before, members); err != nil {
		return err
	}
	after := b.source(2, func(int) bool { return true })
	for _, mode := range modes {
		if mode != string(generation.Full) && mode != string(generation.Local) {
			return fmt.Errorf("mode %q: use full or local", mode)
		}
		store, err := stage.CopyOf(ctx, first)
		if err != nil {
			return err
		}
		g2, used, err := b.build(ctx, store, 2, after, generation.Mode(mode))
		if err != nil {
			return err
		}
		if err := b.report("generation 2, "+mode, g2, used); err != nil {
			return err
		}
	}
	return nil
}

// choose chooses the family, and returns it in the order in which it comes.
func (b *bench) choose() []int32 {
	b.family = make([]bool, b.graph.Len())
	var members []int32
	for i := range b.family {
		r := numeric.NewRand(b.seed, 'F', numeric.HashString(b.graph.IDs[i]))
		switch {
		case b.label != "":
			b.family[i] = b.graph.Classes[i] == b.label
		case b.word != "":
			b.family[i] = slices.Contains(strings.FieldsFunc(strings.ToLower(b.graph.Texts[i]), func(c rune) bool {
				return c < 'a' || c > 'z'
			}), b.word)
		default:
			b.family[i] = r.Float64() < b.share
		}
		if b.family[i] {
			members = append(members, int32(i))
		}
	}
	r := numeric.NewRand(b.seed, 'O')
	r.Shuffle(members)
	return members
}

// hide hides a tenth of the edges, and divides them by whether they have an end in the family, which is their query.
func (b *bench) hide() {
	const hidden = 0.1
	known, edges := eval.Split(b.graph, hidden, b.seed+1000)
	b.known = known
	for _, e := range edges {
		switch {
		case b.family[e.Src]:
			b.of.family = append(b.of.family, e)
		case b.family[e.Dst]:
			b.of.family = append(b.of.family, eval.Edge{Src: e.Dst, Dst: e.Src})
		default:
			b.of.others = append(b.of.others, e)
		}
	}
}

// row is a node among those that are there.
func (b *bench) row(i int, there func(int) bool) rows.Row {
	r := rows.Row{NodeID: b.graph.IDs[i], Text: b.graph.Texts[i], Class: b.graph.Classes[i]}
	for _, j := range b.known.Neighbours.Row(i).Index {
		if there(int(j)) {
			r.Labels = append(r.Labels, b.graph.IDs[j])
		}
	}
	return r
}

// build builds and opens a generation, and returns the CPU time that it took.
func (b *bench) build(ctx context.Context, store sink.Store, g int64, s generation.Source, mode generation.Mode) (
	*generation.Generation, time.Duration, error) {
	cfg := config.Default()
	builder := wiring.NewBuilder(&cfg, store, nil, nil, b.log)
	builder.Mode = mode
	began := cpu()
	doc, err := builder.Build(ctx, g, s, generation.UntilReady)
	if err != nil {
		return nil, 0, err
	}
	used := cpu() - began
	for _, s := range doc.Stages {
		b.log.Info("stage", "generation", g, "name", s.Name, "seconds", s.Seconds)
	}
	out, err := generation.Open(ctx, store, doc, nil)
	return out, used, err
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report prints how a generation predicts the hidden edges.
func (b *bench) report(what string, g *generation.Generation, used time.Duration) error {
	dim := g.Encoder.Dim()
	vectors := make([]float32, b.graph.Len()*dim)
	if err := g.Encoder.Encode(b.graph.Texts, vectors); err != nil {
		return err
	}
	fmt.Printf("%-36s %6.1f CPU s", what, used.Seconds())
	for _, set := range []struct {
		name  string
		edges []eval.Edge
	}{{"family", b.of.family}, {"others", b.of.others}} {
		o := eval.LinkOptions{Seed: 1, FromSource: set.name == "family"}
		m, err := eval.Links(vectors, dim, b.known, set.edges, o)
		if err != nil {
			return err
		}
		fmt.Printf("   %s: AUC %.3f ± %.3f, MRR %.3f ± %.3f", set.name, m.AUC, m.AUCStdErr, m.MRR, m.MRRStdErr)
	}
	fmt.Println()
	return nil
}

// stream has the family come, and prints the measures of drift.
func (b *bench) stream(ctx context.Context, g *generation.Generation, cut generation.Source, members []int32) error {
	before := heap()
	m, err := drift.New(g, true)
	if err != nil {
		return err
	}
	began := cpu()
	if err := m.Learn(ctx, cut); err != nil {
		return err
	}
	fmt.Printf("the cut is measured in %.1f CPU s\n", (cpu() - began).Seconds())
	come := make([]bool, b.graph.Len())
	there := func(i int) bool { return !b.family[i] || come[i] }
	cfg := config.Default()
	thresholds := wiring.DriftThresholds(&cfg)
	for step := range b.steps {
		part := members[len(members)*step/b.steps : len(members)*(step+1)/b.steps]
		changed := map[int32]bool{}
		for _, i := range part {
			come[i], changed[i] = true, true
		}
		for _, i := range part {
			for _, j := range b.known.Neighbours.Row(int(i)).Index {
				changed[j] = there(int(j))
			}
		}
		for i := range int32(b.graph.Len()) {
			if !changed[i] {
				continue
			}
			r := b.row(int(i), there)
			if err := m.Apply(&r); err != nil {
				return err
			}
		}
		e, err := m.Evidence()
		if err != nil {
			return err
		}
		fmt.Printf("after %d of %d:\n", len(members)*(step+1)/b.steps, len(members))
		for f := range e.Findings(thresholds) {
			fmt.Printf("  %s\n", f)
		}
	}
	fmt.Printf("the measures hold %.1f MB\n", (heap()-before)/1e6)
	runtime.KeepAlive(m)
	return nil
}

// heap is how much memory is in use, in bytes.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
