package fit

import (
	"fmt"
	"os"
	"testing"

	"giantstream/internal/graphdir"
	"giantstream/internal/race"
	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation/eval"
	"giantstream/train/internal/graphtest"
	"giantstream/train/numeric"
)

// sparseGraph makes a graph whose texts hint at the class and whose links are few: each node has at
// most degree links, and the share isolated of the nodes has none. Links join nodes of one class
// with probability agree, else any nodes.
func sparseGraph(n, classes int, degree, isolated, agree float64, seed uint64) *train.Graph {
	g := &train.Graph{}
	var edges [][2]int32
	for i := range n {
		r := numeric.NewRand(seed, uint64(i))
		class := i % classes
		text := ""
		for range 4 {
			about := class
			if r.IntN(2) == 0 {
				about = r.IntN(classes)
			}
			text += fmt.Sprintf("class%dword%d ", about, r.IntN(40))
		}
		for range 6 {
			text += fmt.Sprintf("filler%d ", r.IntN(200))
		}
		g.IDs, g.Texts = append(g.IDs, fmt.Sprintf("node%05d", i)), append(g.Texts, text)
		g.Classes = append(g.Classes, fmt.Sprint("class ", class))
		if r.Float64() < isolated {
			continue
		}
		for links := degree / 2; links > r.Float64(); links-- {
			j := r.IntN(n)
			if r.Float64() < agree {
				j = j - j%classes + class
			}
			if j < n && j != i {
				edges = append(edges, [2]int32{int32(i), int32(j)})
			}
		}
	}
	g.Neighbours = graphdir.Undirected(n, edges)
	return g
}

func TestLinksWeighMoreTheFewerThereAre(t *testing.T) {
	chain := [][2]int32{{0, 1}, {1, 2}, {2, 3}} // 6 neighbours of 4 nodes
	var clique [][2]int32
	for i := range int32(30) {
		for j := range i {
			clique = append(clique, [2]int32{i, j})
		}
	}
	for name, c := range map[string]struct {
		edges [][2]int32
		want  float64
	}{
		"chain beside isolated nodes": {chain, 4.0 / 6},
		"clique":                      {clique, minLinksWeight},
		"no links":                    {nil, minLinksWeight},
	} {
		if got := linksWeight(graphdir.Undirected(40, c.edges)); got != c.want {
			t.Errorf("%s: weight %v, want %v", name, got, c.want)
		}
	}
}

// TestHybridIsNotWorseThanText is the promise of the default encoder, on graphs that nobody tuned
// on: classes and links are no worse than those of the text alone, or of the linear encoder, by
// more than chance.
func TestHybridIsNotWorseThanText(t *testing.T) {
	race.SkipComputing(t)
	for _, c := range []struct {
		name                    string
		degree, isolated, agree float64
	}{
		{"dense", 12, 0, 0.9},
		{"sparse", 2, 0.2, 0.9},
		{"most nodes isolated", 2, 0.7, 0.9},
		{"links between any nodes", 4, 0.2, 0},
		{"few links between any nodes", 2.5, 0, 0},
		{"links half at random", 6, 0.1, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := sparseGraph(1500, 5, c.degree, c.isolated, c.agree, 3)
			known, hidden := eval.Split(g, 0.1, 1)
			x := cluster(t, fitTexts(t, g, 64, resources()), known, 32, resources())
			figures := func(emb []float32, dim int) (links eval.LinkMetrics, classes eval.ProbeMetrics) {
				links, err := eval.Links(emb, dim, known, hidden, eval.LinkOptions{Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				if classes, err = eval.Probe(emb, dim, g.Classes, eval.ProbeOptions{Fraction: 0.1, Seed: 1}); err != nil {
					t.Fatal(err)
				}
				return links, classes
			}
			e := trained(t, "hybrid", x, 1, 0).Encoder
			links, classes := figures(encode(t, e, g.Texts), e.Dim())
			lin := trained(t, "linear", x, 1, 0).Encoder
			for name, emb := range map[string][]float32{"text": textOnly(t, x, x.Dim), "linear": encode(t, lin, g.Texts)} {
				l, p := figures(emb, x.Dim)
				t.Logf("%s: AUC %.3f ± %.3f, class %.3f ± %.3f; hybrid %.3f, %.3f", name, l.AUC, l.AUCStdErr,
					p.Accuracy, p.StdErr, links.AUC, classes.Accuracy)
				if links.AUC < l.AUC-2*(l.AUCStdErr+links.AUCStdErr) {
					t.Errorf("link AUC %.3f ± %.3f, of %s %.3f ± %.3f", links.AUC, links.AUCStdErr, name, l.AUC, l.AUCStdErr)
				}
				if classes.Accuracy < p.Accuracy-2*(p.StdErr+classes.StdErr) {
					t.Errorf("class %.3f ± %.3f, of %s %.3f ± %.3f", classes.Accuracy, classes.StdErr, name, p.Accuracy, p.StdErr)
				}
			}
		})
	}
}

// TestHybridKeepsTextAndLearnsLinks compares the encoders on the shared sparse graphs; on the larger
// one only with GIANTSTREAM_LONG.
func TestHybridKeepsTextAndLearnsLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for half a minute")
	}
	graphs := []string{"citeseer"}
	if os.Getenv("GIANTSTREAM_LONG") != "" {
		graphs = append(graphs, "slackbuilds")
	}
	for _, name := range graphs {
		t.Run(name, func(t *testing.T) {
			g := graphtest.Shared(t, name)
			known, hidden := eval.Split(g, 0.1, 1)
			x := cluster(t, fitTexts(t, g, rank, resources()), known, labelDim, resources())
			auc := map[string]float64{}
			accuracy := map[string]float64{}
			for _, kind := range []string{"linear", "bag", "hybrid", "lsa"} {
				emb := textOnly(t, x, x.Dim)
				if kind != "lsa" {
					emb = encode(t, trained(t, kind, x, 1, 0).Encoder, g.Texts)
				}
				m, err := eval.Links(emb, x.Dim, known, hidden, eval.LinkOptions{Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				p, err := eval.Probe(emb, x.Dim, g.Classes, eval.ProbeOptions{Fraction: 0.6, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				auc[kind], accuracy[kind] = m.AUC, p.Accuracy
				t.Logf("%-6s AUC %.4f MRR %.4f class %.4f ± %.4f", kind, m.AUC, m.MRR, p.Accuracy, p.StdErr)
			}
			if auc["hybrid"] < max(auc["bag"], auc["linear"]) {
				t.Errorf("link AUC %v", auc)
			}
			if accuracy["hybrid"] < max(accuracy["lsa"], accuracy["linear"])-0.01 {
				t.Errorf("class accuracy %v", accuracy)
			}
		})
	}
}

// Links that were drawn are told by nothing, and what a table has learned of them is noise beside the text.
func TestTheTextWeighsMoreThanNoise(t *testing.T) {
	race.SkipComputing(t)
	weight := func(degree, agree float64) float32 {
		g := sparseGraph(1000, 5, degree, 0, agree, 3)
		x := cluster(t, fitTexts(t, g, 32, resources()), g, 16, resources())
		return trained(t, "hybrid", x, 1, 0).Encoder.(*hybrid.Encoder).Views().TextWeight
	}
	for _, degree := range []float64{2.5, 12} {
		if got := weight(degree, 0); got <= 1 {
			t.Errorf("%g links of a node between any nodes: the text weighs %v", degree, got)
		}
		if got := weight(degree, 0.9); got > 1 {
			t.Errorf("%g links of a node within classes: the text weighs %v", degree, got)
		}
	}
}

// Beside a view of orders, the text gets back what it has lost to links that orders make.
func TestTheTextWeighsMoreBesideOrders(t *testing.T) {
	race.SkipComputing(t)
	g := sparseGraph(600, 5, 12, 0, 0.9, 3)
	x := cluster(t, fitTexts(t, g, 32, resources()), g, 16, resources())
	weight := func() float32 {
		return trained(t, "hybrid", x, 1, 0).Encoder.(*hybrid.Encoder).Views().TextWeight
	}
	x.OrderedLinks = 0.5
	alone := weight()
	view, err := hybrid.NewItemView(1, 2, []uint64{numeric.HashString(g.IDs[0])}, []uint16{numeric.BF16(1), 0})
	if err != nil {
		t.Fatal(err)
	}
	x.Behaviour = view
	if beside, want := weight(), alone+(orderedTextWeight-alone)/2; alone >= orderedTextWeight || beside != want {
		t.Errorf("the text weighs %v beside orders, not %v; alone %v", beside, want, alone)
	}
}
