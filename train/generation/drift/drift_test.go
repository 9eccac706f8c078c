package drift_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/sink/rows"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/linear"
	"giantstream/train/generation"
	"giantstream/train/generation/drift"
	"giantstream/train/numeric"
)

// defaults are those of the configuration.
var defaults = drift.Thresholds{UnknownNGrams: 0.08, LabelFit: 0.1, LinkAUC: 0.1, Cosine: 0.3}

func meter(t *testing.T, g *generation.Generation, s source) *drift.Meter {
	t.Helper()
	m, err := drift.New(g, true)
	if err == nil {
		err = m.Learn(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func evidence(t *testing.T, m *drift.Meter, changed []rows.Row) *drift.Evidence {
	t.Helper()
	for _, r := range changed {
		if err := m.Apply(&r); err != nil {
			t.Fatal(err)
		}
	}
	e, err := m.Evidence()
	if err != nil {
		t.Fatal(err)
	}
	return &e
}

func say(t *testing.T, what string, e *drift.Evidence) {
	t.Helper()
	var all []string
	for f := range e.Findings(defaults) {
		all = append(all, f.String())
	}
	t.Logf("%s: %s", what, strings.Join(all, "; "))
}

// A stream of more of the same asks for no generation, whatever the seed. One with new families does, and each of the
// measures that can see it does so by itself.
func TestOnlyDriftAsksForAGeneration(t *testing.T) {
	for seed := range uint64(6) {
		encoder := linear.Kind
		if seed == 0 {
			encoder = hybrid.Kind
		}
		t.Run(fmt.Sprintf("seed %d, %s", seed, encoder), func(t *testing.T) {
			t.Parallel()
			w := newWorld(seed)
			w.grow(1500, 0, 12)
			at := w.source()
			g := build(t, at, encoder)
			same := evidence(t, meter(t, g, at), w.grow(500, 0, 12))
			say(t, "the same families", same)
			for f := range same.Findings(defaults) {
				if f.Now == nil && f.Name != "cosine" {
					t.Errorf("%s: not known after %d cases", f.Title, f.Cases)
				}
			}
			if why := same.Due(defaults); why != "" {
				t.Errorf("a generation is due for more of the same: %s", why)
			}
			w = newWorld(seed)
			w.grow(1500, 0, 12)
			other := evidence(t, meter(t, g, at), w.grow(500, 12, 16))
			say(t, "new families", other)
			for f := range other.Findings(defaults) {
				if f.Name != "cosine" && !f.Exceeded {
					t.Errorf("new families, and %s", f)
				}
			}
		})
	}
}

func TestChangedTextsMove(t *testing.T) {
	w := newWorld(7)
	w.grow(1000, 0, 8)
	at := w.source()
	g := build(t, at, linear.Kind)
	m := meter(t, g, at)
	var changed []rows.Row
	for i := range 300 {
		r := w.nodes[i]
		r.Text = w.text((w.family[i] + 1) % 8)
		changed = append(changed, r)
	}
	e := evidence(t, m, changed)
	say(t, "other subjects", e)
	if why := e.Due(defaults); !strings.HasPrefix(why, "cosine of changed texts") {
		t.Errorf("300 texts have another subject, and a generation is due because of %q", why)
	}
	back := evidence(t, m, w.nodes[:300])
	if back.Cosine.Cases != 0 || back.Due(defaults) != "" {
		t.Errorf("the texts are as they were, and yet: %+v", back.Cosine)
	}
}

// The measures are a function of the rows: the order of shards does not matter, nor whether windows were merged, nor
// whether a process has seen a row twice.
func TestTheMeasuresAreAFunctionOfTheRows(t *testing.T) {
	for name, c := range map[string]struct{ grow, removed int }{
		"full samples":                 {600, 0},
		"samples with room, deletions": {130, 9},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3)
			w.grow(1200, 0, 8)
			at := w.source()
			g := build(t, at, linear.Kind)
			first, second := w.grow(c.grow, 4, 10), w.grow(c.grow, 4, 10)
			for i := range c.removed {
				second = append(second, rows.Row{NodeID: first[len(first)-1-i].NodeID, Deleted: true})
			}
			want := evidence(t, meter(t, g, at), slices.Concat(first, second))
			newest := map[string]rows.Row{}
			for _, r := range slices.Concat(first, second) {
				newest[r.NodeID] = r
			}
			shard := func(r rows.Row) uint64 { return numeric.HashString(r.NodeID) % 3 }
			byShard := slices.Concat(first, first, second)
			slices.SortStableFunc(byShard, func(a, b rows.Row) int { return int(shard(b)) - int(shard(a)) })
			for name, in := range map[string][]rows.Row{
				"merged":                         slices.Collect(maps.Values(newest)), // in any order
				"shard by shard, and some twice": byShard,
			} {
				got := evidence(t, meter(t, g, at), in)
				// What was deleted may have kept an instance out of a label's eight.
				if same := reflect.DeepEqual(got, want); !same && (c.removed == 0 || !alike(got, want)) {
					t.Errorf("%s: the measures differ", name)
					say(t, "got", got)
					say(t, "want", want)
				}
			}
		})
	}
}

// alike says that two measurements have the same cases, and nearly the same figures.
func alike(a, b *drift.Evidence) bool {
	for _, m := range [][2]drift.Measure{{a.UnknownNGrams, b.UnknownNGrams}, {a.LabelFit, b.LabelFit},
		{a.LinkAUC, b.LinkAUC}, {a.Cosine, b.Cosine}} {
		if m[0].Cases != m[1].Cases || (m[0].Now == nil) != (m[1].Now == nil) ||
			m[0].Now != nil && math.Abs(*m[0].Now-*m[1].Now) > 0.002 {
			return false
		}
	}
	return true
}

func TestFewCasesSayNothing(t *testing.T) {
	w := newWorld(5)
	w.grow(400, 0, 4)
	at := w.source()
	g := build(t, at, linear.Kind)
	e := evidence(t, meter(t, g, at), w.grow(drift.MinCases/8, 4, 5))
	tiny := drift.Thresholds{UnknownNGrams: 1e-9, LabelFit: 1e-9, LinkAUC: 1e-9, Cosine: 1e-9}
	if why := e.Due(tiny); why != "" {
		t.Errorf("due after a handful of nodes: %s", why)
	}
	for f := range e.Findings(tiny) {
		if f.Now != nil || !strings.Contains(f.String(), "not known yet") {
			t.Errorf("after %d cases: %s", f.Cases, f)
		}
	}
}

func TestFindingsSayHowTheyStand(t *testing.T) {
	e := drift.Evidence{UnknownNGrams: drift.Measure{Cases: 900, Now: new(0.12), AtCut: new(0.03)},
		LinkAUC: drift.Measure{Cases: 900, Now: new(0.8), AtCut: new(0.85)}}
	if got, want := e.Due(drift.Thresholds{UnknownNGrams: 0.05}),
		"unknown n-grams 12.0 % > 8.0 % (3.0 % at the cut)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := e.Due(drift.Thresholds{LinkAUC: 0.04}),
		"AUC of fresh edges 0.800 < 0.810 (0.850 at the cut)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if why := e.Due(drift.Thresholds{UnknownNGrams: 0.1, LinkAUC: 0.06, LabelFit: 1e-9}); why != "" {
		t.Error(why)
	}
}
