package generation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/memstore"
)

// choose makes one decision: "promote 3", "pin 2", "unpin" or "rollback".
func choose(t *testing.T, store sink.Store, what string) (Decision, error) {
	t.Helper()
	c := Chooser{Store: store, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
	action, number, _ := strings.Cut(what, " ")
	g := int64(0)
	if number != "" {
		g = int64(number[0] - '0')
	}
	switch action {
	case "promote":
		return c.Promote(t.Context(), g)
	case "rollback":
		return c.Rollback(t.Context())
	case "pin":
		return c.Pin(t.Context(), g)
	case "unpin":
		return c.Unpin(t.Context())
	}
	t.Fatalf("no decision %q", what)
	return Decision{}, nil
}

func TestPeopleChooseWhichGenerationIsServed(t *testing.T) {
	four := []Status{Ready, Ready, Ready, Refused}
	for _, c := range []struct {
		name     string
		statuses []Status
		chosen   string // decisions, separated by commas
		served   int64
		held     int64
		refused  int64
	}{
		{"nobody has chosen", four, "", 3, 0, 4},
		{"rollback", four, "rollback", 2, 3, 4},
		{"rollback twice", four, "rollback, rollback", 1, 3, 4},
		{"a rollback is undone", four, "rollback, promote 3", 3, 0, 4},
		{"a newer one after a rollback", []Status{Ready, Ready, Ready}, "rollback", 2, 3, 0},
		{"a refused one is promoted", four, "promote 4", 4, 0, 0},
		{"and rolled back", four, "promote 4, rollback", 3, 0, 4},
		{"pin", four, "pin 1", 1, 3, 4},
		{"pin a refused one", four, "pin 4", 4, 0, 0},
		{"unpin", four, "pin 1, unpin", 3, 0, 4},
		{"promote moves the pin", four, "pin 1, promote 2", 2, 3, 4},
		{"rollback moves the pin", four, "pin 2, rollback", 1, 3, 4},
		{"after that, unpin", four, "pin 2, rollback, unpin", 3, 0, 4},
		{"pin a withdrawn one", four, "rollback, pin 3", 3, 0, 4},
	} {
		store := with(t, c.statuses...)
		for what := range strings.SplitSeq(c.chosen, ", ") {
			if what == "" {
				continue
			}
			if _, err := choose(t, store, what); err != nil {
				t.Fatalf("%s: %s: %v", c.name, what, err)
			}
		}
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
		if number(latest.Current) != c.served || number(latest.Held) != c.held || number(latest.Refused) != c.refused {
			t.Errorf("%s: %d is served, %d held, %d refused; want %d, %d, %d", c.name, number(latest.Current),
				number(latest.Held), number(latest.Refused), c.served, c.held, c.refused)
		}
		if want := max(c.held, c.refused); latest.PassedOver() != want || number(latest.Last()) != max(want, c.served) {
			t.Errorf("%s: passed over %d, last %d", c.name, latest.PassedOver(), number(latest.Last()))
		}
	}
}

// What is built after a rollback is served, and what is built behind a pin is not.
func TestGenerationsBuiltAfterADecision(t *testing.T) {
	for chosen, want := range map[string]int64{"rollback": 3, "pin 2": 2} {
		store := with(t, Ready, Ready)
		if _, err := choose(t, store, chosen); err != nil {
			t.Fatal(err)
		}
		third := &Doc{Format: DocFormat, Generation: 3, Status: Ready}
		if err := third.Save(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if doc, err := Current(t.Context(), store); err != nil || doc.Generation != want {
			t.Errorf("after %s: %v, %v; want %d", chosen, doc, err, want)
		}
	}
}

func TestImpossibleDecisionsChangeNothing(t *testing.T) {
	for _, c := range []struct {
		chosen string // the last one is impossible
		says   string
	}{
		{"promote 7", "the store has [1 2 4]"},
		{"promote 3", "no complete generation 3"},
		{"promote 4", "served already"},
		{"promote 1", "pin 1"},
		{"pin 5", "generation 5 is damaged"},
		{"unpin", "no generation is pinned"},
		{"pin 1, pin 1", "pinned already"},
		{"pin 1, rollback", "no generation before 1"},
	} {
		store := with(t, Ready, Ready, Building, Ready, Ready)
		if _, err := MarkDamaged(t.Context(), store, 5, errors.New("gone"), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		decisions := strings.Split(c.chosen, ", ")
		var before *Choice
		for i, what := range decisions {
			var err error
			if before, err = LoadChoice(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			_, err = choose(t, store, what)
			switch last := i == len(decisions)-1; {
			case !last && err != nil:
				t.Fatal(err)
			case last && (!errors.Is(err, ErrChoice) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s: %v, want one that says %q", c.chosen, err, c.says)
			}
		}
		if after, err := LoadChoice(t.Context(), store); err != nil || !slices.Equal(after.stored, before.stored) {
			t.Errorf("%s: the choice has changed: %v", c.chosen, err)
		}
	}
}

func TestPruneKeepsWhatPeopleHaveChosen(t *testing.T) {
	for _, c := range []struct {
		chosen string
		left   []int64 // of 1 to 4, all ready, with two to keep
	}{
		{"pin 1", []int64{1, 3, 4}},
		{"pin 4", []int64{2, 3, 4}}, // the pinned one does not count
		{"rollback", []int64{2, 3, 4}},
	} {
		store := with(t, Ready, Ready, Ready, Ready)
		if _, err := choose(t, store, c.chosen); err != nil {
			t.Fatal(err)
		}
		if _, err := Prune(t.Context(), store, 2); err != nil {
			t.Fatal(err)
		}
		if left, err := Numbers(t.Context(), store); err != nil || !slices.Equal(left, c.left) {
			t.Errorf("%s: left %v, %v; want %v", c.chosen, left, err, c.left)
		}
	}
}

// A withdrawn generation goes once there is a newer one, and what is decided next forgets it.
func TestWithdrawnGenerationsGo(t *testing.T) {
	store := with(t, Ready, Ready)
	if _, err := choose(t, store, "rollback"); err != nil {
		t.Fatal(err)
	}
	for g := int64(3); g <= 4; g++ {
		if err := (&Doc{Format: DocFormat, Generation: g, Status: Ready}).Save(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
	if removed, err := Prune(t.Context(), store, 3); err != nil || !slices.Equal(removed, []int64{2}) {
		t.Fatalf("removed %v, %v; want the withdrawn 2", removed, err)
	}
	if _, err := choose(t, store, "pin 3"); err != nil {
		t.Fatal(err)
	}
	if c, err := LoadChoice(t.Context(), store); err != nil || len(c.Withdrawn) > 0 || len(c.Decisions) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Two people decide at once: one of them is told so.
func TestDecisionsAtTheSameTime(t *testing.T) {
	store := with(t, Ready, Ready, Ready)
	for range 2 { // the first decision creates the object, the second replaces it
		slow := &between{Store: store.(*memstore.Store)}
		slow.do = func() {
			if _, err := choose(t, store, "rollback"); err != nil {
				t.Error(err)
			}
		}
		if _, err := choose(t, slow, "pin 1"); !errors.Is(err, sink.ErrChanged) {
			t.Errorf("the later decision: %v, want ErrChanged", err)
		}
	}
	if doc, err := Current(t.Context(), store); err != nil || doc.Generation != 1 {
		t.Errorf("%v, %v; want generation 1, after two rollbacks", doc, err)
	}
}

// between is a store in which something else happens just before the choice is written.
type between struct {
	*memstore.Store
	do func()
}

func (s *between) Create(ctx context.Context, key string, data []byte) error {
	s.do()
	return s.Store.Create(ctx, key, data)
}

func (s *between) Replace(ctx context.Context, key string, old, data []byte) error {
	s.do()
	return s.Store.Replace(ctx, key, old, data)
}

// Nobody guesses what people have chosen: the withdrawn generation would be served again.
func TestDamagedChoiceIsNotGuessed(t *testing.T) {
	store := with(t, Ready, Ready)
	if _, err := choose(t, store, "rollback"); err != nil {
		t.Fatal(err)
	}
	data, err := sink.ReadAll(t.Context(), store, choiceKey)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		broken := slices.Clone(data)
		broken[i] ^= 1
		if err := sink.PutBytes(t.Context(), store, choiceKey, broken); err != nil {
			t.Fatal(err)
		}
		if _, err := Newest(t.Context(), store); err == nil {
			t.Fatalf("byte %d is flipped, and the choice was read all the same", i)
		}
	}
}
