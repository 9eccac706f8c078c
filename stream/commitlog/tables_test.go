package commitlog

import (
	"fmt"
	"strings"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// commitTables commits a window of shard 0 with rows of nodes, of attributes and of vectors.
func commitTables(t testing.TB, store sink.Store, seq int64, nodes []rows.Row, attributes []rows.Attributes,
	vectors []rows.Vectors) {
	t.Helper()
	n := int64(-1)
	key := func() string { n++; return RowKey(0, seq, "abc", n) }
	m := &Manifest{Format: ManifestFormat, Seq: seq, Writer: "w-abc", Next: map[string]int64{"nodes": seq}}
	var err error
	m.Objects, m.Rows, err = WriteObjects(t.Context(), store, rows.Nodes, key, 2, rows.WriteOptions{}, each(nodes))
	if err != nil {
		t.Fatal(err)
	}
	more, _, err := WriteObjects(t.Context(), store, rows.NodeAttributes, key, 2, rows.WriteOptions{}, each(attributes))
	if err != nil {
		t.Fatal(err)
	}
	m.Objects = append(m.Objects, more...)
	more, _, err = WriteObjects(t.Context(), store, rows.NodeVectors, key, 2, rows.WriteOptions{}, each(vectors))
	if err != nil {
		t.Fatal(err)
	}
	m.Objects = append(m.Objects, more...)
	appendManifest(t, store, m)
}

func each[R any](all []R) func(func(R, error) bool) {
	return func(yield func(R, error) bool) {
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// In each table the row of a key under the highest manifest wins, whichever tables the windows have, and however much
// of the log is merged.
func TestTablesAreMergedApart(t *testing.T) {
	store := &memstore.Store{}
	const windows = 3*compactionFanIn + 5
	wantNodes, wantAttributes, wantVectors := map[string]string{}, map[string]string{}, map[string]string{}
	for seq := int64(1); seq <= windows; seq++ {
		var nodes []rows.Row
		var attributes []rows.Attributes
		var vectors []rows.Vectors
		for i := range 5 {
			id, says := fmt.Sprintf("n%d", i), fmt.Sprintf("%d", seq)
			switch (int(seq) + 3*i) % 7 {
			case 0:
				nodes = append(nodes, rows.Row{NodeID: id, Text: says, EventTime: seq})
				wantNodes[id] = says
			case 1, 2, 3:
				attributes = append(attributes, rows.Attributes{NodeID: id, Attributes: says, EventTime: seq})
				wantAttributes[id] = says
			case 4:
				for input := range int32(2) {
					vectors = append(vectors, rows.Vectors{NodeID: id, Input: input, Names: []string{says}, Bits: []int32{16},
						Values: [][]byte{[]byte(says)}, EventTime: seq})
					wantVectors[fmt.Sprint(id, "/", input)] = says
				}
			}
		}
		commitTables(t, store, seq, nodes, attributes, vectors)
	}
	c := NewCompactor(CompactorOptions{Store: store})
	for range 2 {
		cut := Cut{0: windows}
		segments, err := cut.segments(t.Context(), store, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, seqs := map[string]string{}, map[string]int64{}
		last := ""
		for row, err := range newestSorted(t.Context(), store, rows.NodeAttributes, segments, everything) {
			if err != nil {
				t.Fatal(err)
			}
			if row.row.NodeID <= last {
				t.Errorf("%s after %s", row.row.NodeID, last)
			}
			last = row.row.NodeID
			got[last], seqs[last] = row.row.Attributes, row.seq
		}
		if fmt.Sprint(got) != fmt.Sprint(wantAttributes) {
			t.Errorf("attributes %v, want %v", got, wantAttributes)
		}
		for id, seq := range seqs {
			if fmt.Sprint(seq) != wantAttributes[id] {
				t.Errorf("%s is of manifest %d, want %s", id, seq, wantAttributes[id])
			}
		}
		got = map[string]string{}
		for row, err := range cut.Newest(t.Context(), store, 0) {
			if err != nil {
				t.Fatal(err)
			}
			got[row.NodeID] = row.Text
		}
		vectors := map[string]string{}
		for row, err := range cut.NewestVectors(t.Context(), store, 0) {
			if err != nil {
				t.Fatal(err)
			}
			vectors[fmt.Sprint(row.NodeID, "/", row.Input)] = string(row.Values[0])
		}
		if fmt.Sprint(vectors) != fmt.Sprint(wantVectors) {
			t.Errorf("vectors %v, want %v", vectors, wantVectors)
		}
		if fmt.Sprint(got) != fmt.Sprint(wantNodes) {
			t.Errorf("nodes %v, want %v", got, wantNodes)
		}
		if n, err := c.Merge(t.Context()); err != nil {
			t.Fatalf("%d merged: %v", n, err)
		}
	}
}

func TestAManifestKeepsTheObjectsOfATableTogether(t *testing.T) {
	m := &Manifest{Format: ManifestFormat, Seq: 1, Writer: "w", Rows: 2, Objects: []Object{
		{Key: RowKey(0, 1, "abc", 0), Rows: 1}, {Table: "attributes", Key: RowKey(0, 1, "abc", 1), Rows: 1},
		{Key: RowKey(0, 1, "abc", 2), Rows: 1}}}
	if _, err := m.Encode(""); err == nil || !strings.Contains(err.Error(), "among those of another table") {
		t.Errorf("got %v", err)
	}
	m.Objects[1], m.Objects[2] = m.Objects[2], m.Objects[1]
	if _, err := m.Encode(""); err != nil {
		t.Error(err)
	}
}
