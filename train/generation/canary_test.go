package generation

import (
	"errors"
	"slices"
	"testing"
	"time"

	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/memstore"
)

// canaryStore has generation 1, and the others as canaries.
func canaryStore(t *testing.T, others ...Doc) *memstore.Store {
	t.Helper()
	store := &memstore.Store{}
	for _, d := range append([]Doc{{Generation: 1, Status: Ready}}, others...) {
		d.Format = DocFormat
		if err := d.Save(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func canary(g int64) Doc { return Doc{Generation: g, Parent: 1, Status: Ready, Canary: true} }

func wantServed(t *testing.T, what string, store *memstore.Store, served, canary int64) {
	t.Helper()
	latest, err := Newest(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	number := func(d *Doc) int64 {
		if d == nil {
			return 0
		}
		return d.Generation
	}
	if number(latest.Current) != served || number(latest.Canary) != canary {
		t.Errorf("%s: %d is served and %d the canary, want %d and %d", what, number(latest.Current), number(latest.Canary),
			served, canary)
	}
}

// A canary is served once it is promoted, and never again once it is withdrawn.
func TestCanariesArePromotedOrWithdrawn(t *testing.T) {
	store := canaryStore(t, canary(2))
	choose := Chooser{Store: store, Now: time.Now}
	wantServed(t, "built", store, 1, 2)
	if d, err := choose.Promote(t.Context(), 2); err != nil || d.From != 1 || d.To != 2 {
		t.Fatalf("promote: %+v, %v", d, err)
	}
	wantServed(t, "promoted", store, 2, 0)
	for _, g := range []int64{3, 4} {
		d := canary(g)
		d.Format = DocFormat
		if err := d.Save(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		wantServed(t, "the next", store, 2, g)
	}
	if d, err := choose.Rollback(t.Context()); err != nil || d.Generation != 4 || d.From != 2 || d.To != 2 {
		t.Fatalf("rollback: %+v, %v", d, err)
	}
	wantServed(t, "taken back, and 3 does not come up again", store, 2, 0)
	if d, err := choose.Rollback(t.Context()); err != nil || d.Generation != 2 || d.To != 1 {
		t.Fatalf("rollback of what is served: %+v, %v", d, err)
	}
	wantServed(t, "rolled back", store, 1, 0)
	if _, err := choose.Promote(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	wantServed(t, "promoted after all", store, 4, 0)
}

// A pin hides the canary, and another generation is not built because of it.
func TestCanariesBehindAPin(t *testing.T) {
	store := canaryStore(t, canary(2))
	choose := Chooser{Store: store, Now: time.Now}
	if _, err := choose.Pin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	wantServed(t, "pinned", store, 1, 0)
	latest, err := Newest(t.Context(), store)
	if err != nil || latest.Last().Generation != 2 {
		t.Errorf("the newest is %+v, %v, want 2", latest.Last(), err)
	}
	if _, err := choose.Unpin(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantServed(t, "unpinned", store, 1, 2)
	if _, err := choose.Promote(t.Context(), 1); !errors.Is(err, ErrChoice) {
		t.Errorf("promotion of what is served: %v", err)
	}
}

// What is served stays however many canaries there were since; of these the newest stays.
func TestCanariesArePruned(t *testing.T) {
	store := canaryStore(t, canary(2), canary(3), canary(4))
	if _, err := Prune(t.Context(), store, 1); err != nil {
		t.Fatal(err)
	}
	left, err := Numbers(t.Context(), store)
	if err != nil || !slices.Equal(left, []int64{1, 4}) {
		t.Errorf("generations %v are left, %v", left, err)
	}
	wantServed(t, "pruned", store, 1, 4)
}

// A document of an earlier release may say that a share of the nodes has the generation. It is a canary, which is not
// served until it is promoted.
func TestASharedCanaryOfAnEarlierRelease(t *testing.T) {
	store := canaryStore(t)
	data, err := seal.JSON(struct {
		Doc
		Share float64 `json:"canary"`
	}{Doc{Format: DocFormat, Generation: 2, Parent: 1, Status: Ready}, 0.05}, sink.PlaceOf(store, docKey(2)))
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.PutBytes(t.Context(), store, docKey(2), data); err != nil {
		t.Fatal(err)
	}
	wantServed(t, "read", store, 1, 2)
	if _, err := (Chooser{Store: store, Now: time.Now}).Promote(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	wantServed(t, "promoted", store, 2, 0)
}
