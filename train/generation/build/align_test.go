package build

import (
	"slices"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// A generation keeps the space of the one before. Without its parent's encoder, or where that is asked for, it starts
// a space of its own, and says in its figures that neither finds its neighbours among the other's embeddings.
func TestGenerationsKeepTheirSpace(t *testing.T) {
	race.SkipComputing(t)
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, b *testBuild, first *generation.Doc)
		space int64
	}{
		{"as it is", func(*testing.T, *testBuild, *generation.Doc) {}, 1},
		{"a new space is asked for", func(_ *testing.T, b *testBuild, _ *generation.Doc) { b.NewSpace = true }, 2},
		{"another dimension", func(_ *testing.T, b *testBuild, _ *generation.Doc) { b.Settings.EmbeddingDim-- }, 2},
		{"the encoder before is damaged", func(t *testing.T, b *testBuild, first *generation.Doc) {
			data := strings.NewReader("{}")
			if err := b.Store.Put(t.Context(), generation.Prefix(first.Generation)+"encoder/config.json", data,
				2); err != nil {
				t.Fatal(err)
			}
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, log := &memstore.Store{}, grown()
			b := builder(store)
			first := buildWith(t, b, 1, log, map[int]int64{0: 1})
			if first.Space != 1 || first.Overlap != nil {
				t.Errorf("the first generation has space %d and overlap %+v", first.Space, first.Overlap)
			}
			tt.spoil(t, b, first)
			second := buildWith(t, b, 2, log, map[int]int64{0: 2})
			o := second.Overlap
			if second.Space != tt.space || second.SpaceOf() != tt.space || o == nil {
				t.Fatalf("space %d, want %d; overlap %+v", second.Space, tt.space, o)
			}
			t.Logf("%+v", *o)
			if kept := tt.space == 1; o.Kept < 0.3 || kept != (o.NewOnOld > 0.5) || kept != (o.Cosine > 0.8) {
				t.Errorf("in the same space: %v; %+v", kept, *o)
			}
			third := buildWith(t, b, 3, log, map[int]int64{0: 2})
			if want := map[bool]int64{false: second.Space, true: 3}[b.NewSpace]; third.Space != want {
				t.Errorf("the third generation has space %d, want %d", third.Space, want)
			}
		})
	}
}

// A build that was stopped after its encoder was trained goes on in the space that it was trained for, also if the
// generation before has gone.
func TestAResumedBuildKeepsItsSpace(t *testing.T) {
	store, log := &memstore.Store{}, grown()
	b := builder(store)
	buildWith(t, b, 1, log, map[int]int64{0: 1})
	if _, err := b.until(t.Context(), log, map[int]int64{0: 2}, stages.Encoder); err != nil {
		t.Fatal(err)
	}
	keys := slices.Collect(func(yield func(string) bool) {
		for o, err := range sink.Store(store).List(t.Context(), generation.Prefix(1), "") {
			if err != nil {
				t.Error(err)
			}
			if !yield(o.Key) {
				return
			}
		}
	})
	if len(keys) == 0 {
		t.Fatal("the first generation has no objects")
	}
	for _, key := range keys {
		if err := store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	b.NewSpace = true // of the next build
	doc := buildWith(t, b, 2, log, map[int]int64{0: 2})
	if doc.Space != 1 || doc.Overlap != nil {
		t.Errorf("space %d, want 1; overlap %+v, want none", doc.Space, doc.Overlap)
	}
}
