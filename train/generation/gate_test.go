package generation

import (
	"slices"
	"testing"
)

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
