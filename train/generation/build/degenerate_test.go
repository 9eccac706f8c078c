package build

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// few returns n nodes; the ends of some of their links are no nodes.
func few(n int) []rows.Row { return graphtest.Rows(max(n, 60), 3)[:n] }

// complete returns n nodes, each linked to all others.
func complete(n int) []rows.Row {
	graph := few(n)
	for i := range graph {
		graph[i].Labels = nil
		for j := range graph {
			if i != j {
				graph[i].Labels = append(graph[i].Labels, graph[j].NodeID)
			}
		}
	}
	return graph
}

// without returns the graph without links, or without texts where no says so.
func without(graph []rows.Row, links bool, no func(i int) bool) []rows.Row {
	for i := range graph {
		if !links {
			graph[i].Labels = nil
		}
		if no(i) {
			graph[i].Text = ""
		}
	}
	return graph
}

// strangers returns n nodes whose texts have no feature in common.
func strangers(n int) []rows.Row {
	graph := without(graphtest.Rows(n, 3), true, never)
	for i := range graph {
		graph[i].Text = strings.Repeat(string(rune('一'+i)), 3)
	}
	return graph
}

func never(int) bool { return false }

// Whatever the graph, the build ends with a generation or with generation.ErrTooFew, and every embedding is a
// vector of length 1 or says that there is none.
func TestDegenerateGraphs(t *testing.T) {
	race.SkipComputing(t)
	path := few(10)
	for i := range path {
		path[i].Labels = nil
		if i > 0 {
			path[i].Labels = append(path[i].Labels, path[i-1].NodeID)
		}
		if i < len(path)-1 {
			path[i].Labels = append(path[i].Labels, path[i+1].NodeID)
		}
	}
	for _, tc := range []struct {
		name      string
		graph     []rows.Row
		tooFew    bool
		says      string // where tooFew
		textOnly  bool
		maxDegree int
		// noneHidden: no edge is hidden from the fit.
		noneHidden bool
	}{
		{name: "no node", graph: []rows.Row{{NodeID: "gone", Deleted: true}}, tooFew: true},
		{name: "one node", graph: without(few(1), false, never), tooFew: true},
		{name: "two nodes", graph: without(few(2), false, never), tooFew: true},
		{name: "two linked nodes", graph: complete(2), tooFew: true},
		{name: "three nodes", graph: without(few(3), false, never), textOnly: true},
		{name: "ten nodes", graph: without(few(10), false, never), textOnly: true},
		{name: "ten nodes in a row", graph: path},
		{name: "ten nodes, all linked", graph: complete(10)},
		{name: "no link", graph: without(graphtest.Rows(200, 3), false, never), textOnly: true},
		{name: "all linked", graph: complete(150)},
		{name: "all linked, none hidden", graph: complete(250), noneHidden: true},
		{name: "all linked, all hubs", graph: complete(60), textOnly: true, maxDegree: 20},
		{name: "no text", graph: without(graphtest.Rows(60, 3), true, func(int) bool { return true }), tooFew: true},
		{name: "no word shared", graph: strangers(40), tooFew: true,
			says: "of the texts of 40, no words are in some"},
		{name: "one text", graph: without(graphtest.Rows(60, 3), true, func(i int) bool { return i > 0 }),
			tooFew: true},
		{name: "every other text", graph: without(graphtest.Rows(60, 3), true, func(i int) bool { return i%2 > 0 })},
	} {
		for _, kind := range fit.Kinds() {
			if !kind.Trained() || kind.NeedsModel {
				continue
			}
			encoder := kind.Name
			t.Run(tc.name+"/"+encoder, func(t *testing.T) {
				log := &commits{}
				addAll(log, 1, tc.graph)
				b := builder(&memstore.Store{})
				b.Settings.Encoder = encoder
				if tc.noneHidden {
					b.Settings.Holdout = 0
				}
				if tc.maxDegree > 0 {
					b.Settings.MaxDegree = tc.maxDegree
				}
				doc, err := b.until(t.Context(), log, nil, stages.Finish)
				if tc.tooFew {
					if !errors.Is(err, generation.ErrTooFew) {
						t.Fatalf("got %v, want ErrTooFew", err)
					}
					if says := err.Error(); !strings.Contains(says, tc.says) || strings.Contains(says, "matrix") {
						t.Errorf("it says %q, and not %q", says, tc.says)
					}
					if _, g, err := generation.Next(t.Context(), b.Store); g != 1 || err != nil {
						t.Errorf("the next generation is %d, %v, want 1", g, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if tc.textOnly && (doc.TextOnly == "" || doc.Encoder.Kind != linear.LSAKind) {
					t.Errorf("text only: %q with encoder %s", doc.TextOnly, doc.Encoder.Kind)
				}
				t.Logf("encoder %s, text only: %q, levels %v", doc.Encoder.Kind, doc.TextOnly, doc.Tree.Levels)
				if _, err := generation.Open(t.Context(), b.Store, doc, nil); err != nil {
					t.Error(err)
				}
				if got := checkEmbeddings(t, b, doc); got != len(tc.graph) {
					t.Errorf("%d embeddings of %d nodes", got, len(tc.graph))
				}
			})
		}
	}
}

// checkEmbeddings checks every vector's length and returns the number of records.
func checkEmbeddings(t *testing.T, b *testBuild, doc *generation.Doc) (n int) {
	t.Helper()
	for _, part := range doc.Embeddings {
		for r, err := range embedding.ReadParquet(t.Context(), b.Store, part.Ref()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			var square float64
			for _, x := range r.Vector {
				square += float64(x) * float64(x)
			}
			if r.Status == embedding.NoText && r.Vector != nil || r.Status != embedding.NoText &&
				math.Abs(square-1) > 1e-3 {
				t.Errorf("node %s: status %q, squared length %v", r.NodeID, r.Status, square)
			}
		}
	}
	return n
}

// The first links turn a text-only pipeline's next generation into a normal one.
func TestLinksAfterATextOnlyGeneration(t *testing.T) {
	log := &commits{}
	addAll(log, 1, without(graphtest.Rows(60, 3), false, never))
	b := builder(&memstore.Store{})
	b.Gate = generation.GateBlock
	doc, err := b.until(t.Context(), log, nil, stages.Finish)
	if err != nil || doc.TextOnly == "" {
		t.Fatalf("%+v, %v: want a text-only generation", doc, err)
	}
	if len(doc.Evaluation) != 1 || doc.Evaluation[0].Encoder != linear.LSAKind || len(doc.Shortfalls) > 0 {
		t.Errorf("evaluation %+v with shortfalls %v: there is nothing to compare", doc.Evaluation, doc.Shortfalls)
	}
	addAll(log, 2, without(graphtest.Rows(60, 3), false, func(i int) bool { return i == 0 }))
	doc, err = b.until(t.Context(), log, nil, stages.Finish)
	if err != nil || doc.TextOnly == "" || doc.Status != generation.Ready {
		t.Fatalf("%+v, %v: a text-only generation with a parent is refused", doc, err)
	}
	addAll(log, 3, graphtest.Rows(60, 3))
	doc, err = b.until(t.Context(), log, nil, stages.Finish)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Generation != 3 || doc.TextOnly != "" || doc.Encoder.Kind != b.Settings.Encoder {
		t.Errorf("generation %d: encoder %s, text only %q", doc.Generation, doc.Encoder.Kind, doc.TextOnly)
	}
}

func TestNodesWithoutTextTakeTheirNeighboursMean(t *testing.T) {
	graph := without(graphtest.Rows(60, 3), true, func(i int) bool { return i%10 == 0 })
	graph[0].Labels = nil
	small := embedding.Format{Type: embedding.Int8, Dim: 8}
	run := func(missing string, stored embedding.Format) map[string]embedding.Record {
		log := &commits{}
		addAll(log, 1, graph)
		b := builder(&memstore.Store{})
		b.Settings.MissingText, b.Settings.Stored = missing, stored
		doc, err := b.until(t.Context(), log, nil, stages.Finish)
		if err != nil {
			t.Fatal(err)
		}
		if doc.Graph.NoText != 6 {
			t.Errorf("%d nodes without text, want 6", doc.Graph.NoText)
		}
		if stored.Type != embedding.Int8 { // which makes vectors shorter or longer
			checkEmbeddings(t, b, doc)
		}
		all := map[string]embedding.Record{}
		for r, err := range embedding.ReadParquet(t.Context(), b.Store, doc.Embeddings[0].Ref()) {
			if err != nil {
				t.Fatal(err)
			}
			all[r.NodeID] = r
		}
		return all
	}
	skipped, filled := run(fit.Skip, embedding.Format{}), run(fit.Neighbours, embedding.Format{})
	for id, got := range run(fit.Neighbours, small) {
		if want := small.Narrow(filled[id]); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("stored as %s: %+v, want %+v", small, got, want)
		}
	}
	for i, row := range graph {
		want, got := skipped[row.NodeID], filled[row.NodeID]
		if row.Text != "" {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("node %s has a text; its embedding must not depend on missing_text", row.NodeID)
			}
			continue
		}
		if want.Status != embedding.NoText {
			t.Errorf("node %s: status %q, want no_text", row.NodeID, want.Status)
		}
		sum := make([]float64, 0)
		for _, l := range row.Labels {
			for k, x := range skipped[l].Vector {
				if k == len(sum) {
					sum = append(sum, 0)
				}
				sum[k] += float64(x)
			}
		}
		if i == 0 {
			if got.Status != embedding.NoText {
				t.Errorf("node %s has neither text nor neighbours, and the status %q", row.NodeID, got.Status)
			}
			continue
		}
		if got.Status != embedding.FromNeighbours {
			t.Errorf("node %s: status %q, want neighbours", row.NodeID, got.Status)
			continue
		}
		var dot, square float64
		for k, x := range got.Vector {
			dot, square = dot+float64(x)*sum[k], square+sum[k]*sum[k]
		}
		if cos := dot / math.Sqrt(square); cos < 0.9999 {
			t.Errorf("node %s: cosine %v to the mean of its neighbours", row.NodeID, cos)
		}
	}
}

func addAll(log *commits, seq int64, graph []rows.Row) {
	for _, r := range graph {
		log.add(seq, r)
	}
}
