package build

import (
	"encoding/json"
	"strings"
	"testing"

	"giantstream/internal/race"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// beginWorse begins the next generation, and makes its encoder worse than text alone in what the task that has
// evaluated it says. What is left is to decide.
func beginWorse(t *testing.T, b *testBuild, log *commits, cut map[int]int64) {
	t.Helper()
	if _, err := b.until(t.Context(), log, cut, stages.Evaluate); err != nil {
		t.Fatal(err)
	}
	_, g, err := generation.Next(t.Context(), b.Store)
	if err != nil {
		t.Fatal(err)
	}
	key := stages.TasksPrefix(g) + stages.Evaluate + "/00000/done.json"
	data, err := sink.ReadAll(t.Context(), b.Store, key)
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := seal.Open(data, sink.PlaceOf(b.Store, key))
	if err != nil {
		t.Fatal(err)
	}
	var evaluated struct {
		work.Done
		Stats map[string]any `json:"stats"`
	}
	if err := json.Unmarshal(body, &evaluated); err != nil {
		t.Fatal(err)
	}
	encoder := evaluated.Stats["evaluation"].([]any)[1].(map[string]any)
	encoder["links"].(map[string]any)["auc"] = 0.1
	if data, err = seal.JSON(evaluated, sink.PlaceOf(b.Store, key)); err != nil {
		t.Fatal(err)
	}
	if err := sink.PutBytes(t.Context(), b.Store, key, data); err != nil {
		t.Fatal(err)
	}
	b.drop(g)
}

func TestQualityGate(t *testing.T) {
	race.SkipComputing(t)
	first, second := map[int]int64{0: 1}, map[int]int64{0: 2}
	for _, c := range []struct {
		gate   generation.Gate
		first  bool // the generation that is worse is the first
		want   generation.Status
		silent bool
	}{
		{gate: "", want: generation.Ready},
		{gate: generation.GateWarn, want: generation.Ready},
		{gate: generation.GateWarn, first: true, want: generation.Ready},
		{gate: generation.GateBlock, want: generation.Refused},
		{gate: generation.GateBlock, first: true, want: generation.Ready},
		{gate: generation.GateOff, want: generation.Ready, silent: true},
	} {
		store, log := &memstore.Store{}, grown()
		b := builder(store)
		b.Gate, b.Settings.Holdout = c.gate, 0.1
		worse := int64(1)
		if !c.first {
			good := buildWith(t, b, 1, log, first)
			if good.Status != generation.Ready || len(good.Shortfalls) > 0 || good.Warning() != "" {
				t.Fatalf("gate %q: a trained encoder: %s, %v", c.gate, good.Status, good.Shortfalls)
			}
			worse = 2
		}
		beginWorse(t, b, log, second)
		b.Gate = generation.GateOff // of a process that was configured otherwise in the meantime
		b.Workers = 1
		doc := buildWith(t, b, worse, log, second)
		if doc.Status != c.want || len(doc.Shortfalls) == 0 {
			t.Errorf("gate %q, first %v: %s with shortfalls %v, want %s", c.gate, c.first, doc.Status, doc.Shortfalls,
				c.want)
		}
		if silent := doc.Warning() == ""; silent != c.silent {
			t.Errorf("gate %q: warning %q", c.gate, doc.Warning())
		} else if !silent && !strings.Contains(doc.Warning(), "linear is worse than text alone in link AUC") {
			t.Errorf("gate %q: warning %q names no figure", c.gate, doc.Warning())
		}

		latest, err := generation.Newest(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		current, refused := latest.Current, latest.Refused
		if (refused != nil) != (c.want == generation.Refused) ||
			current.Generation == worse != (c.want == generation.Ready) {
			t.Errorf("gate %q: current %d, refused %v", c.gate, current.Generation, refused)
		}
		if next, number, err := generation.Next(t.Context(), store); err != nil || next != nil || number != worse+1 {
			t.Errorf("gate %q: next is %v, %d (%v); want a new one", c.gate, next, number, err)
		}
	}
}
