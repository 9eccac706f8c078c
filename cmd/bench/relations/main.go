// Command relations measures what a kind of links that says nothing does to embeddings, on a graph to which random
// links are added as a second kind:
//
//	go run ./cmd/bench/relations -data ../shared/data/amazon-products
//
// A tenth of the graph's own edges are hidden, and ranked by the embeddings among 100 nodes drawn by degree. One
// generation is built without the random links, one with all links alike, and one in which relations are weighed. With
// -half, a third kind has half of the graph's edges, and as many random ones.
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/generate"
	"giantstream/cmd/bench/internal/stage"
	"giantstream/config"
	"giantstream/internal/graphdir"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/generation"
	"giantstream/train/generation/eval"
	"giantstream/train/generation/fit"
	"giantstream/train/numeric"
	"giantstream/train/numeric/blas"
)

func main() {
	blas32.Use(blas.New())
	data := flag.String("data", "../shared/data/amazon-products", "folder of a graph")
	noise := flag.Float64("noise", 1, "random links, for each link of the graph")
	half := flag.Bool("half", false, "give half of the graph's links to a kind that has as many random ones")
	seeds := flag.Uint64("seeds", 1, "how many generations are averaged")
	flag.Parse()
	stage.Exit("relations", run(context.Background(), *data, *noise, *half, *seeds))
}

// The kinds of the graph that is measured.
const (
	kindOwn   = "own"
	kindHalf  = "half"
	kindNoise = "noise"
)

func run(ctx context.Context, data string, noise float64, half bool, seeds uint64) error {
	read, err := graphdir.Read(data)
	if err != nil {
		return err
	}
	g := train.Graph(*read)
	known, hidden := eval.Split(&g, 0.1, 1)
	fmt.Printf("%d nodes, %d known edges, %d hidden\n", g.Len(), known.Neighbours.NNZ()/2, len(hidden))
	fmt.Println("| random links | AUC | MRR |\n|---|---|---|")
	all := kindsOf(known, noise, half)
	own := slices.DeleteFunc(slices.Clone(all), func(l link) bool { return l.random })
	for _, v := range []struct {
		name    string
		links   []link
		weighed bool
	}{{"none", own, false}, {"alike", all, false}, {"weighed", all, true}} {
		var auc, mrr float64
		for seed := range seeds {
			doc, vectors, err := embed(ctx, &g, source(rowsOf(&g, v.links)), v.weighed, seed+1)
			if err != nil {
				return err
			}
			m, err := eval.Links(vectors, len(vectors)/g.Len(), known, hidden, eval.LinkOptions{Seed: 1})
			if err != nil {
				return err
			}
			auc, mrr = auc+m.AUC/float64(seeds), mrr+m.MRR/float64(seeds)
			for _, r := range doc.Graph.Relations {
				fmt.Fprintf(os.Stderr, "%s: weight %.3f, %s\n", r.Name(), r.Weight, r.Why())
			}
		}
		fmt.Printf("| %s | %.3f | %.3f |\n", v.name, auc, mrr)
	}
	return nil
}

// link is an undirected link of a kind.
type link struct {
	ends   [2]int32
	kind   string
	random bool
}

// kindsOf returns the edges of a graph as links of kinds, and random ones.
func kindsOf(g *train.Graph, noise float64, half bool) (all []link) {
	r := numeric.NewRand(1)
	random := func(kind string) {
		i, j := int32(r.IntN(g.Len())), int32(r.IntN(g.Len()))
		if i != j {
			all = append(all, link{[2]int32{i, j}, kind, true})
		}
	}
	for i := range int32(g.Len()) {
		for _, j := range g.Neighbours.Row(int(i)).Index {
			if i > j {
				continue
			}
			kind := kindOwn
			if half && r.Float64() < 0.5 {
				kind = kindHalf
				random(kind)
			}
			all = append(all, link{[2]int32{i, j}, kind, false})
		}
	}
	for range int(noise * float64(g.Neighbours.NNZ()/2)) {
		random(kindNoise)
	}
	return all
}

// rowsOf returns the nodes with the links.
func rowsOf(g *train.Graph, links []link) []rows.Row {
	of := make([]map[string][]rows.Link, g.Len())
	for i := range of {
		of[i] = map[string][]rows.Link{}
	}
	for _, l := range links {
		for k, from := range l.ends {
			end := g.IDs[l.ends[1-k]]
			same := func(o rows.Link) bool { return o.Kind == l.kind }
			if !slices.ContainsFunc(of[from][end], same) {
				of[from][end] = append(of[from][end], rows.Link{Kind: l.kind, Weight: 1, Time: 1})
			}
		}
	}
	out := make([]rows.Row, g.Len())
	for i := range out {
		out[i] = rows.Row{NodeID: g.IDs[i], Text: g.Texts[i], Class: g.Classes[i], EventTime: 1}
		for _, end := range slices.Sorted(maps.Keys(of[i])) {
			out[i].AddLabel(end, of[i][end]...)
		}
	}
	return out
}

// source is a cut of rows in one shard.
type source []rows.Row

// Cut implements generation.Source.
func (source) Cut() map[int]int64 { return map[int]int64{0: 1} }

// Hash implements generation.Source.
func (source) Hash() string { return "" }

// Rows implements generation.Source.
func (s source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for _, r := range s {
			if !yield(generation.Row{Row: r, Seq: 1}, nil) {
				return
			}
		}
	}
}

// embed builds a generation, and returns the vectors of all nodes.
func embed(ctx context.Context, g *train.Graph, src source, weighed bool, seed uint64) (*generation.Doc, []float32,
	error) {
	cfg := config.Default()
	cfg.Train.Seed = seed
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	built, vectors, err := generate.Build(ctx, &cfg, log, src, func(s *fit.Settings) {
		if weighed {
			s.Relations = &fit.Relations{}
		}
	}, g.IDs, g.Texts)
	if err != nil {
		return nil, nil, err
	}
	return built.Doc, vectors, nil
}
