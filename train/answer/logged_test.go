package answer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/train/generation"
)

const orderedInput = 4

// stating is the row of vectors that says what an item is ordered with.
func stating(g int64, r OrderedRow) rows.Vectors {
	v := rows.Vectors{NodeID: r.ID, Input: orderedInput, Names: []string{rows.OrderedName}, Bits: []int32{32},
		Values: [][]byte{nil}, EventTime: r.After + 1}
	for _, x := range rows.OrderedVector(g, r.Row) {
		v.Values[0] = binary.LittleEndian.AppendUint32(v.Values[0], math.Float32bits(x))
	}
	return v
}

// state appends a window with rows of what items are ordered with, and with these items' own.
func (w *shopping) state(all ...rows.Vectors) {
	next := window{vectors: all}
	for i := range all {
		next.nodes = append(next.nodes, w.nodes[all[i].NodeID])
	}
	*w.log = append(*w.log, next)
}

// Who follows the orders says what the log does not: at first what has moved far, and once all orders are followed the
// rest. Those who follow no orders then have the same embeddings, by the rows in the log. Rows of other generations,
// and those that are taken back, are none.
func TestRowsOfOrdersInTheLog(t *testing.T) {
	race.SkipComputing(t)
	w, store := openGroups(), &memstore.Store{}
	served, now := w.build(t, store), time.Unix(0, 0)
	options := Options{Store: store, Log: w.log, Shards: 1, Complements: true, FollowOrders: true, Exact: true,
		Generation: func() *generation.Generation { return served },
		Now:        func() time.Time { now = now.Add(100 * time.Millisecond); return now }}
	c := New(options)
	settleAll(t, c)
	number := served.Doc.Generation
	if g, taken := c.TakeOrdered(1000); g != number || len(taken) > 0 || c.Tells() || c.Untold() > 0 {
		t.Fatalf("%d items of generation %d are ordered with others than the generation knows", len(taken), g)
	}
	plain := vectorsIn(w, c)
	next := window{}
	for k := range 30 {
		o := groupOrder(w.r, 5000+k, 3)
		o.Items, o.Quantities = append(o.Items, "new"), append(o.Quantities, 1)
		next.orders = append(next.orders, o)
	}
	*w.log = append(*w.log, next)
	for c.Untold() == 0 {
		if _, err := c.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var all []rows.Vectors
	if f, _ := c.Following(); f.Stale == 0 {
		t.Fatalf("all are followed at once: %+v", f)
	}
	_, early := c.TakeOrdered(1000)
	for _, r := range early {
		if now, own := served.Following().Ordered(r.ID); squareBetween(r.Row, own) <= farMoved {
			t.Errorf("%s was taken early, and has moved from %v to %v", r.ID, now, r.Row)
		}
		all = append(all, stating(number, r))
	}
	settleAll(t, c)
	untold := c.Untold()
	_, some := c.TakeOrdered(5)
	if c.PutBackOrdered(number, some); len(some) != 5 || c.Untold() != untold {
		t.Errorf("of %d items, 5 were taken and put back, which leaves %d", untold, c.Untold())
	}
	_, rest := c.TakeOrdered(1000)
	if len(rest) != untold || c.Untold() > 0 || len(rest) < 2*len(early) || len(early) == 0 {
		t.Errorf("%d items were taken early, %d of %d late", len(early), len(rest), untold)
	}
	for _, r := range rest {
		all = append(all, stating(number, r))
	}
	w.state(all...)
	settleAll(t, c)
	if n := c.Untold(); n > 0 {
		t.Errorf("%d items differ from what the log says", n)
	}
	follower := options
	follower.FollowOrders, follower.Complements = false, false
	differ := func(what string, want map[string][]float32) {
		t.Helper()
		other := New(follower)
		update(t, other)
		if n := sameVectors(want, vectorsIn(w, other)); n > 0 {
			t.Errorf("%s: %d embeddings of one who follows no orders are others", what, n)
		}
	}
	differ("after all was said", vectorsIn(w, c))

	// One that begins now has the rows of the log before it has solved anything.
	begun := New(options)
	update(t, begun)
	if n := sameVectors(vectorsIn(w, c), vectorsIn(w, begun)); n > 0 {
		t.Errorf("%d embeddings of one who begins to follow are others", n)
	}
	if settleAll(t, begun); begun.Untold() > 0 {
		t.Errorf("one who begins to follow has %d items to tell of", begun.Untold())
	}

	for k := range all {
		if r := &all[k]; k%2 == 0 {
			*r = stating(number+1, OrderedRow{ID: r.NodeID, Row: make([]uint16, rows.OrderedDim)})
		} else {
			r.Names, r.Bits, r.Values = nil, nil, nil
		}
	}
	w.state(all...)
	differ("after nothing is said of this generation any more", plain)
	settleAll(t, c)
	told := map[string]bool{}
	for _, r := range slices.Concat(early, rest) {
		told[r.ID] = true
	}
	if c.Untold() != len(told) {
		t.Errorf("%d items are to be told of again, not %d", c.Untold(), len(told))
	}
	// Nothing is told of what is no node.
	id := all[0].NodeID
	*w.log = append(*w.log, window{nodes: []rows.Row{{NodeID: id, Deleted: true}}})
	settleAll(t, c)
	if c.Untold() != len(told)-1 {
		t.Errorf("%d items are to be told of without one of %d", c.Untold(), len(told))
	}
	*w.log = append(*w.log, window{nodes: []rows.Row{w.nodes[id]}})
	settleAll(t, c)
	if c.Untold() != len(told) {
		t.Errorf("%d items are to be told of once it is there again, not %d", c.Untold(), len(told))
	}
}

// countedLog counts how often the rows of its stretches are read.
type countedLog struct {
	*windows
	reads int
}

func (l *countedLog) Stretches(ctx context.Context, shard int, after int64) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		for s, err := range l.windows.Stretches(ctx, shard, after) {
			all := s.Rows
			s.Rows = func(yield func(Row, error) bool) { l.reads++; all(yield) }
			if !yield(s, err) {
				return
			}
		}
	}
}

// Texts of windows that are followed are taken along: their rows are read once.
func TestTextsAreTakenAlong(t *testing.T) {
	race.SkipComputing(t)
	w, store := openGroups(), &memstore.Store{}
	served := w.build(t, store)
	log := &countedLog{windows: w.log}
	c := New(Options{Store: store, Log: log, Shards: 1, Exact: true,
		Generation: func() *generation.Generation { return served }})
	update(t, c)
	if _, err := c.texts.get(nil); !errors.Is(err, ErrTexts) {
		t.Fatal(err)
	}
	update(t, c)
	read := log.reads
	for k := range 3 {
		text := fmt.Sprintf("another thing of word%d", k)
		*w.log = append(*w.log, window{nodes: []rows.Row{{NodeID: "new", Text: text}}})
		update(t, c)
		if got, err := c.texts.get([]string{"new"}); err != nil || got[0] != text {
			t.Errorf("the text is %q, %v; want %q", got, err, text)
		}
	}
	if log.reads != read+3 {
		t.Errorf("the rows of three windows were read %d times", log.reads-read)
	}
	log.reads = 0
	*w.log = append(*w.log, window{nodes: []rows.Row{{NodeID: "new", Text: "a"}}}, window{nodes: []rows.Row{
		{NodeID: "new", Deleted: true}}})
	c.texts.seq[0] = 0 // as of texts that are begun anew
	update(t, c)
	if got, err := c.texts.get([]string{"new"}); err != nil || got[0] != "" || log.reads != 2+len(*w.log) {
		t.Errorf("the text is %q after %d reads, %v", got, log.reads, err)
	}
}
