package drift_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
	"giantstream/train/generation/fit"
	"giantstream/train/generation/generationtest"
	"giantstream/train/numeric"
)

// world is a graph that grows: nodes of families, each with words of its own among words of all, and links that
// stay in the family but for one in ten.
type world struct {
	r       numeric.Rand
	seed    uint64
	nodes   []rows.Row
	family  []int
	members map[int][]int
}

func newWorld(seed uint64) *world {
	return &world{r: numeric.NewRand(seed), seed: seed, members: map[int][]int{}}
}

// word k of a family; letters reveal nothing.
func (w *world) word(family, k int) string {
	r := numeric.NewRand(w.seed, uint64(family), uint64(k))
	letters := make([]byte, 6)
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	return string(letters)
}

func (w *world) text(family int) string {
	var text strings.Builder
	for range 10 {
		fmt.Fprintf(&text, "%s ", w.word(family, min(w.r.IntN(40), w.r.IntN(40))))
	}
	for range 6 {
		fmt.Fprintf(&text, "%s ", w.word(-1, w.r.IntN(100)))
	}
	return text.String()
}

func id(i int) string { return fmt.Sprintf("node%06d", i) }

// grow adds n nodes of families from ≤ f < to, and returns the rows that this changes, each once.
func (w *world) grow(n, from, to int) []rows.Row {
	changed := map[int]bool{}
	for range n {
		i, family := len(w.nodes), from+w.r.IntN(to-from)
		w.nodes = append(w.nodes, rows.Row{NodeID: id(i), Text: w.text(family), EventTime: int64(i)})
		w.family = append(w.family, family)
		changed[i] = true
		for range 3 {
			others := w.members[family]
			if w.r.IntN(10) == 0 || len(others) == 0 {
				w.link(i, w.r.IntN(i+1), changed)
			} else {
				w.link(i, others[w.r.IntN(len(others))], changed)
			}
		}
		w.members[family] = append(w.members[family], i)
	}
	out := make([]rows.Row, 0, len(changed))
	for _, i := range slices.Sorted(maps.Keys(changed)) {
		out = append(out, w.nodes[i])
	}
	return out
}

func (w *world) link(i, j int, changed map[int]bool) {
	if i == j {
		return
	}
	for _, e := range [][2]int{{i, j}, {j, i}} {
		labels := w.nodes[e[0]].Labels
		at, has := slices.BinarySearch(labels, id(e[1]))
		if !has {
			w.nodes[e[0]].Labels = slices.Insert(slices.Clone(labels), at, id(e[1]))
			changed[e[0]] = true
		}
	}
}

// source is all nodes as they were when it was made.
type source []rows.Row

func (w *world) source() source { return slices.Clone(w.nodes) }

func (source) Cut() map[int]int64 { return map[int]int64{0: 1} }
func (source) Hash() string       { return "hash" }

func (s source) Rows(context.Context) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for _, r := range s {
			if !yield(generation.Row{Row: r, Seq: 1}, nil) {
				return
			}
		}
	}
}

// build builds and opens a generation.
func build(t *testing.T, s source, encoder string) *generation.Generation {
	t.Helper()
	store := &memstore.Store{}
	doc := generationtest.Build(t, store, s, fit.Settings{Profile: "default", MaxDegree: 1000, ProjectionDim: 64,
		EmbeddingDim: 32, Weighting: "sum", LabelFeatures: "pifa", Encoder: encoder, Seed: 1, Holdout: 0.1, EvalSeed: 1})
	g, err := generation.Open(t.Context(), store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
