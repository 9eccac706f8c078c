package verify

import (
	"strings"
	"testing"

	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// Each way in which a row can be wrong is told.
func TestDifferences(t *testing.T) {
	store := &memstore.Store{}
	commit(t, store, rows.Row{NodeID: "a", Text: "x", Labels: []string{"b"}, EventTime: 1},
		rows.Row{NodeID: "b", Text: "y", Labels: []string{"a"}, EventTime: 1})
	put := func(id, text, class string, at int64) mutation.Mutation {
		return mutation.Mutation{Op: mutation.PutNode, ID: id, Text: text, Class: class,
			Version: mutation.Version{EventTime: at}}
	}
	edge := mutation.Mutation{Op: mutation.PutEdge, ID: "a", Other: "b",
		Version: mutation.Version{EventTime: 1, Rank: 1}}
	weighed, kind := edge, edge
	weighed.Weight, kind.Kind.Name = mutation.WeightOf(2), "seen"
	for _, c := range []struct {
		name  string
		all   []mutation.Mutation
		total int
		words string
	}{
		{"equal", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1), edge}, 0, ""},
		{"a link less", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1)}, 2, "has 1 that they do not"},
		{"a weight", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1), weighed}, 2,
			"other kinds or weights of links"},
		{"a kind", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1), edge, kind}, 2,
			"other kinds or weights of links"},
		{"another text", []mutation.Mutation{put("a", "z", "", 1), put("b", "y", "", 1), edge}, 1, "another text"},
		{"another class", []mutation.Mutation{put("a", "x", "c", 1), put("b", "y", "", 1), edge}, 1, "class"},
		{"another time", []mutation.Mutation{put("a", "x", "", 2), put("b", "y", "", 1), edge}, 1, "event time"},
		{"a node more", []mutation.Mutation{put("a", "x", "", 1), put("b", "y", "", 1), put("c", "", "", 1), edge}, 1,
			"no row was committed"},
		{"a node less", []mutation.Mutation{put("a", "x", "", 1), edge}, 1, "do not state it"},
	} {
		graph := oracle.New(true)
		for _, m := range c.all {
			graph.Add(m)
		}
		d := &Differences{}
		err := d.compare(t.Context(), store, commitlog.Cut{0: 1}, graph.Rows(), ambient.OrDiscard(nil))
		if err != nil {
			t.Fatal(err)
		}
		if d.Total != c.total || c.total > 0 && !strings.Contains(strings.Join(d.List, "\n"), c.words) {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

// TestDifferentOrders: an order that is missing, that nobody stated, or that has another line, is told.
func TestDifferentOrders(t *testing.T) {
	set := func(id string, items ...string) mutation.Mutation {
		o := &mutation.Order{Time: 1}
		for _, item := range items {
			o.Lines = append(o.Lines, mutation.Line{Item: item, Quantity: 1})
		}
		return mutation.Mutation{Op: mutation.SetOrder, ID: id, Order: o,
			Version: mutation.Version{EventTime: 2, Rank: 2}}
	}
	store := &memstore.Store{}
	row := rows.Order{Input: 2, OrderID: "o", Time: 1, EventTime: 2, Items: []string{"a", "b"},
		Quantities: []float32{1, 1}}
	objects, _, err := commitlog.WriteObjects(t.Context(), store, rows.Orders,
		func() string { return commitlog.RowKey(0, 1, "w", 0) }, 0, rows.WriteOptions{},
		func(yield func(rows.Order, error) bool) { yield(row, nil) })
	if err != nil {
		t.Fatal(err)
	}
	putManifest(t, store, &commitlog.Manifest{Objects: objects, Orders: 1, Lines: 2})
	for _, c := range []struct {
		name  string
		all   []mutation.Mutation
		total int
		words string
	}{
		{"equal", []mutation.Mutation{set("o", "a", "b")}, 0, ""},
		{"another line", []mutation.Mutation{set("o", "a", "c")}, 1, "the topics state"},
		{"one more", []mutation.Mutation{set("o", "a", "b"), set("p", "a")}, 1, `"p": order of input 2: the topics state it`},
		{"one less", nil, 1, "do not state it"},
	} {
		graph := oracle.New(true)
		for _, m := range c.all {
			graph.Add(m)
		}
		d := &Differences{}
		if err := d.compareOrders(t.Context(), store, commitlog.Cut{0: 1}, graph); err != nil {
			t.Fatal(err)
		}
		if d.Total != c.total || c.total > 0 && !strings.Contains(strings.Join(d.List, "\n"), c.words) {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

func TestVectorsAgainstTheTopics(t *testing.T) {
	set := func(id, data string) mutation.Mutation {
		m := mutation.Mutation{Op: mutation.SetAttributes, ID: id, HasVectors: true,
			Version: mutation.Version{EventTime: 3, Rank: 2}}
		if data != "" {
			m.Vectors = []mutation.Vector{{Name: "image", Precision: mutation.Float16, Data: data}}
		}
		return m
	}
	store := &memstore.Store{}
	row := rows.Vectors{NodeID: "a", Input: 2, EventTime: 2, Names: []string{"image"}, Bits: []int32{16},
		Values: [][]byte{[]byte("12")}} // stated again since
	objects, _, err := commitlog.WriteObjects(t.Context(), store, rows.NodeVectors,
		func() string { return commitlog.RowKey(0, 1, "w", 0) }, 0, rows.WriteOptions{},
		func(yield func(rows.Vectors, error) bool) { yield(row, nil) })
	if err != nil {
		t.Fatal(err)
	}
	putManifest(t, store, &commitlog.Manifest{Objects: objects})
	for _, c := range []struct {
		name  string
		all   []mutation.Mutation
		total int
		words string
	}{
		{"equal", []mutation.Mutation{set("a", "12")}, 0, ""},
		{"another number", []mutation.Mutation{set("a", "13")}, 1, "vectors of input 2: the row has other"},
		{"one more", []mutation.Mutation{set("a", "12"), set("b", "34")}, 1, `"b": vectors of input 2: the topics state`},
		{"none", []mutation.Mutation{set("a", "")}, 1, "do not state it"},
		{"one less", nil, 1, "do not state it"},
	} {
		graph := oracle.New(true)
		for _, m := range c.all {
			graph.Add(m)
		}
		d := &Differences{}
		if err := d.compareVectors(t.Context(), store, commitlog.Cut{0: 1}, graph.Vectors()); err != nil {
			t.Fatal(err)
		}
		if d.Total != c.total || c.total > 0 && !strings.Contains(strings.Join(d.List, "\n"), c.words) {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

// commit commits rows as the only window of shard 0.
func commit(t *testing.T, store sink.Store, all ...rows.Row) {
	t.Helper()
	key := commitlog.RowKey(0, 1, "w", 0)
	info := rowstest.Put(t, store, key, all)
	putManifest(t, store, &commitlog.Manifest{Rows: info.Rows,
		Objects: []commitlog.Object{{Key: key, Rows: info.Rows, Bytes: info.Bytes, Checksum: info.Checksum}}})
}

// putManifest makes m the only manifest of shard 0.
func putManifest(t *testing.T, store sink.Store, m *commitlog.Manifest) {
	t.Helper()
	m.Format, m.Seq, m.Writer = commitlog.ManifestFormat, 1, "w"
	m.Follow(nil)
	data, err := m.Encode("")
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.PutBytes(t.Context(), store, commitlog.ManifestKey(0, 1), data); err != nil {
		t.Fatal(err)
	}
}
