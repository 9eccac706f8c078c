package upkeep

import (
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// No row goes that a generation in the store, ready or being built, was fitted on.
func TestOldestCut(t *testing.T) {
	store := &memstore.Store{}
	for _, step := range []struct {
		key, doc string
		want     int64
	}{
		{"", "", 0},
		{"generations/000003/vectorizer", "a build that begins", 0},
		{"generations/000002/generation.json",
			`{"format": 1, "generation": 2, "status": "ready", "cut": {"0": 90, "1": 7}}`, 90},
		{"generations/000001/generation.json",
			`{"format": 1, "generation": 1, "status": "ready", "cut": {"0": 40, "1": 9}}`, 40},
		{"generations/000003/generation.json",
			`{"format": 1, "generation": 3, "status": "building", "cut": {"0": 95, "1": 11}}`, 40},
	} {
		if step.key != "" {
			if err := sink.PutBytes(t.Context(), store, step.key, []byte(step.doc)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := OldestCut(t.Context(), store, 0); err != nil || got != step.want {
			t.Errorf("with %s: %d, %v; want %d", step.key, got, err, step.want)
		}
	}
}
