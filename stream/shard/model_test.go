package shard

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// model computes what the rows of a graph must be. It is the reference that the incremental state is compared
// with.
func model(all []mutation.Mutation, undirected bool) map[string]rows.Row {
	g := oracle.New(undirected)
	for _, m := range all {
		g.Add(m)
	}
	return g.Rows()
}

func hashRows(rs map[string]rows.Row) string {
	g := commitlog.NewGraphHasher()
	for _, r := range rs {
		g.Add(&r)
	}
	return g.Sum()
}

// sameRows compares rows by id, nil and empty slices alike.
func sameRows(t testing.TB, got, want map[string]rows.Row) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[id]
		if !ok {
			t.Errorf("node %q has no row, want %+v", id, want[id])
		} else if g, w := plain(g), plain(want[id]); !reflect.DeepEqual(g, w) {
			t.Errorf("node %q:\n got %+v\nwant %+v", id, g, w)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			t.Errorf("node %q has a row and should have none: %+v", id, got[id])
		}
	}
	if hashRows(got) != hashRows(want) {
		t.Error("graph hashes differ")
	}
}

func plain(r rows.Row) rows.Row {
	return rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, Labels: append([]string{}, r.Labels...),
		EventTime: r.EventTime, Deleted: r.Deleted, Attributes: r.Attributes,
		LinkEnds: r.LinkEnds, LinkWeights: r.LinkWeights, LinkTimes: r.LinkTimes, LinkKinds: r.LinkKinds}
}
