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

	"giantstream/cmd/bench/internal/generations"
	"giantstream/cmd/bench/internal/stage"
	"giantstream/sink/memstore"
	"giantstream/train/generation/eval"
)

func main() {
	var b bench
	flag.Float64Var(&b.come, "come", 0.015, "share of the nodes that come, and that leave")
	flag.Float64Var(&b.edit, "edit", 0.01, "share of the nodes whose texts are edited")
	flag.Float64Var(&b.move, "move", 0.01, "share of the nodes half of whose edges move")
	flag.IntVar(&b.generations, "generations", 3, "how many")
	generations.Main("alignment", "warm,full", &b.Bench, b.run)
}

type bench struct {
	generations.Bench
	come, edit, move float64
	generations      int

	states []state
}

// built is a generation that was built, and what it says of every node: its vector of the node's text as it was then,
// zeros where the node was not there.
type built struct {
	*generations.Built
	vectors []float32
	scores  eval.LinkScores
}

func (b *bench) run(ctx context.Context) error {
	b.Config.Train.Seed = b.Seed
	b.evolve()
	b.printChanges()
	first := &memstore.Store{}
	one, err := b.build(ctx, first, 0, "full")
	if err != nil {
		return err
	}
	var before []*built // by the mode before
	for _, mode := range b.Modes {
		store, err := stage.CopyOf(ctx, first)
		if err != nil {
			return err
		}
		all := []*built{one}
		for k := 1; k < b.generations; k++ {
			next, err := b.build(ctx, store, k, mode)
			if err != nil {
				return err
			}
			for old := k - 1; old >= 0; old-- {
				if old == k-1 || old == 0 {
					b.compare(mode, old, k, all[old], next)
				}
			}
			if err := b.compareLinks(mode, k, all[k-1], next); err != nil {
				return err
			}
			all = append(all, next)
			if before != nil {
				what := fmt.Sprintf("generation %d, %s less the mode before", k+1, mode)
				if err := b.printLinks(what, k, next.scores, before[k].scores); err != nil {
					return err
				}
			}
		}
		before = all
	}
	return nil
}

// build builds the generation of a state, and encodes every node of it.
func (b *bench) build(ctx context.Context, store *memstore.Store, k int, mode string) (*built, error) {
	g, err := b.Build(ctx, store, b.source(k), mode)
	if err != nil {
		return nil, err
	}
	b.printBuilt(fmt.Sprintf("%d, %s", k+1, mode), g)
	s, dim := &b.states[k], g.Encoder.Dim()
	out := &built{Built: g}
	if out.vectors, err = g.Encode(s.texts); err != nil {
		return nil, err
	}
	for i, there := range s.there {
		if !there {
			clear(out.vectors[i*dim : (i+1)*dim])
		}
	}
	out.scores, err = b.score(k, out.vectors, g.Doc)
	return out, err
}

// compareLinks prints how a generation predicts hidden edges beside the one before, which has not seen what changed.
func (b *bench) compareLinks(mode string, k int, before, after *built) error {
	old, err := before.Encode(b.states[k].texts)
	if err != nil {
		return err
	}
	scores, err := b.score(k, old, before.Doc)
	if err != nil {
		return err
	}
	return b.printLinks(fmt.Sprintf("generation %d, %s less the encoder before", k+1, mode), k, after.scores, scores)
}

// printLinks prints by how much scores on the hidden edges of a state differ from others: on all, and by the node that
// is asked about.
func (b *bench) printLinks(what string, k int, scores, others eval.LinkScores) error {
	if err := generations.PrintDifference(what, scores, others); err != nil {
		return err
	}
	const same, row, text = 0, 1, 2
	changed := make([]uint8, len(b.states[k].seq))
	for i, seq := range b.states[k].seq {
		switch now, before := &b.states[k], &b.states[k-1]; {
		case !before.there[i] || before.texts[i] != now.texts[i]:
			changed[i] = text
		case seq == int64(k+1):
			changed[i] = row
		}
	}
	for group, name := range []string{same: "same row", row: "other links", text: "new or edited"} {
		some := scores.Where(changed, group)
		if len(some) == 0 {
			continue
		}
		if err := generations.PrintDifference("  "+name, some, others.Where(changed, group)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) printBuilt(name string, g *generations.Built) {
	line := fmt.Sprintf("generation %s: space %d, warm of %d, %.1f CPU s", name, g.Doc.Space, g.Doc.WarmOf, g.CPU)
	for _, e := range g.Doc.Evaluation {
		if e.Encoder != g.Doc.Encoder.Kind {
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
