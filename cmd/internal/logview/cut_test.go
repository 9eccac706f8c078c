package logview

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// commit commits a window of shard 0 with rows of nodes, of orders and of attributes alone.
func commit(t *testing.T, store sink.Store, seq int64, nodes []rows.Row, orders []rows.Order,
	attributes ...rows.Attributes) {
	t.Helper()
	commitWith(t, store, &commitlog.Manifest{Seq: seq}, nodes, orders, attributes...)
}

// commitWith is commit of a window whose manifest says more.
func commitWith(t *testing.T, store sink.Store, m *commitlog.Manifest, nodes []rows.Row, orders []rows.Order,
	attributes ...rows.Attributes) {
	t.Helper()
	n, seq := int64(-1), m.Seq
	key := func() string { n++; return commitlog.RowKey(0, seq, "abc", n) }
	m.Format, m.Writer, m.Next = commitlog.ManifestFormat, "w-abc", map[string]int64{"nodes": seq}
	var err error
	m.Objects, m.Rows, err = commitlog.WriteObjects(t.Context(), store, rows.Nodes, key, 10, rows.WriteOptions{},
		each(nodes))
	if err != nil {
		t.Fatal(err)
	}
	alone, _, err := commitlog.WriteObjects(t.Context(), store, rows.NodeAttributes, key, 10, rows.WriteOptions{},
		each(attributes))
	if err != nil {
		t.Fatal(err)
	}
	more, _, err := commitlog.WriteObjects(t.Context(), store, rows.Orders, key, 10, rows.WriteOptions{}, each(orders))
	if err != nil {
		t.Fatal(err)
	}
	m.Objects = slices.Concat(m.Objects, alone, more)
	var prev *commitlog.Manifest
	if seq > 1 {
		if prev, err = commitlog.ReadManifest(t.Context(), store, 0, seq-1); err != nil {
			t.Fatal(err)
		}
	}
	m.Follow(prev)
	data, err := m.Encode("")
	if err == nil {
		err = store.Create(t.Context(), commitlog.ManifestKey(0, seq), data)
	}
	if err != nil {
		t.Fatal(err)
	}
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

// A build finds the newest row of each order of its cut, and none before the first order.
func TestOrdersOfACut(t *testing.T) {
	store := &memstore.Store{}
	commit(t, store, 1, []rows.Row{{NodeID: "a", Text: "x"}}, nil)
	commit(t, store, 2, nil, []rows.Order{{OrderID: "1", Items: []string{"a", "b"}, Quantities: []float32{1, 1}},
		{OrderID: "2", Items: []string{"b"}, Quantities: []float32{1}}})
	commit(t, store, 3, nil, []rows.Order{{OrderID: "1", Deleted: true}})
	for at, want := range [][]rows.Order{nil, {{OrderID: "1", Items: []string{"a", "b"}}, {OrderID: "2",
		Items: []string{"b"}}}, {{OrderID: "1", Deleted: true}, {OrderID: "2", Items: []string{"b"}}}} {
		cut, err := OpenCut(t.Context(), store, 1, map[int]int64{0: int64(at + 1)})
		if err != nil {
			t.Fatal(err)
		}
		size, err := cut.Log().Size(t.Context())
		if err != nil || size.Orders != (want != nil) {
			t.Errorf("manifest %d: orders %t, %v", at+1, size.Orders, err)
		}
		var got []rows.Order
		for o, err := range cut.Log().Orders(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, o)
		}
		slices.SortFunc(got, func(a, b rows.Order) int { return int(a.OrderID[0]) - int(b.OrderID[0]) })
		if !slices.EqualFunc(got, want, func(a, b rows.Order) bool {
			return a.OrderID == b.OrderID && a.Deleted == b.Deleted && slices.Equal(a.Items, b.Items)
		}) {
			t.Errorf("manifest %d: orders %+v, not %+v", at+1, got, want)
		}
	}
}

// A build that begins reads each manifest once to know how much there is, and looks for orders and vectors in shards
// that have some.
func TestSizeReadsManifestsOnce(t *testing.T) {
	store := &memstore.Store{}
	const windows = 50
	for seq := range int64(windows) {
		commit(t, store, seq+1, []rows.Row{{NodeID: "a", Text: "x", EventTime: seq}}, nil)
	}
	cut, err := OpenCut(t.Context(), store, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var reads sync.Map
	store.Fail = func(op, key string) error {
		if op == "read" {
			n, _ := reads.LoadOrStore(key, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
		return nil
	}
	size, err := cut.Log().Size(t.Context())
	if err != nil || size.Rows != windows {
		t.Fatalf("%d rows of %d, %v", size.Rows, windows, err)
	}
	for seq := range int64(windows) {
		want := int64(1)
		if seq+1 == windows {
			want = 2 // the newest one also says how many nodes and links there are
		}
		key := commitlog.ManifestKey(0, seq+1)
		if n, ok := reads.Load(key); !ok || n.(*atomic.Int64).Load() != want {
			t.Errorf("%s was not read %d times", key, want)
		}
	}
}
