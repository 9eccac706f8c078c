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
		"weight":     func(r *rows.Row) { r.LinkEnds, r.LinkKinds, r.LinkWeights, r.LinkTimes = linked("", 1, 1) },
	} {
		other := a
		change(&other)
		if sum(other, b) == want {
			t.Errorf("%s does not change the hash", name)
		}
	}
	hashes := map[string]bool{}
	for _, l := range []struct {
		kind   string
		weight float32
		time   int64
	}{{"", 1, 1}, {"", 2, 1}, {"", 1, 2}, {"k", 1, 1}} {
		r := a
		r.LinkEnds, r.LinkKinds, r.LinkWeights, r.LinkTimes = linked(l.kind, l.weight, l.time)
		hashes[sum(r)] = true
	}
	if len(hashes) != 4 {
		t.Error("kinds, weights or times of links do not change the hash")
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

// linked is a link to b, as a row has it.
func linked(kind string, weight float32, time int64) (ends, kinds []string, weights []float32, times []int64) {
	return []string{"b"}, []string{kind}, []float32{weight}, []int64{time}
}
