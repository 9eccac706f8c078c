package build

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
)

// warmed returns a store with generation 1 of 320 nodes, and a builder whose next generations start warm. 60 of the
// nodes of the second cut are new.
func warmed(t *testing.T) (*memstore.Store, *testBuild, *commits) {
	t.Helper()
	store, log := &memstore.Store{}, grown()
	few := &commits{}
	for i, r := range log.row {
		if r.NodeID < "node-0380" {
			r.Labels = slices.DeleteFunc(slices.Clone(r.Labels), func(l string) bool { return l >= "node-0380" })
			few.add(log.seq[i], r)
		}
	}
	log = few
	b := builder(store)
	b.Settings.Encoder = hybrid.Kind
	buildWith(t, b, 1, log, map[int]int64{0: 1})
	b.Warm = true
	return store, b, log
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

// A warm start keeps vocabulary and projection to the byte, stays near the parent, and is the same for any number of
// workers, when it is resumed, and when what would decide about it is another by then.
func TestWarmStart(t *testing.T) {
	store, b, log := warmed(t)
	doc := buildWith(t, b, 2, log, nil)
	w, o := doc.Warm, doc.Overlap
	if doc.WarmOf != 1 || doc.WarmSteps != 1 || w == nil || w.New != 60 || w.Changed < w.New || doc.Space != 1 ||
		doc.Status != generation.Ready || doc.Scratch == nil || doc.Scratch.Generation != 1 {
		t.Fatalf("warm of %d, step %d, space %d, %s: %+v, scratch %+v", doc.WarmOf, doc.WarmSteps, doc.Space,
			doc.Status,
			w, doc.Scratch)
	}
	if o == nil || o.NewOnOld < 0.9 || o.Cosine < 0.99 {
		t.Errorf("far from the parent: %+v", o)
	}
	for _, name := range []string{generation.VectorizerName, generation.ProjectionName} {
		was, err := sink.ReadAll(t.Context(), store, generation.Prefix(1)+name)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := sink.ReadAll(t.Context(), store, generation.Prefix(2)+name); err != nil || !bytes.Equal(was, is) {
			t.Errorf("%s is another (%v)", name, err)
		}
	}
	t.Run("one worker", func(t *testing.T) {
		again, b, log := warmed(t)
		b.Workers = 1
		buildWith(t, b, 2, log, nil)
		sameObjects(t, "one worker", store, again, fitted...)
	})
	t.Run("in parts", func(t *testing.T) {
		again, b, log := warmed(t)
		for _, until := range []string{stages.Dataset, stages.Encoder} {
			if _, err := b.until(t.Context(), log, nil, until); err != nil {
				t.Fatal(err)
			}
			b.Warm, b.WarmUnknown, b.NewSpace = false, 1e-9, true // of the next build
		}
		if got := buildWith(t, b, 2, log, nil); got.WarmOf != 1 {
			t.Errorf("resumed, it is warm of %d", got.WarmOf)
		}
		sameObjects(t, "in parts", store, again, fitted...)
	})
}

// Nothing has changed: nothing is trained, and the vectors are those of the parent.
func TestWarmStartOfAnUnchangedGraph(t *testing.T) {
	_, b, log := warmed(t)
	doc := buildWith(t, b, 2, log, map[int]int64{0: 1})
	o := doc.Overlap
	if doc.WarmOf != 1 || doc.Warm.Changed != 0 || o == nil || o.NewOnOld < 0.999 || o.Cosine < 0.999999 {
		t.Errorf("warm of %d, %+v: %+v", doc.WarmOf, doc.Warm, o)
	}
}

// What forbids a warm start makes the build one from scratch, to the byte, and the log says why.
func TestColdStarts(t *testing.T) {
	race.SkipComputing(t)
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, b *testBuild, log *commits)
		says  string
	}{
		{"other settings", func(_ *testing.T, b *testBuild, _ *commits) { b.Settings.Seed++ }, "other settings"},
		{"a new space", func(_ *testing.T, b *testBuild, _ *commits) { b.NewSpace = true }, "a new space is asked for"},
		{"the parent's encoder is damaged", func(t *testing.T, b *testBuild, _ *commits) {
			spoilPart(t, b.Store, generation.EncoderName+"/config.json")
		}, "gone or damaged"},
		{"the parent's vocabulary is damaged", func(t *testing.T, b *testBuild, _ *commits) {
			spoilPart(t, b.Store, generation.VectorizerName)
		}, "gone or damaged"},
		{"too many nodes are new", func(_ *testing.T, _ *testBuild, log *commits) {
			for i := range 80 {
				log.add(2, rows.Row{NodeID: fmt.Sprintf("other-%02d", i), Text: log.row[i].Text})
			}
		}, "of the nodes are new"},
		{"worse than before", func(t *testing.T, b *testBuild, _ *commits) {
			d, err := generation.Load(t.Context(), b.Store, 1)
			if err != nil {
				t.Fatal(err)
			}
			d.Scratch = &generation.Scratch{Generation: 1, AUC: 2}
			if err := d.Save(t.Context(), b.Store); err != nil {
				t.Fatal(err)
			}
		}, "link AUC has fallen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said bytes.Buffer
			store, b, log := warmed(t)
			tt.spoil(t, b, log)
			b.Resources.Log = slog.New(slog.NewTextHandler(&said, nil))
			doc := buildWith(t, b, 2, log, nil)
			if doc.WarmOf != 0 || doc.WarmSteps != 0 || doc.Warm != nil || doc.Scratch != nil {
				t.Errorf("warm of %d, %+v", doc.WarmOf, doc.Warm)
			}
			if !strings.Contains(said.String(), "does not start warm") || !strings.Contains(said.String(), tt.says) {
				t.Errorf("the log does not say why: %q is not in\n%s", tt.says, said.String())
			}
			full, c, log := warmed(t)
			tt.spoil(t, c, log)
			c.Warm = false
			buildWith(t, c, 2, log, nil)
			sameObjects(t, "built from scratch", full, store, fitted...)
		})
	}
}

func spoilPart(t *testing.T, store sink.Store, name string) {
	t.Helper()
	if err := store.Put(t.Context(), generation.Prefix(1)+name, strings.NewReader("{}"), 2); err != nil {
		t.Fatal(err)
	}
}

// The parent goes while a warm start is under way: the build has what it needs of it.
func TestAWarmStartWhoseParentGoes(t *testing.T) {
	store, b, log := warmed(t)
	if _, err := b.until(t.Context(), log, nil, stages.Dataset); err != nil {
		t.Fatal(err)
	}
	spoilPart(t, store, generation.EncoderName+"/config.json")
	if doc := buildWith(t, b, 2, log, nil); doc.WarmOf != 1 || doc.Warm == nil {
		t.Errorf("warm of %d, %+v", doc.WarmOf, doc.Warm)
	}
}

// After a number of warm starts in a row, and after one that was refused, a generation is built from scratch.
func TestWarmStartsEnd(t *testing.T) {
	_, b, log := warmed(t)
	for g := int64(2); g <= 2+warmSteps; g++ {
		doc := buildWith(t, b, g, log, nil)
		steps := int(g) - 1
		if steps > warmSteps {
			steps = 0
		}
		if doc.WarmSteps != steps || (doc.WarmOf != 0) != (steps > 0) {
			t.Errorf("generation %d: step %d, want %d", g, doc.WarmSteps, steps)
		}
	}
	parent := &generation.Doc{Generation: 3, Settings: b.Settings, Encoder: generation.EncoderStats{Kind: hybrid.Kind}}
	if why := b.Request.cold(parent, nil); why != "" {
		t.Errorf("it does not start warm: %s", why)
	}
	if b.Request.cold(parent, &generation.Doc{Generation: 4, WarmOf: 3}) == "" {
		t.Error("it starts warm again after the last one was refused")
	}
}
