package generation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/train/encoders"
	"giantstream/train/encoders/linear"
)

// beginWorse begins generation g with an encoder that gives every text the same embedding, but for
// its sign. What is left for Build is to evaluate it and to decide.
func beginWorse(t *testing.T, b *Builder, g int64, log *commits, cut map[int]int64) {
	t.Helper()
	src, err := log.at(t.Context(), cut)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := b.Build(t.Context(), g, src, UntilDataset)
	if err != nil {
		t.Fatal(err)
	}
	v, p, _, err := loadArtifacts(t.Context(), b.Store, doc)
	if err != nil {
		t.Fatal(err)
	}
	dim := min(b.Settings.EmbeddingDim, p.Dim())
	e, err := linear.New(v, p, slices.Repeat([]float32{1}, p.Dim()*dim), dim)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encoders.Save(t.Context(), b.Store, Prefix(g)+EncoderName, e,
		encoders.Meta{Vectorizer: v, Projection: p}); err != nil {
		t.Fatal(err)
	}
}

func TestQualityGate(t *testing.T) {
	first, second := map[int]int64{0: 1}, map[int]int64{0: 2}
	for _, c := range []struct {
		gate   Gate
		first  bool // the generation that is worse is the first
		want   Status
		silent bool
	}{
		{gate: "", want: Ready},
		{gate: GateWarn, want: Ready},
		{gate: GateWarn, first: true, want: Ready},
		{gate: GateBlock, want: Refused},
		{gate: GateBlock, first: true, want: Ready},
		{gate: GateOff, want: Ready, silent: true},
	} {
		store, log := &memstore.Store{}, grown()
		b := builder(store)
		b.Gate, b.Settings.Holdout = c.gate, 0.1
		worse := int64(1)
		if !c.first {
			good := buildWith(t, b, 1, log, first)
			if good.Status != Ready || len(good.Shortfalls) > 0 || good.Warning() != "" {
				t.Fatalf("gate %q: a trained encoder: %s, %v", c.gate, good.Status, good.Shortfalls)
			}
			worse = 2
		}
		beginWorse(t, b, worse, log, second)
		b.Gate = GateOff // of a process that was configured otherwise in the meantime
		b.Workers = 1
		doc := buildWith(t, b, worse, log, second)
		if doc.Status != c.want || len(doc.Shortfalls) == 0 {
			t.Errorf("gate %q, first %v: %s with shortfalls %v, want %s", c.gate, c.first, doc.Status, doc.Shortfalls, c.want)
		}
		if silent := doc.Warning() == ""; silent != c.silent {
			t.Errorf("gate %q: warning %q", c.gate, doc.Warning())
		} else if !silent && !strings.Contains(doc.Warning(), "linear is worse than text alone in link AUC") {
			t.Errorf("gate %q: warning %q names no figure", c.gate, doc.Warning())
		}

		// A build that is killed just before its end, and resumed, decides the same.
		killed := *doc
		killed.Status = Building
		if err := killed.Save(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		b.Workers = 3
		again := buildWith(t, b, worse, log, second)
		again.Stages, doc.Stages = nil, nil
		if !reflect.DeepEqual(again, doc) {
			t.Errorf("gate %q: resumed with other workers %+v, want %+v", c.gate, again, doc)
		}
		latest, err := Newest(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		current, refused := latest.Current, latest.Refused
		if (refused != nil) != (c.want == Refused) || current.Generation == worse != (c.want == Ready) {
			t.Errorf("gate %q: current %d, refused %v", c.gate, current.Generation, refused)
		}
		if next, number, err := Next(t.Context(), store); err != nil || next != nil || number != worse+1 {
			t.Errorf("gate %q: next is %v, %d (%v); want a new one", c.gate, next, number, err)
		}
	}
}

func TestNewest(t *testing.T) {
	for _, c := range []struct {
		name             string
		statuses         []Status
		current, refused int64
	}{
		{"refused after ready", []Status{Ready, Refused}, 1, 2},
		{"the newest of two refused", []Status{Ready, Refused, Refused, Building}, 1, 3},
		{"ready after refused", []Status{Ready, Refused, Ready}, 3, 0},
	} {
		latest, err := Newest(t.Context(), with(t, c.statuses...))
		current, refused := latest.Current, latest.Refused
		if err != nil || current.Generation != c.current {
			t.Errorf("%s: current %v (%v), want %d", c.name, current, err, c.current)
		}
		if number := numberOf(refused); number != c.refused {
			t.Errorf("%s: refused %d, want %d", c.name, number, c.refused)
		}
	}
}

func numberOf(d *Doc) int64 {
	if d == nil {
		return 0
	}
	return d.Generation
}

func TestPruneKeepsOneRefusedGenerationAtMost(t *testing.T) {
	for _, c := range []struct {
		statuses []Status
		left     []int64
	}{
		{[]Status{Ready, Refused, Refused}, []int64{1, 3}},
		{[]Status{Ready, Refused, Ready}, []int64{1, 3}},
		{[]Status{Ready, Ready, Ready, Refused, Building}, []int64{2, 3, 4, 5}},
	} {
		store := with(t, c.statuses...)
		if _, err := Prune(t.Context(), store, 2); err != nil {
			t.Fatal(err)
		}
		if left, err := Numbers(t.Context(), store); err != nil || !slices.Equal(left, c.left) {
			t.Errorf("%v: left %v (%v), want %v", c.statuses, left, err, c.left)
		}
	}
}
