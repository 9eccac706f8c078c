package xrt

import (
	"fmt"
	"strings"
	"testing"

	"giantstream/train"
	"giantstream/train/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/internal/rng"
)

// blocks is a stochastic block model of two classes with a probability of p
// for a link within a class and q for one across (Chien et al., section 4).
// A text has a few words of its class's vocabulary among many that mean
// nothing.
func blocks(n int, p, q float64, seed uint64) *train.Graph {
	g := &train.Graph{}
	var edges [][2]int32
	for i := range n {
		r := rng.New(seed, uint64(i))
		var text []string
		for range 2 {
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
	g.Neighbours = graphtest.Undirected(n, edges)
	return g
}

// TestHeterophilousLinksTeachClasses: where nodes of the same class are linked
// less often than others, predicting links draws the wrong texts together;
// predicting neighbourhoods does not, since nodes of a class have neighbours of
// the same kind.
func TestHeterophilousLinksTeachClasses(t *testing.T) {
	const dim = 16
	g := blocks(1500, 0.002, 0.016, 1)
	net := newWords(dim, 1)
	probe := func() float64 {
		z := make([]float32, g.Len()*dim)
		if err := (&trainer{net: net}).embed(g.Texts, z); err != nil {
			t.Fatal(err)
		}
		m, err := eval.Probe(z, dim, g.Classes, eval.ProbeOptions{Fraction: 0.1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m.Accuracy
	}
	plain := probe()
	src, levels := problem(t, g, net, 4, 16)
	if _, err := Train(t.Context(), net, src, levels, Options{Rate: 0.01, Epochs: 15}, Hooks{}, nil); err != nil {
		t.Fatal(err)
	}
	trained := probe()
	t.Logf("accuracy of the class probe: %.3f before training, %.3f after", plain, trained)
	if trained < plain+0.1 {
		t.Errorf("accuracy of the class probe: %.3f before training, %.3f after, want 0.1 more", plain, trained)
	}
}
