package service

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/client"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/export"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
	"giantstream/train/generation"
)

// mutationOf is what a statement says. No two have the same time, so that offsets decide nothing.
func mutationOf(s statement) mutation.Mutation {
	m := mutation.Mutation{Op: mutation.PutNode, ID: s.ID, Text: s.Text, Class: s.Label, Attributes: mutation.NoAttributes,
		Version: mutation.Version{EventTime: s.At * 1e6}}
	if s.Price != 0 {
		m.Attributes = fmt.Sprintf(`{"price":%v}`, s.Price)
	}
	if s.Deleted {
		m.Op = mutation.DeleteNode
	}
	switch {
	case s.Order != "":
		m.Op, m.ID, m.Version.Rank = mutation.SetOrder, s.Order, uint8(mutation.Further)
		m.Order = &mutation.Order{Time: m.Version.EventTime}
		for _, item := range s.Items {
			m.Order.Lines = append(m.Order.Lines, mutation.Line{Item: item, Quantity: 1})
		}
		m.Order.Lines = mutation.SortLines(m.Order.Lines)
		if s.Deleted {
			m.Order.Lines = nil
		}
	case s.Src != "":
		m.Op, m.ID, m.Other, m.Version.Rank = mutation.PutEdge, s.Src, s.Dst, 1
		m.Kind = mutation.Kind{Name: s.Kind, Directed: s.Kind == "accessory_of"}
		m.Weight = mutation.WeightOf(1)
		if s.Weight != nil {
			m.Weight = mutation.WeightOf(*s.Weight)
		}
		if s.Deleted {
			m.Op = mutation.DeleteEdge
		}
	}
	return m
}

// An export by event time is the graph that the records up to there state, in whatever order they came and whatever
// came since, with embeddings by a generation that has seen nothing later.
func TestExportAsOf(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a pipeline")
	}
	r := newResharding(t, 3, 3, true)
	statements := statementsOfAGraph()
	sendStatements(t, &r.old, r.client, statements)
	r.upToDate(t, &r.old, r.from)
	run := func(o export.Options) (*export.Doc, *memstore.Store, error) {
		into := &memstore.Store{Name: "export"}
		o.Store, o.Into, o.Dir, o.Log = r.from, into, t.TempDir(), slog.New(slog.DiscardHandler)
		o.Generations = wiring.Generations{Store: r.from}
		identity, err := commitlog.LoadIdentity(t.Context(), r.from)
		if err != nil {
			t.Fatal(err)
		}
		in, detach, err := wiring.OpenSource(t.Context(), &r.old, identity.Inputs, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		o.Topics = export.Topics{Inputs: in.Feed.Topics.Given(), Source: in,
			Undirected: r.old.Ingest.Undirected, Partition: client.Partition}
		doc, err := export.Run(t.Context(), o)
		return doc, into, errors.Join(err, detach())
	}
	const begin, end = 1_700_000_000, 1_700_000_900
	for _, at := range []int64{begin - 1, begin + 10, begin + 300, begin + 777, end} {
		want := oracle.New(r.old.Ingest.Undirected)
		for _, s := range statements {
			if s.At <= at {
				want.Add(mutationOf(s))
			}
		}
		doc, into, err := run(export.Options{AsOf: time.Unix(at, 0), Generation: export.NoGeneration})
		if err != nil {
			t.Fatal(err)
		}
		hasher := commitlog.NewGraphHasher()
		wanted, got := want.Rows(), exportedRows(t, into, doc)
		for id, row := range wanted {
			hasher.Add(&row)
			have := got[id]
			have.FeatureIndices, have.FeatureValues, have.Targets, have.TargetCounts = nil, nil, nil, nil
			if fmt.Sprint(have) != fmt.Sprint(row) {
				t.Errorf("as of %d: row %+v, want %+v", at, have, row)
			}
		}
		orders := exportedOrders(t, into, doc)
		live := slices.DeleteFunc(want.Orders(), func(o rows.Order) bool { return o.Deleted })
		if fmt.Sprint(orders) != fmt.Sprint(live) {
			t.Errorf("as of %d: %d orders, want %d", at, len(orders), len(live))
		}
		if len(got) != len(wanted) || doc.Hash != hasher.Sum() || doc.Refused > 0 {
			t.Errorf("as of %d: %d rows, want %d; %+v", at, len(got), len(wanted), doc)
		}
	}
	if _, _, err := run(export.Options{AsOf: time.Unix(begin+300, 0), Generation: export.Fitting}); !errors.Is(err,
		export.ErrLeaks) {
		t.Errorf("embeddings by a generation that has seen what came later: %v", err)
	}
	doc, into, err := run(export.Options{AsOf: time.Unix(end, 0), Generation: export.Fitting})
	if err != nil {
		t.Fatal(err)
	}
	current, err := generation.Current(t.Context(), r.from)
	learned := commitlog.NewGraphHasher() // training reads neither weights, kinds nor attributes
	for _, row := range exportedRows(t, into, doc) {
		row.LinkEnds, row.Attributes = nil, ""
		learned.Add(&row)
	}
	if err != nil || learned.Sum() != current.GraphHash || doc.Generation != current.Generation {
		t.Errorf("the export of all has graph %s and generation %d, the generation %+v, %v", learned.Sum(),
			doc.Generation, current, err)
	}
	published := portray(t, &r.old, r.client, r.from).embeddings
	n := 0
	for _, part := range doc.Embeddings {
		for e, err := range embedding.ReadParquet(t.Context(), into, part.Ref()) {
			if err != nil {
				t.Fatal(err)
			}
			e.Shard = 0
			if n++; !reflect.DeepEqual(e, published[e.NodeID]) {
				t.Errorf("embedding %+v, the topic has %+v", e, published[e.NodeID])
			}
		}
	}
	if n == 0 || n != len(published) {
		t.Errorf("%d embeddings, the topic has %d", n, len(published))
	}
}

// exportedOrders reads the orders of an export, by id.
func exportedOrders(t *testing.T, into *memstore.Store, doc *export.Doc) (all []rows.Order) {
	t.Helper()
	for _, part := range doc.Orders {
		for row, err := range rows.Orders.Read(t.Context(), into, part.Ref(), rows.ReadOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, row)
		}
	}
	slices.SortFunc(all, func(a, b rows.Order) int { return strings.Compare(a.OrderID, b.OrderID) })
	return all
}

// exportedRows reads the rows of an export.
func exportedRows(t *testing.T, into *memstore.Store, doc *export.Doc) map[string]rows.Row {
	t.Helper()
	all := map[string]rows.Row{}
	for _, part := range doc.Rows {
		for row, err := range rows.Nodes.Read(t.Context(), into, part.Ref(), rows.ReadOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			row.Generation = 0
			all[row.NodeID] = row
		}
	}
	return all
}
