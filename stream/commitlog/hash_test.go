package commitlog

import (
	"testing"

	"giantstream/sink/rows"
)

func TestGraphHash(t *testing.T) {
	a := rows.Row{NodeID: "a", Text: "x", Labels: []string{"b", "c"}, EventTime: 1}
	b := rows.Row{NodeID: "b", Text: "y", EventTime: 2}
	sum := func(rs ...rows.Row) string {
		g := NewGraphHasher()
		for _, r := range rs {
			g.Add(&r)
		}
		return g.Sum()
	}
	want := sum(a, b)
	if got := sum(b, rows.Row{NodeID: "gone", Deleted: true}, a); got != want {
		t.Errorf("order or deleted rows change the hash: %s, %s", got, want)
	}
	for name, change := range map[string]func(*rows.Row){
		"id":         func(r *rows.Row) { r.NodeID = "z" },
		"text":       func(r *rows.Row) { r.Text = "z" },
		"class":      func(r *rows.Row) { r.Class = "z" },
		"event time": func(r *rows.Row) { r.EventTime = 9 },
		"labels":     func(r *rows.Row) { r.Labels = []string{"bc"} },
		"deleted":    func(r *rows.Row) { r.Deleted = true },
		"weight":     func(r *rows.Row) { r.AddLink("b", 1, 1) },
	} {
		other := a
		change(&other)
		if sum(other, b) == want {
			t.Errorf("%s does not change the hash", name)
		}
	}
	heavy, late := a, a
	heavy.AddLink("b", 2, 1)
	late.AddLink("b", 1, 2)
	weighed := a
	weighed.AddLink("b", 1, 1)
	if sum(heavy) == sum(weighed) || sum(late) == sum(weighed) {
		t.Error("weights or times of links do not change the hash")
	}
	same := a
	same.FeatureIndices, same.Generation = []int32{1}, 3
	if sum(same, b) != want {
		t.Error("features change the hash of the graph")
	}
}

func TestGraphHashesOfPartsMerge(t *testing.T) {
	all := []rows.Row{{NodeID: "a"}, {NodeID: "b", Text: "y"}, {NodeID: "c", EventTime: 3}}
	whole, merged := NewGraphHasher(), NewGraphHasher()
	for _, r := range all {
		whole.Add(&r)
		part := NewGraphHasher()
		part.Add(&r)
		if err := merged.Merge(part.Sum()); err != nil {
			t.Fatal(err)
		}
	}
	if whole.Sum() != merged.Sum() {
		t.Errorf("merged %s, whole %s", merged.Sum(), whole.Sum())
	}
	for _, bad := range []string{"", "zz", whole.Sum()[2:]} {
		if merged.Merge(bad) == nil {
			t.Errorf("%q merges", bad)
		}
	}
}
