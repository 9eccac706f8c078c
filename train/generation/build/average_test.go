package build

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// secondOf returns a store with generation 1 of 320 nodes, and a builder of the next. 60 of the nodes of the second cut
// are new.
func secondOf(t *testing.T) (*memstore.Store, *testBuild, *commits) {
	t.Helper()
	store, log := &memstore.Store{}, grown()
	few := &commits{}
	for i, r := range log.row {
		if r.NodeID < "node-0380" {
			r.Labels = slices.DeleteFunc(slices.Clone(r.Labels), func(l string) bool { return l >= "node-0380" })
			few.add(log.seq[i], r)
		}
	}
	b := builder(store)
	b.Settings.Encoder = hybrid.Kind
	buildWith(t, b, 1, few, map[int]int64{0: 1})
	return store, b, few
}

// sameObjects fails where an object of generation 2 has other bytes in the two stores.
func sameObjects(t *testing.T, what string, a, b *memstore.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		want, err := sink.ReadAll(t.Context(), a, generation.Prefix(2)+name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sink.ReadAll(t.Context(), b, generation.Prefix(2)+name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: another %s (%v)", what, name, err)
		}
	}
}

var fitted = []string{generation.VectorizerName, generation.ProjectionName, generation.TreeName,
	generation.EncoderName + "/model.safetensors"}

// A generation that is averaged with its parent stays nearer to it than one that is only turned, on nodes new to both
// as well. It is the same for any number of workers, and when it is resumed, whatever the next build is asked to be.
func TestGenerationsAreAveraged(t *testing.T) {
	race.SkipComputing(t)
	store, b, log := secondOf(t)
	doc := buildWith(t, b, 2, log, nil)
	near := doc.Overlap
	if doc.AveragedWith != 1 || doc.Space != 1 || near == nil {
		t.Fatalf("averaged with %d, space %d, %+v", doc.AveragedWith, doc.Space, near)
	}
	_, c, log := secondOf(t)
	c.Afresh = true
	turned := buildWith(t, c, 2, log, nil)
	far := turned.Overlap
	if turned.AveragedWith != 0 || turned.Space != 1 || far == nil {
		t.Fatalf("averaged with %d, space %d, %+v", turned.AveragedWith, turned.Space, far)
	}
	if near.NewOnOld < far.NewOnOld+0.1 || near.Cosine <= far.Cosine {
		t.Errorf("averaged %+v, only turned %+v", near, far)
	}
	t.Run("one worker", func(t *testing.T) {
		again, b, log := secondOf(t)
		b.Workers = 1
		buildWith(t, b, 2, log, nil)
		sameObjects(t, "one worker", store, again, fitted...)
	})
	t.Run("in parts", func(t *testing.T) {
		again, b, log := secondOf(t)
		for _, until := range []string{stages.Vectorizer, stages.Dataset, stages.Encoder} {
			if _, err := b.until(t.Context(), log, nil, until); err != nil {
				t.Fatal(err)
			}
			b.Afresh, b.NewSpace = true, true // of the next build
		}
		if got := buildWith(t, b, 2, log, nil); got.AveragedWith != 1 {
			t.Errorf("resumed, it is averaged with %d", got.AveragedWith)
		}
		sameObjects(t, "in parts", store, again, fitted...)
	})
}

// A generation that is only turned has nothing of what its parent has learned: but for the turn, it is the one that
// would have been built without a parent.
func TestAfreshTakesNothingOfTheParent(t *testing.T) {
	store, b, log := secondOf(t)
	b.Afresh = true
	buildWith(t, b, 2, log, nil)
	other, c, log := secondOf(t)
	c.NewSpace = true
	buildWith(t, c, 2, log, nil)
	sameObjects(t, "afresh", other, store, generation.VectorizerName, generation.ProjectionName, generation.TreeName)
	kept, own := encodedBy(t, store), encodedBy(t, other)
	for i := range kept {
		for j := range i {
			if d := dotOf(kept[i], kept[j]) - dotOf(own[i], own[j]); d > 1e-4 || d < -1e-4 {
				t.Fatalf("the cosine of two texts differs by %g", d)
			}
		}
	}
}

// encodedBy returns the embeddings of a few texts by generation 2.
func encodedBy(t *testing.T, store sink.Store) (out [][]float32) {
	t.Helper()
	doc, err := generation.Load(t.Context(), store, 2)
	if err != nil {
		t.Fatal(err)
	}
	g, err := generation.Open(t.Context(), store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range grown().row[:20] {
		z := make([]float32, g.Encoder.Dim())
		if err := g.Encoder.Encode([]string{r.Text}, z); err != nil {
			t.Fatal(err)
		}
		out = append(out, z)
	}
	return out
}

func dotOf(a, b []float32) (sum float64) {
	for k := range a {
		sum += float64(a[k]) * float64(b[k])
	}
	return sum
}

// A parent that is damaged, or of another kind or dimension, is left out: the build succeeds without it.
func TestAverageWithoutAUsableParent(t *testing.T) {
	race.SkipComputing(t)
	for name, spoil := range map[string]func(b *testBuild){
		"damaged": func(b *testBuild) {
			key := generation.Prefix(1) + generation.VectorizerName
			if err := b.Store.Put(t.Context(), key, strings.NewReader("{}"), 2); err != nil {
				t.Fatal(err)
			}
		},
		"another kind":      func(b *testBuild) { b.Settings.Encoder = "linear" },
		"another dimension": func(b *testBuild) { b.Settings.EmbeddingDim -= 2 },
		"another rank":      func(b *testBuild) { b.Settings.ProjectionDim -= 3 },
	} {
		t.Run(name, func(t *testing.T) {
			_, b, log := secondOf(t)
			spoil(b)
			if doc := buildWith(t, b, 2, log, nil); doc.Status != generation.Ready {
				t.Errorf("it is %s", doc.Status)
			}
		})
	}
}
