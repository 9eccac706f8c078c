package xrt_test

import (
	"fmt"
	"strings"
	"testing"

	"giantstream/internal/graphdir"
	"giantstream/internal/race"
	"giantstream/train"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric"
	"giantstream/train/objectives/linkpred"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xrt"
)

// blocks is a stochastic block model of two classes with a probability of p
// for a link within a class and q for one across (Chien et al., section 4).
// A text has a few words of its class's vocabulary among many that mean
// nothing.
func blocks(n int, p, q float64, seed uint64) *train.Graph {
	g := &train.Graph{}
	var edges [][2]int32
	for i := range n {
		r := numeric.NewRand(seed, uint64(i))
		var text []string
		for range 3 {
			text = append(text, fmt.Sprintf("class%dword%d", i%2, r.IntN(100)))
		}
		for range 10 {
			text = append(text, fmt.Sprintf("filler%d", r.IntN(200)))
		}
		g.IDs = append(g.IDs, fmt.Sprintf("node%05d", i))
		g.Texts = append(g.Texts, strings.Join(text, " "))
		g.Classes = append(g.Classes, fmt.Sprintf("class %d", i%2))
		for j := range i {
			linked := q
			if i%2 == j%2 {
				linked = p
			}
			if r.Float64() < linked {
				edges = append(edges, [2]int32{int32(i), int32(j)})
			}
		}
	}
	g.Neighbours = graphdir.Undirected(n, edges)
	return g
}

// accuracy is that of the class probe on net's vectors of g's texts.
func accuracy(t *testing.T, g *train.Graph, net train.Network) float64 {
	t.Helper()
	z := make([]float32, g.Len()*net.Dim())
	if err := net.Forward(xrt.All(g, g.Len()), nil, z); err != nil {
		t.Fatal(err)
	}
	m, err := eval.Probe(z, net.Dim(), g.Classes, eval.ProbeOptions{Fraction: 0.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m.Accuracy
}

// TestHeterophilousLinksTeachClasses: where nodes of the same class are linked
// less often than others, predicting links draws the wrong texts together and
// what the texts told of the classes is lost; predicting neighbourhoods does not, since nodes of a class have
// neighbours of the same kind. Where they are linked more often, both teach
// the classes.
func TestHeterophilousLinksTeachClasses(t *testing.T) {
	race.SkipComputing(t)
	const dim = 16
	for _, c := range []struct {
		name         string
		p, q         float64
		linksMustWin bool
	}{
		{"heterophilous", 0.002, 0.016, false},
		{"homophilous", 0.016, 0.002, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := blocks(1500, c.p, c.q, 1)
			plain := accuracy(t, g, xrt.NewWords(g, dim, 1))

			giant := xrt.NewWords(g, dim, 1)
			set := xrt.Problem(t, g, giant, 4, 16)
			if _, err := xrt.Train(t.Context(), giant, set, xrt.Options{Rate: 0.01, Epochs: 15}, trainer.Hooks{},
				nil); err != nil {
				t.Fatal(err)
			}
			neighbourhoods := accuracy(t, g, giant)

			baseline := xrt.NewWords(g, dim, 1)
			all := linkpred.Graph{Neighbours: g.Neighbours, Keys: numeric.Keys(g.IDs), Anchors: xrt.All(g, g.Len())}
			if _, err := linkpred.Train(t.Context(), baseline, all, linkpred.Options{Rate: 0.01, Epochs: 15},
				trainer.Hooks{}, nil); err != nil {
				t.Fatal(err)
			}
			links := accuracy(t, g, baseline)

			t.Logf("accuracy of the class probe: plain %.3f, link prediction %.3f, neighbourhoods %.3f", plain, links,
				neighbourhoods)
			if neighbourhoods < plain+0.1 {
				t.Errorf("neighbourhoods: accuracy %.3f, untrained %.3f, want 0.1 more", neighbourhoods, plain)
			}
			if c.linksMustWin && links < plain+0.1 {
				t.Errorf("link prediction: accuracy %.3f, untrained %.3f, want 0.1 more", links, plain)
			}
			if !c.linksMustWin && links > plain-0.05 {
				t.Errorf("link prediction: accuracy %.3f, untrained %.3f, want 0.05 less", links, plain)
			}
		})
	}
}
