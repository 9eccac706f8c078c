package drift_test

import (
	"reflect"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/generation/drift"
)

func TestADocumentThatCannotBeReadSaysNothing(t *testing.T) {
	ctx, store := t.Context(), &memstore.Store{}
	if d, err := drift.Load(ctx, store); d != nil || err != nil {
		t.Fatal(d, err)
	}
	want := drift.Document{At: time.Unix(1, 0).UTC(), Changes: 3, NeedsChanges: 4, Thresholds: defaults,
		Evidence: drift.Evidence{Generation: 7, Upto: map[int]int64{0: 5},
			LinkAUC: drift.Measure{Cases: 300, Now: new(0.8), AtCut: new(0.9)}}}
	if err := want.Save(ctx, store); err != nil {
		t.Fatal(err)
	}
	got, err := drift.Load(ctx, store)
	if want.Format = 1; err != nil || !reflect.DeepEqual(*got, want) {
		t.Fatal(got, err)
	}
	data, err := sink.ReadAll(ctx, store, "drift.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		flipped := append([]byte(nil), data...)
		flipped[i] ^= 4
		if err := sink.PutBytes(ctx, store, "drift.json", flipped); err != nil {
			t.Fatal(err)
		}
		if d, err := drift.Load(ctx, store); d != nil || err != nil {
			t.Fatalf("byte %d flipped: %+v, %v", i, d, err)
		}
	}
}
