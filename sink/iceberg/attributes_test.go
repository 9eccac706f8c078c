package iceberg_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	iceberggo "github.com/apache/iceberg-go"

	"giantstream/sink/embedding"
	"giantstream/sink/iceberg"
	"giantstream/sink/vectordb"
)

// attributed is a topic of one partition that a sink follows.
type attributed struct {
	*world
	next int64
	*vectordb.Follower
}

// open starts a sink that knows some attributes.
func (a *attributed) open(t testing.TB, attributes ...vectordb.Attribute) error {
	a.attributes = attributes
	return a.follow(t, a.process())
}

func (a *attributed) follow(t testing.TB, x vectordb.Index) error {
	a.Follower = vectordb.New(vectordb.Options{Index: x, Topic: "embeddings", TopicID: "1", Partitions: 1,
		Ends:  func(context.Context) ([]int64, error) { return []int64{a.next}, nil },
		Pause: time.Microsecond, Log: slog.New(slog.DiscardHandler)})
	return a.Open(t.Context())
}

func (a *attributed) send(t testing.TB, all ...vectordb.Record) {
	t.Helper()
	for i := range all {
		all[i].Offset = a.next
		a.next++
	}
	if err := a.Handle(t.Context(), 0, all, a.next); err != nil {
		t.Fatal(err)
	}
}

func (a *attributed) settle(t testing.TB) {
	t.Helper()
	for range 2 { // it looks where the topic ends, and then whether it is there
		if err := errors.Join(a.Flush(t.Context()), a.Settle(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

// shown are the rows of main, as text.
func (a *attributed) shown(t *testing.T) map[string]string {
	t.Helper()
	rows, err := iceberg.ReadRows(t.Context(), a.catalog.meta, a.catalog.meta.CurrentSnapshot().SnapshotID, a.store,
		a.attributes)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range rows {
		out[r.NodeID] = fmt.Sprintf("%v by %d:%v", r.Vector, r.Offset, r.Values)
	}
	return out
}

func vector(id string, v float32) vectordb.Record {
	return vectordb.Record{Record: embedding.Record{NodeID: id, Generation: 1, Vector: []float32{v, v}}}
}

func values(id string, all ...any) vectordb.Record {
	return vectordb.Record{OfAttributes: true, Values: all, Record: embedding.Record{NodeID: id}}
}

func deleted(id string) vectordb.Record {
	return vectordb.Record{Record: embedding.Record{NodeID: id, Deleted: true}}
}

var (
	price = vectordb.Attribute{Name: "price", Type: vectordb.Number}
	brand = vectordb.Attribute{Name: "Brand-x", Type: vectordb.String}
	tags  = vectordb.Attribute{Name: "tags", Type: vectordb.Strings}
)

// TestAttributes: each half of a row is kept when the other one changes, within a commit and over commits, and a name
// that is added later is a column of the rows that there are.
func TestAttributes(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("commits %v", apart), func(t *testing.T) {
			a := &attributed{world: newWorld(1, 0)}
			a.calm = true
			if err := a.open(t, price); err != nil {
				t.Fatal(err)
			}
			for i := range 7 {
				id := fmt.Sprintf("n%d", i)
				a.send(t, vector(id, float32(i)), values(id, float64(i)))
			}
			a.settle(t)
			if err := a.open(t, tags, price, brand); err != nil {
				t.Fatal(err)
			}
			for _, r := range []vectordb.Record{
				vector("n0", 10),
				values("n1", []string{}, 11.0, "b"),
				deleted("n2"), values("n2", nil, 12.0, nil),
				deleted("n3"), vector("n3", 13),
				vector("n4", 14), values("n4", nil, nil, ""),
				values("n5", nil, 15.0, nil), vector("n5", 15),
				values("new", nil, 16.0, nil),
			} {
				if a.send(t, r); apart {
					a.settle(t)
				}
			}
			a.settle(t)
			want := map[string]string{
				"n0": "[10 10] by 14:[<nil> 0 <nil>]",
				"n1": "[1 1] by 2:[[] 11 b]",
				"n3": "[13 13] by 19:[]",
				"n4": "[14 14] by 20:[<nil> <nil> ]",
				"n5": "[15 15] by 23:[<nil> 15 <nil>]",
				"n6": "[6 6] by 12:[<nil> 6 <nil>]",
			}
			if got := a.shown(t); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the rows are\n%v, not\n%v", got, want)
			}
		})
	}
}

// TestAttributesOfAnotherColumn: a column of another type, or of a name that engines do not tell apart, is refused, and
// the table stays as it is.
func TestAttributesOfAnotherColumn(t *testing.T) {
	a := &attributed{world: newWorld(1, 0)}
	a.calm = true
	if err := a.open(t, price, tags); err != nil {
		t.Fatal(err)
	}
	before := a.catalog.meta.CurrentSchema()
	for _, other := range []vectordb.Attribute{{Name: "price", Type: vectordb.String},
		{Name: "tags", Type: vectordb.String}, {Name: "Price", Type: vectordb.Number},
		{Name: "kafka_offset", Type: vectordb.Number}} {
		if err := a.open(t, other); !errors.Is(err, vectordb.ErrRefused) {
			t.Errorf("%v: %v", other, err)
		}
	}
	if after := a.catalog.meta.CurrentSchema(); !after.Equals(before) {
		t.Errorf("the schema has become %v", after)
	}
	if err := a.open(t); err != nil {
		t.Errorf("without attributes: %v", err)
	}
	if f, _ := before.FindFieldByName("tags"); !f.Type.Equals(&iceberggo.ListType{ElementID: f.ID + 1,
		Element: iceberggo.PrimitiveTypes.String, ElementRequired: true}) || f.Required {
		t.Errorf("tags is %v", f)
	}
}
