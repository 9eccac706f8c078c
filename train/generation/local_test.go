package generation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/encoders/hybrid"
)

// A local refresh keeps the features' numbers and the clusters that nothing happened in, keeps the space, and is the
// same for any number of workers and when it is built in two parts.
func TestLocalRefresh(t *testing.T) {
	log := grown()
	for i := range log.row { // words that generation 1 does not know
		if log.row[i].NodeID >= "node-0320" {
			log.row[i].Text = strings.ReplaceAll(log.row[i].Text, "topic1word", "unheardof")
		}
	}
	refresh := func(workers int, inParts bool) (*memstore.Store, *Doc) {
		store := &memstore.Store{}
		b := builder(store)
		b.Settings.Encoder = hybrid.Kind
		buildWith(t, b, 1, log, map[int]int64{0: 1})
		b.Mode, b.Workers = Local, workers
		if inParts {
			src, err := log.at(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Build(t.Context(), 2, src, UntilDataset); err != nil {
				t.Fatal(err)
			}
			b.Mode = Full // it keeps what it began with
		}
		return store, buildWith(t, b, 2, log, nil)
	}
	store, doc := refresh(2, false)
	if l := doc.Local; doc.LocalOf != 1 || doc.LocalSteps != 1 || l == nil || l.New != 80 || l.Changed < l.New ||
		l.NGrams < 1 || doc.Space != 1 || doc.Status != Ready {
		t.Fatalf("local of %d, step %d, space %d, %s: %+v", doc.LocalOf, doc.LocalSteps, doc.Space, doc.Status, l)
	}
	for _, other := range []struct {
		workers int
		inParts bool
	}{{1, false}, {2, true}} {
		again, _ := refresh(other.workers, other.inParts)
		for _, name := range []string{VectorizerName, ProjectionName, TreeName, EncoderName + "/model.safetensors"} {
			key := Prefix(2) + name
			want, err := sink.ReadAll(t.Context(), store, key)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := sink.ReadAll(t.Context(), again, key); err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v: another %s (%v)", other, name, err)
			}
		}
	}
	first, err := Load(t.Context(), store, 1)
	if err != nil {
		t.Fatal(err)
	}
	g1, err := Open(t.Context(), store, first, nil)
	if err != nil {
		t.Fatal(err)
	}
	g2, err := Open(t.Context(), store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range log.row {
		a, b := g1.Vectorizer.Transform(r.Text, sparse.Vector{}), g2.Vectorizer.Transform(r.Text, sparse.Vector{})
		at, _ := slices.BinarySearch(b.Index, int32(g1.Vectorizer.Dim()))
		if !slices.Equal(a.Index, b.Index[:at]) {
			t.Fatalf("%s: features %v have become %v", r.NodeID, a.Index, b.Index)
		}
	}
	if !reflect.DeepEqual(first.Tree.Levels, doc.Tree.Levels) {
		t.Errorf("the tree had %v clusters and has %v", first.Tree.Levels, doc.Tree.Levels)
	}
}

func TestALocalRefreshNeedsAParentOfTheSameSettings(t *testing.T) {
	store, log := &memstore.Store{}, grown()
	b := builder(store)
	b.Settings.Encoder, b.Mode = hybrid.Kind, Local
	if doc := buildWith(t, b, 1, log, map[int]int64{0: 1}); doc.LocalOf != 0 || doc.Local != nil {
		t.Errorf("the first generation is local of %d", doc.LocalOf)
	}
	b.Settings.Seed++
	if doc := buildWith(t, b, 2, log, nil); doc.LocalOf != 0 || doc.LocalSteps != 0 {
		t.Errorf("with other settings, it is local of %d", doc.LocalOf)
	}
}
