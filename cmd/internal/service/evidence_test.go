package service

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"giantstream/cmd/internal/service/refreshing"
	"giantstream/config"
	"giantstream/sink/memstore"
	measured "giantstream/train/generation/drift"
)

// A process that refreshes measures what came after the cut, and builds on evidence although the counts do not ask
// for it. What it knows comes back after a restart, and begins again with the next generation.
func TestARefreshOnEvidence(t *testing.T) {
	store := &memstore.Store{}
	// Without the role, so that no task measures or builds before the test does.
	s, cfg := testServiceWith(t, store, Roles{Stream: true, Embed: true}, func(c *config.Config) {
		c.Refresh.MinChanges = 1e6
	})
	ctx := t.Context()
	produceGraph(t, s, cfg)
	if err := s.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if built, err := s.refresh.BuildIf(ctx, s.refresh.Outdated); !built || err != nil {
		t.Fatal(built, err)
	}
	due := func() (bool, string) {
		t.Helper()
		due, why, err := s.refresh.Due(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return due, why
	}
	measure := func(f *refreshing.Meter) *measured.Evidence {
		t.Helper()
		if err := f.Step(ctx); err != nil {
			t.Fatal(err)
		}
		return s.refresh.Evidence.Load()
	}
	f := s.refresh.NewMeter()
	if e := measure(f); e.Generation != 1 || e.UnknownNGrams.Now != nil {
		t.Errorf("nothing has changed: %+v", e)
	}
	fresh := map[string]any{}
	for i := range measured.MinCases {
		id := fmt.Sprintf("fresh-%03d", i)
		fresh[id] = map[string]any{"id": id, "text": fmt.Sprintf("wholly unheard gizmo%d quux%d", i%7, i)}
	}
	produce(t, s, cfg.Kafka.Topics.Nodes, fresh)
	if err := s.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if due, why := due(); due {
		t.Errorf("due before anything was measured, because %q", why)
	}
	e := measure(f)
	if due, why := due(); !due || !strings.HasPrefix(why, "unknown n-grams ") || !strings.Contains(why, " % > ") {
		t.Errorf("%d texts of new words: due %v, because %q; %+v", measured.MinCases, due, why, e.UnknownNGrams)
	}
	if again := measure(s.refresh.NewMeter()); !reflect.DeepEqual(again, e) {
		t.Errorf("after a restart: %+v, want %+v", again, e)
	}
	stored, err := measured.Load(ctx, store)
	if err != nil || stored == nil || !reflect.DeepEqual(&stored.Evidence, e) {
		t.Errorf("stored: %+v, %v; want %+v", stored, err, e)
	}
	for _, m := range s.refresh.Drift().Measures {
		if m.Name == "unknown_ngrams" && !m.Exceeded {
			t.Errorf("the page says %s", m)
		}
	}
	if built, err := s.refresh.BuildIf(ctx, s.refresh.Due); !built || err != nil {
		t.Fatal(built, err)
	}
	if doc := s.Current().Doc; doc.Generation != 2 || !strings.HasPrefix(doc.Because, "unknown n-grams ") {
		t.Errorf("generation %d was built because %q", doc.Generation, doc.Because)
	}
	if due, why := due(); due {
		t.Errorf("due with a generation that nothing is known of: %q", why)
	}
	if e := measure(f); e.Generation != 2 || e.UnknownNGrams.Cases != 0 {
		t.Errorf("after the refresh: %+v", e)
	}
}
