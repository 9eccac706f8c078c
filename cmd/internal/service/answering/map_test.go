package answering

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/service/servicetest"
	"giantstream/sink"
	"giantstream/train/generation"
)

// A map is drawn once, one at a time, and again after a pause if that fails.
func TestMapIsDrawnOnce(t *testing.T) {
	g := &generation.Generation{Doc: &generation.Doc{Generation: 7}}
	began, end := make(chan int64), make(chan error)
	m := &mapServer{current: func() *generation.Generation { return g }, until: t.Context().Done(),
		draw: func(_ context.Context, _ sink.Store, g *generation.Generation) (*MapDocument, error) {
			began <- g.Doc.Generation
			return &MapDocument{Generation: g.Doc.Generation}, <-end
		}}
	for range 3 {
		if body, err := m.mapOf(g); body != nil || err != nil {
			t.Fatalf("while it is drawn: %s, %v", body, err)
		}
	}
	<-began
	end <- errors.New("the store is away")
	servicetest.Eventually(t, "the failure is answered", func() bool {
		_, err := m.mapOf(g)
		return err != nil && strings.Contains(err.Error(), "the map of generation 7: the store is away")
	})
	m.mu.Lock()
	m.again = time.Time{} // the pause is over
	m.mu.Unlock()
	if body, err := m.mapOf(g); body != nil || err != nil {
		t.Fatalf("the second attempt: %s, %v", body, err)
	}
	<-began
	end <- nil
	servicetest.Eventually(t, "the map is answered", func() bool {
		body, err := m.mapOf(g)
		return err == nil && strings.Contains(string(body), `"generation":7`)
	})
	m.draw = func(context.Context, sink.Store, *generation.Generation) (*MapDocument, error) { panic("a fault") }
	next := &generation.Generation{Doc: &generation.Doc{Generation: 8}}
	servicetest.Eventually(t, "a fault of the program is an error", func() bool {
		_, err := m.mapOf(next)
		return err != nil && strings.Contains(err.Error(), "a fault")
	})
}
