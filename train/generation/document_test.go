package generation

import (
	"errors"
	"slices"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// with returns a store with generations 1, 2, … of the given status, each
// with an artifact in its folder. An empty status leaves the document out.
func with(t *testing.T, statuses ...Status) sink.Store {
	t.Helper()
	store := &memstore.Store{}
	for i, status := range statuses {
		g := int64(i + 1)
		if err := sink.PutBytes(t.Context(), store, Prefix(g)+"embeddings/part-00000.parquet",
			[]byte("x")); err != nil {
			t.Fatal(err)
		}
		if status == "" {
			continue
		}
		d := &Doc{Format: DocFormat, Generation: g, Status: status, Cut: map[int]int64{0: g}}
		if err := d.Save(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestCurrentIsTheNewestReadyGeneration(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []Status
		want     int64 // 0: none
	}{
		{"empty store", nil, 0},
		{"only unfinished", []Status{Building}, 0},
		{"unfinished after ready", []Status{Ready, Ready, Building}, 2},
		{"folder without document", []Status{Ready, ""}, 1},
	} {
		doc, err := Current(t.Context(), with(t, c.statuses...))
		switch {
		case c.want == 0 && !errors.Is(err, ErrNone):
			t.Errorf("%s: %v, want ErrNone", c.name, err)
		case c.want != 0 && (err != nil || doc.Generation != c.want):
			t.Errorf("%s: %v, %v, want generation %d", c.name, doc, err, c.want)
		}
	}
}

func TestNextResumesTheUnfinishedGeneration(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []Status
		number   int64
		resumes  bool
	}{
		{"empty store", nil, 1, false},
		{"after a ready one", []Status{Ready}, 2, false},
		{"unfinished", []Status{Ready, Building}, 2, true},
		{"died before its document", []Status{Ready, ""}, 2, false},
	} {
		doc, number, err := Next(t.Context(), with(t, c.statuses...))
		if err != nil || number != c.number || (doc != nil) != c.resumes {
			t.Errorf("%s: %v, %d, %v; want %d, resumes %v", c.name, doc, number, err, c.number, c.resumes)
		}
	}
}

func TestPruneKeepsTheNewestReadyAndWhatIsBuilding(t *testing.T) {
	store := with(t, Ready, "", Ready, Ready, Building)
	removed, err := Prune(t.Context(), store, 2)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(removed)
	if !slices.Equal(removed, []int64{1, 2}) {
		t.Errorf("removed %v, want 1 and the leftover 2", removed)
	}
	left, err := Numbers(t.Context(), store)
	if err != nil || !slices.Equal(left, []int64{3, 4, 5}) {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestPruneNeverRemovesTheOnlyReadyGeneration(t *testing.T) {
	store := with(t, Ready)
	if removed, err := Prune(t.Context(), store, 0); err != nil || len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
}

// A document that cannot be read just now says nothing about its generation.
func TestPruneRemovesNothingThatItCannotRead(t *testing.T) {
	store := with(t, Ready, Ready, Ready)
	broken := errors.New("the store is away")
	store.(*memstore.Store).Fail = func(op, key string) error {
		if op == "open" && key == docKey(2) {
			return broken
		}
		return nil
	}
	if removed, err := Prune(t.Context(), store, 2); !errors.Is(err, broken) || len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	store.(*memstore.Store).Fail = nil
	if left, err := Numbers(t.Context(), store); err != nil || len(left) != 3 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	store := with(t)
	if err := sink.PutBytes(t.Context(), store, docKey(1), []byte(`{"format": 99, "generation": 1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), store, 1); err == nil {
		t.Error("a document of format 99 was read")
	}
}

// The first generation of a store has the number that the store was given, and later ones follow it.
func TestBeginAt(t *testing.T) {
	store := &memstore.Store{}
	for range 2 {
		if err := BeginAt(t.Context(), store, 1001); err != nil {
			t.Fatal(err)
		}
	}
	if _, g, err := Next(t.Context(), store); g != 1001 || err != nil {
		t.Errorf("the first generation is %d, %v", g, err)
	}
	if got, err := Numbers(t.Context(), store); err != nil || len(got) > 0 {
		t.Errorf("generations %v, %v", got, err)
	}
	if err := sink.PutBytes(t.Context(), store, "generations/first.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Next(t.Context(), store); !errors.Is(err, sink.ErrDamaged) {
		t.Errorf("a damaged number: %v", err)
	}
}
