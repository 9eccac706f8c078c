package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/config"
	"giantstream/featurize/sparse"
	"giantstream/internal/graphdir"
	"giantstream/internal/race"
	"giantstream/train"
	"giantstream/train/numeric/blas"
)

// What a generation that is averaged with those before may lack beside one from scratch, on average over the steps, and
// the least share of a new vector's nearest that it finds among the vectors before.
const (
	tolerateAUC   = 0.01
	tolerateMRR   = 0.03
	tolerateClass = 0.02
	leastNewOnOld = 0.90 // only turned, they find .88
)

// A catalog that lives through generations is as good as one that is built from scratch each time, and its vectors are
// nearer to those before than if generations were only turned (refresh.space: turn).
func TestALivedCatalogIsAsGoodAsOneFromScratch(t *testing.T) {
	race.SkipComputing(t)
	if testing.Short() {
		t.Skip("a minute of processor time")
	}
	blas32.Use(blas.New())
	g, err := graphdir.Read("../../sample")
	if err != nil {
		t.Fatal(err)
	}
	b := bench{config: config.Default(), log: slog.New(slog.DiscardHandler), seed: 1, steps: 3,
		graph: ofClasses((*train.Graph)(g), "go", "net", "math", "image", "encoding", "io", "time"),
		modes: []string{"kept", "scratch"}, history: []string{"grow", "change", "family"}}
	var auc, mrr, class, near, steps float64
	var kept outcome
	err = b.replay(t.Context(), func(o outcome) {
		t.Log(o)
		switch {
		case o.mode == "kept":
			kept = o
		case o.mode == "scratch" && o.kin != nil:
			steps++
			auc += kept.less.AUC
			mrr += kept.less.MRR
			near += kept.kin.NewOnOld
			last := len(o.probes) - 1
			class += kept.probes[last].Accuracy - o.probes[last].Accuracy
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	auc, mrr, class, near = auc/steps, mrr/steps, class/steps, near/steps
	t.Logf("kept less scratch: AUC %+.4f, MRR %+.4f, class %+.4f; new on old %.3f", auc, mrr, class, near)
	if auc < -tolerateAUC || mrr < -tolerateMRR || class < -tolerateClass {
		t.Errorf("worse than from scratch by AUC %+.4f, MRR %+.4f, class %+.4f", auc, mrr, class)
	}
	if near < leastNewOnOld {
		t.Errorf("new vectors find %.3f of their nearest among the old ones", near)
	}
}

// ofClasses returns the part of a graph that is of some classes.
func ofClasses(g *train.Graph, classes ...string) *train.Graph {
	place := map[int32]int32{}
	out := &train.Graph{Neighbours: &sparse.Matrix{Start: []int64{0}}}
	for i, class := range g.Classes {
		if slices.Contains(classes, class) {
			place[int32(i)] = int32(len(out.IDs))
			out.IDs, out.Texts = append(out.IDs, g.IDs[i]), append(out.Texts, strings.Clone(g.Texts[i]))
			out.Classes = append(out.Classes, class)
		}
	}
	out.Neighbours.Cols = len(out.IDs)
	for i, class := range g.Classes {
		if !slices.Contains(classes, class) {
			continue
		}
		var row sparse.Vector
		for _, j := range g.Neighbours.Row(i).Index {
			if k, ok := place[j]; ok {
				row.Index = append(row.Index, k)
			}
		}
		out.Neighbours.Append(row)
	}
	return out
}
