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
	"runtime"
	"slices"
	"strings"

	"giantstream/cmd/bench/internal/generations"
	"giantstream/cmd/bench/internal/stage"
	"giantstream/cmd/internal/wiring"
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
	flag.StringVar(&b.label, "label", "", "the family: nodes of this label")
	flag.StringVar(&b.word, "word", "", "the family: nodes with this word in their text")
	flag.Float64Var(&b.share, "share", 0, "no family: this share of the nodes")
	flag.IntVar(&b.steps, "steps", 5, "steps in which the family comes")
	generations.Main("newfamily", "local,full", &b.Bench, b.run)
}

type bench struct {
	generations.Bench
	label, word string
	share       float64
	steps       int

	family []bool
	known  *train.Graph // without the hidden edges
	asked  []asked
}

// asked are the hidden edges of the family, or the other ones.
type asked struct {
	name  string
	edges []eval.Edge
}

func (b *bench) run(ctx context.Context) error {
	members := b.choose()
	b.hide()
	fmt.Printf("%d nodes, %d of them come later; hidden edges: %d of the family, %d others\n", b.Graph.Len(),
		len(members), len(b.asked[0].edges), len(b.asked[1].edges))

	first := &memstore.Store{}
	before := b.source(1, func(i int) bool { return !b.family[i] })
	g1, err := b.Build(ctx, first, before, "full")
	if err != nil {
		return err
	}
	defer train.Close(g1.Encoder) //nolint:errcheck // it was read
	was, err := b.report("generation 1, without the family", g1)
	if err != nil {
		return err
	}
	if err := b.stream(ctx, g1.Generation, before, members); err != nil {
		return err
	}
	after := b.source(2, func(int) bool { return true })
	for _, mode := range b.Modes {
		store, err := stage.CopyOf(ctx, first)
		if err != nil {
			return err
		}
		g2, err := b.Build(ctx, store, after, mode)
		if err != nil {
			return err
		}
		is, err := b.report("generation 2, "+mode, g2)
		train.Close(g2.Encoder) //nolint:errcheck // it was read
		if err != nil {
			return err
		}
		if err := b.printDifferences(is, was); err != nil {
			return err
		}
	}
	return nil
}

// choose chooses the family, and returns it in the order in which it comes.
func (b *bench) choose() []int32 {
	b.family = make([]bool, b.Graph.Len())
	var members []int32
	for i := range b.family {
		r := numeric.NewRand(b.Seed, 'F', numeric.HashString(b.Graph.IDs[i]))
		switch {
		case b.label != "":
			b.family[i] = b.Graph.Classes[i] == b.label
		case b.word != "":
			b.family[i] = slices.Contains(strings.FieldsFunc(strings.ToLower(b.Graph.Texts[i]), func(c rune) bool {
				return c < 'a' || c > 'z'
			}), b.word)
		default:
			b.family[i] = r.Float64() < b.share
		}
		if b.family[i] {
			members = append(members, int32(i))
		}
	}
	r := numeric.NewRand(b.Seed, 'O')
	r.Shuffle(members)
	return members
}

// hide hides a tenth of the edges, and divides them by whether they have an end in the family, which is their query.
func (b *bench) hide() {
	const hidden = 0.1
	known, edges := eval.Split(b.Graph, hidden, b.Seed+1000)
	b.known, b.asked = known, []asked{{name: "family"}, {name: "others"}}
	family, others := &b.asked[0], &b.asked[1]
	for _, e := range edges {
		switch {
		case b.family[e.Src]:
			family.edges = append(family.edges, e)
		case b.family[e.Dst]:
			family.edges = append(family.edges, eval.Edge{Src: e.Dst, Dst: e.Src})
		default:
			others.edges = append(others.edges, e)
		}
	}
}

// row is a node among those that are there.
func (b *bench) row(i int, there func(int) bool) rows.Row {
	r := rows.Row{NodeID: b.Graph.IDs[i], Text: b.Graph.Texts[i], Class: b.Graph.Classes[i]}
	for _, j := range b.known.Neighbours.Row(i).Index {
		if there(int(j)) {
			r.Labels = append(r.Labels, b.Graph.IDs[j])
		}
	}
	return r
}

// report prints how a generation predicts the hidden edges, and returns how it scored those of each part.
func (b *bench) report(what string, g *generations.Built) ([]eval.LinkScores, error) {
	vectors, err := g.Encode(b.Graph.Texts)
	if err != nil {
		return nil, err
	}
	fmt.Printf("%-36s %6.1f CPU s", what, g.CPU)
	var all []eval.LinkScores
	for k, set := range b.asked {
		scores, err := eval.ScoreLinks(vectors, g.Encoder.Dim(), b.known, set.edges,
			eval.LinkOptions{Seed: 1, FromSource: k == 0})
		if err != nil {
			return nil, err
		}
		m := scores.Metrics()
		fmt.Printf("   %s: AUC %.3f ± %.3f, MRR %.3f ± %.3f", set.name, m.AUC, m.AUCStdErr, m.MRR, m.MRRStdErr)
		all = append(all, scores)
	}
	fmt.Println()
	return all, nil
}

// printDifferences prints by how much a generation predicts each part of the hidden edges better than the one before,
// and of the other ones those whose query has a neighbour in the family, or none.
func (b *bench) printDifferences(is, was []eval.LinkScores) error {
	touched := make([]uint8, b.Graph.Len())
	for i := range touched {
		if b.touched(i) {
			touched[i] = 1
		}
	}
	others := b.asked[1].name
	for _, part := range []struct {
		name    string
		is, was eval.LinkScores
	}{
		{b.asked[0].name, is[0], was[0]}, {others, is[1], was[1]},
		{others + " beside the family", is[1].Where(touched, 1), was[1].Where(touched, 1)},
		{others + " apart from it", is[1].Where(touched, 0), was[1].Where(touched, 0)},
	} {
		if len(part.is) == 0 {
			continue
		}
		if err := generations.PrintDifference("  "+part.name+", less generation 1", part.is, part.was); err != nil {
			return err
		}
	}
	return nil
}

// stream has the family come, and prints the measures of drift.
func (b *bench) stream(ctx context.Context, g *generation.Generation, cut generation.Source, members []int32) error {
	before := heap()
	m, err := drift.New(g, true)
	if err != nil {
		return err
	}
	began := stage.CPUSeconds()
	if err := m.Learn(ctx, cut); err != nil {
		return err
	}
	fmt.Printf("the cut is measured in %.1f CPU s\n", stage.CPUSeconds()-began)
	come := make([]bool, b.Graph.Len())
	there := func(i int) bool { return !b.family[i] || come[i] }
	thresholds := wiring.DriftThresholds(&b.Config)
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
		for i := range int32(b.Graph.Len()) {
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
