package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/config"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// keptOrders is how long the orders of TestReshardWithExpiredOrders count.
const keptOrders = 10 * 24 * time.Hour

// ordersOfDays are orders of 40 days, stated when they were placed, and the nodes that they have.
func ordersOfDays() (all []statement) {
	for n := range nodes {
		all = append(all, statement{ID: nodeID(n), At: 1_700_000_000, Text: text(n, 0)})
	}
	for i := range 120 {
		at := int64(1_700_000_000 + i%40*86400 + i)
		all = append(all, statement{Order: fmt.Sprint("o", i), At: at, Placed: at,
			Items: []string{nodeID(i % nodes), nodeID((i + 7) % nodes)}})
	}
	return all
}

// lateOrders are stated after all others: an order that has expired comes again, one counts again because its date was
// wrong, one expires because its date was wrong, and one is new.
func lateOrders() []statement {
	const newest = 1_700_000_000 + 40*86400
	items := []string{nodeID(1), nodeID(2), nodeID(3)}
	return []statement{
		{Order: "o3", At: newest, Placed: 1_700_000_000 + 3*86400, Items: items},
		{Order: "o4", At: newest, Placed: newest - 86400, Items: items},
		{Order: "o39", At: newest, Placed: 1_700_000_000, Items: items},
		{Order: "new", At: newest, Placed: newest - 86400, Items: items},
	}
}

// countedOrders are those that count of what was stated, as the oracle has it.
func countedOrders(stated []statement) (all []string) {
	g := oracle.New(true)
	for i, s := range stated {
		if s.Order == "" {
			continue
		}
		o := &mutation.Order{Time: s.Placed * 1e6}
		for _, item := range s.Items {
			o.Lines = append(o.Lines, mutation.Line{Item: item, Quantity: 1})
		}
		o.Lines = mutation.SortLines(o.Lines)
		g.Add(mutation.Mutation{Op: mutation.SetOrder, ID: s.Order, Order: o, Version: mutation.Version{
			EventTime: s.At * 1e6, Rank: uint8(mutation.Further), Offset: int64(i)}})
	}
	for _, row := range g.OrdersAfter(g.OrderHorizon(keptOrders)) {
		all = append(all, fmt.Sprintf("%+v", row))
	}
	slices.Sort(all)
	return all
}

// checkCounted compares the orders that count in a store with what was stated, and returns how many records of orders
// had expired when they came.
func checkCounted(t *testing.T, cfg *config.Config, store sink.Store, stated []statement) (expired int64) {
	t.Helper()
	cut, err := commitlog.CurrentCut(t.Context(), store, cfg.Shards)
	if err != nil {
		t.Fatal(err)
	}
	horizon, err := cut.OrderHorizon(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for p := range cfg.Shards {
		for row, err := range cut.Orders(t.Context(), store, p, horizon) {
			if err != nil {
				t.Fatal(err)
			}
			if row.Deleted {
				t.Errorf("order %s counts without lines", row.OrderID)
			}
			got = append(got, fmt.Sprintf("%+v", row))
		}
		head, err := commitlog.Head(t.Context(), store, p)
		if err != nil {
			t.Fatal(err)
		}
		expired += head.Counted[cfg.Ingest.Baskets.Topic].Expired
	}
	slices.Sort(got)
	if want := countedOrders(stated); !slices.Equal(got, want) {
		t.Errorf("after %v there count %d orders:\n%s\nwant %d:\n%s", horizon, len(got),
			strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
	return expired
}

// TestReshardWithExpiredOrders: a store whose orders have expired in part has the same orders with another number of
// shards, and what comes late is judged as in a store that kept its number.
func TestReshardWithExpiredOrders(t *testing.T) {
	if testing.Short() {
		t.Skip("runs several pipelines")
	}
	stated, late := ordersOfDays(), lateOrders()
	r, control := newResharding(t, 3, 8, false), newResharding(t, 3, 3, true)
	for _, cfg := range []*config.Config{&r.old, &r.next, &control.old} {
		cfg.Ingest.Baskets.Time, cfg.Ingest.Baskets.Keep = "placed", keptOrders
	}
	for _, p := range []*resharding{r, control} {
		sendStatements(t, &p.old, p.client, stated)
		p.upToDate(t, &p.old, p.from)
	}
	before := checkCounted(t, &control.old, control.from, stated)
	checkCounted(t, &r.old, r.from, stated)
	if _, err := r.run(t); err != nil {
		t.Fatal(err)
	}
	if again := checkCounted(t, &r.next, r.to, stated); again != 0 {
		t.Errorf("%d records of the new topic had expired before any was sent", again)
	}
	sendStatements(t, &r.next, r.client, late)
	r.upToDate(t, &r.next, r.to)
	sendStatements(t, &control.old, control.client, late)
	control.upToDate(t, &control.old, control.from)
	stated = append(stated, late...)
	resharded := checkCounted(t, &r.next, r.to, stated)
	kept := checkCounted(t, &control.old, control.from, stated) - before
	if resharded != kept || kept != 2 {
		t.Errorf("%d late records had expired after a reshard, %d without one, want 2", resharded, kept)
	}
}
