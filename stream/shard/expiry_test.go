package shard

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/internal/race"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

const (
	day  = int64(24 * time.Hour / time.Microsecond)
	noon = day / 2
)

// keeper is a shard that keeps orders for ten days.
type keeper struct {
	*lone
	p   *pipeline
	log bytes.Buffer
}

func openKeeper(t *testing.T, keep time.Duration) *keeper {
	k := &keeper{p: newPipeline(t, newBroker(1), 0)}
	k.lone = &lone{t: t}
	k.open(keep)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func (k *keeper) open(keep time.Duration) {
	k.t.Helper()
	k.p.keep = keep
	o := k.p.options(0)
	o.Log = slog.New(slog.NewTextHandler(&k.log, nil))
	s, err := Open(k.t.Context(), o)
	if err != nil {
		k.t.Fatal(err)
	}
	k.Shard = s
}

// reopen opens the shard again, to keep orders for another time.
func (k *keeper) reopen(keep time.Duration) {
	k.t.Helper()
	if err := k.Close(); err != nil {
		k.t.Fatal(err)
	}
	k.open(keep)
}

// set states an order, and reports the name of the outcome.
func (k *keeper) set(id string, placed, stated int64, items ...string) string {
	k.t.Helper()
	return k.tell(mutation.SetOrder, id, placed, stated, items...)
}

func (k *keeper) tell(op mutation.Op, id string, placed, stated int64, items ...string) string {
	k.t.Helper()
	o := &mutation.Order{Time: placed, Customer: "c"}
	for _, item := range items {
		o.Lines = append(o.Lines, mutation.Line{Item: item, Quantity: 1})
	}
	return nameOf(k.say(inputOf(ordersTopic), stated, id, record{{Op: op, Order: o}}))
}

func nameOf(o mutation.Outcomes) string {
	switch (mutation.Outcomes{}) {
	case o.Minus(mutation.Outcomes{Applied: 1}):
		return "applied"
	case o.Minus(mutation.Outcomes{Superseded: 1}):
		return "superseded"
	case o.Minus(mutation.Outcomes{Repeated: 1}):
		return "repeated"
	case o.Minus(mutation.Outcomes{Expired: 1}):
		return "expired"
	}
	return fmt.Sprintf("%+v", o)
}

// counted commits, and returns the orders that count, with their items.
func (k *keeper) counted() (all []string) {
	k.t.Helper()
	if _, err := k.Commit(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	cut := commitlog.Cut{0: k.headSeq()}
	h, err := cut.OrderHorizon(k.t.Context(), k.p.store)
	if err != nil {
		k.t.Fatal(err)
	}
	for row, err := range cut.NewestOrders(k.t.Context(), k.p.store, 0, h) {
		if err != nil {
			k.t.Fatal(err)
		}
		all = append(all, row.OrderID+":"+strings.Join(row.Items, ","))
	}
	return all
}

func (k *keeper) want(what string, want ...string) {
	k.t.Helper()
	if got := k.counted(); !slices.Equal(got, want) {
		k.t.Errorf("%s: %v count, want %v", what, got, want)
	}
}

// inState returns what the files of the state have of an order.
func (k *keeper) inState(id string) (o order) {
	k.t.Helper()
	err := lookUp(k.state.db, orderID{byte(inputOf(ordersTopic)), id}.key(nil), func(data []byte) (err error) {
		o, err = decodeOrder(data)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return o
}

const tenDays = 10 * 24 * time.Hour

// TestAnOrderExpires: to the microsecond, at the beginning of the day, by the orders and not by the clock of the
// machine, which stands at 1970 here.
func TestAnOrderExpires(t *testing.T) {
	k := openKeeper(t, tenDays)
	k.set("a", 100*day, 100*day, "x")
	k.set("b", 100*day+1, 100*day+1, "x")
	k.set("c", 110*day-1, 110*day-1, "x")
	k.want("before the day", "a:x", "b:x", "c:x")
	k.set("d", 110*day+noon, 110*day+noon, "x")
	k.want("on the day", "b:x", "c:x", "d:x")
	if k.head.OrderClock != 110*day+noon || k.head.OrderHorizon != rows.Horizon(100*day) {
		t.Errorf("the manifest has the clock %d and the horizon %d", k.head.OrderClock, k.head.OrderHorizon)
	}
	if k.head.Orders != 3 || k.state.meta.Orders != 3 || k.state.meta.Lines != 3 {
		t.Errorf("the manifest counts %d orders, the state %d of %d lines after it", k.head.Orders, k.state.meta.Orders,
			k.state.meta.Lines)
	}
	if a := k.inState("a"); len(a.lines) > 0 || a.customer != "" || !a.stated {
		t.Errorf("the state has %+v of an order that has expired, and not been forgotten", a)
	}
	k.set("e", 111*day, 111*day, "x")
	k.want("a day later", "c:x", "d:x", "e:x")
	if a := k.inState("a"); a.known() {
		t.Errorf("the state has %+v of an order that nothing can bring back", a)
	}
}

// TestAWrongDateMovesNoClock: and counts for as long as an order of the day after it was stated.
func TestAWrongDateMovesNoClock(t *testing.T) {
	k := openKeeper(t, tenDays)
	k.set("a", 100*day, 100*day, "x")
	k.set("ahead", 101*day, 100*day, "x")
	k.want("a day ahead", "a:x", "ahead:x")
	if k.head.OrderClock != 101*day {
		t.Errorf("an order of a day ahead moves the clock to %d", k.head.OrderClock)
	}
	k.set("wrong", 100_000*day, 100*day, "x")
	k.want("a wrong date", "a:x", "ahead:x", "wrong:x")
	if k.head.OrderClock != 101*day {
		t.Errorf("a wrong date moves the clock to %d", k.head.OrderClock)
	}
	k.set("b", 110*day, 110*day, "x")
	k.want("later", "ahead:x", "b:x", "wrong:x")
	k.set("c", 111*day, 111*day, "x")
	k.want("when the day after it was stated has passed", "b:x", "c:x")
	k.tell(mutation.RemoveLines, "c", 100_000*day, 100_000*day, "y")
	k.set("d", 100_000*day, 100_000*day)
	k.want("what takes lines back, or states none, moves nothing", "b:x", "c:x")
}

// TestCorrectionsOfOrdersThatExpire: the newest statement decides, in any order of arrival.
func TestCorrectionsOfOrdersThatExpire(t *testing.T) {
	k := openKeeper(t, tenDays)
	k.set("late", 100*day, 100*day, "x")
	k.set("moved", 100*day, 100*day, "x")
	k.set("clock", 112*day, 112*day, "x")
	k.want("at first", "clock:x")
	for what, c := range map[string][2]string{
		"an order that arrives after its time": {k.set("old", 101*day, 101*day, "x"), "expired"},
		"the order again":                      {k.set("late", 100*day, 100*day, "x"), "expired"},
		"a correction with a newer time":       {k.set("moved", 105*day, 113*day, "y"), "applied"},
		"what a correction has replaced":       {k.set("moved", 106*day, 112*day, "x"), "superseded"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %s, want %s", what, c[0], c[1])
		}
	}
	k.want("it counts again", "clock:x", "moved:y")
	if got := k.set("moved", 90*day, 114*day, "z"); got != "expired" {
		t.Errorf("a correction with an older time is %s", got)
	}
	k.want("it counts no more", "clock:x")
	// The version of the correction is remembered, so the statement before it is no news.
	k.set("clock", 123*day, 123*day, "x")
	k.want("later", "clock:x")
	if got := k.set("moved", 114*day, 113*day, "x"); got != "superseded" {
		t.Errorf("what a correction with an older time has replaced is %s", got)
	}
	k.want("it does not come back", "clock:x")
	k.set("clock", 125*day, 125*day, "x")
	k.want("forgotten", "clock:x")
	if o := k.inState("moved"); o.known() {
		t.Errorf("the state has %+v", o)
	}
	if got := k.set("moved", 114*day, 113*day, "x"); got != "expired" {
		t.Errorf("what could have come back is %s when the correction is forgotten", got)
	}
	k.want("it does not come back", "clock:x")
}

// TestLinesExpireEachByItsTime: where records state single lines.
func TestLinesExpireEachByItsTime(t *testing.T) {
	k := openKeeper(t, tenDays)
	k.tell(mutation.AddLines, "o", 100*day, 100*day, "a")
	k.tell(mutation.AddLines, "o", 105*day, 105*day, "b")
	k.tell(mutation.AddLines, "o", 106*day, 106*day, "c")
	k.tell(mutation.RemoveLines, "o", 107*day, 107*day, "c")
	k.want("all", "o:a,b")
	k.set("clock", 110*day, 110*day, "x")
	k.want("a line less", "clock:x", "o:b")
	k.tell(mutation.AddLines, "o", 106*day, 106*day, "c")
	k.want("what was taken back", "clock:x", "o:b")
	k.tell(mutation.AddLines, "o", 111*day, 111*day, "d")
	k.want("a line more", "clock:x", "o:b,d")
	k.set("clock", 115*day, 115*day, "x")
	k.want("the first ones have expired", "clock:x", "o:d")
}

// TestOrdersAreKeptForAnotherTime: a shorter one holds from the next window on, without a record; a longer one brings
// nothing back and says so.
func TestOrdersAreKeptForAnotherTime(t *testing.T) {
	k := openKeeper(t, 0)
	for i := range int64(20) {
		k.set(fmt.Sprintf("o%02d", i), (100+i)*day, (100+i)*day, "x")
	}
	if all := k.counted(); len(all) != 20 {
		t.Errorf("%d orders count, without a bound", len(all))
	}
	k.reopen(tenDays)
	if all := k.counted(); len(all) != 10 || k.headSeq() != 2 {
		t.Errorf("%v count at manifest %d", all, k.headSeq())
	}
	if k.head.Orders != 10 || k.state.meta.Orders != 10 {
		t.Errorf("the manifest has %d orders, the state %d", k.head.Orders, k.state.meta.Orders)
	}
	k.reopen(tenDays)
	if k.counted(); k.headSeq() != 2 || k.log.Len() > 0 {
		t.Errorf("manifest %d, for nothing; the log says %s", k.headSeq(), k.log.String())
	}
	for _, keep := range []time.Duration{2 * tenDays, 0} {
		k.log.Reset()
		k.reopen(keep)
		if all := k.counted(); len(all) != 10 || !strings.Contains(k.log.String(), "1970-04-20T00:00:00.000Z") {
			t.Errorf("%v count, and the log says %s", all, k.log.String())
		}
	}
	disk := k.p.disks[0]
	k.p.disks[0] = vfs.NewCrashableMem()
	if k.reopen(2 * tenDays); k.state.meta.OrderHorizon != rows.Horizon(109*day) || k.state.meta.OrderClock != 119*day {
		t.Errorf("a state that is built again begins with %+v", k.state.meta)
	}
	k.p.disks[0] = disk
	k.reopen(2 * tenDays)
	k.set("p", 125*day, 125*day, "x")
	if all := k.counted(); len(all) != 11 {
		t.Errorf("%v count", all)
	}
	shorter := k.p.options(0)
	shorter.KeepOrders = time.Hour
	if _, err := Open(t.Context(), shorter); err == nil {
		t.Error("orders are kept for an hour")
	}
}

// ordersInDays sends orders over a hundred days, of which some are corrected, late, wrongly dated, or taken back.
func ordersInDays(b *broker, rng *rand.Rand, n int) {
	for i := range n {
		now := (1000 + int64(i*100/n)) * day
		stated := now - rng.Int64N(30)*rng.Int64N(2)*day + rng.Int64N(day)
		items := []string{"a", "b", "c", "d"}[rng.IntN(4):]
		r := randomOrder(rng, items)
		for j := range r {
			placed := stated - rng.Int64N(25)*day
			switch rng.IntN(6) {
			case 0:
				placed -= placed % day
			case 1:
				placed = stated + []int64{day, day + 1, 1000 * day}[rng.IntN(3)]
			}
			r[j].ID = fmt.Sprintf("o%d", rng.IntN(8+n/10))
			r[j].ID, r[j].Order.Time, r[j].Order.Customer = r[0].ID, placed, []string{"", "c"}[rng.IntN(2)]
		}
		b.send(ordersTopic, stated, r)
	}
}

// TestOrdersExpireAsIfTheyHadNotBeen: whatever order they arrive in, and however often workers are killed, what counts
// is what an oracle says, which reads all statements and then leaves out what has expired.
func TestOrdersExpireAsIfTheyHadNotBeen(t *testing.T) {
	race.SkipComputing(t)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 77))
		b := newBroker(1 + rng.IntN(3))
		ordersInDays(b, rng, 20+rng.IntN(120))
		p := newPipeline(t, b, seed)
		p.keep = []time.Duration{24 * time.Hour, tenDays, 31*time.Hour + 3*tenDays, 0}[rng.IntN(4)]
		p.checkpoints = rng.IntN(2) == 0
		p.drain(rng.IntN(12))
		p.checkOrders()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestExpiryDoesNotDependOnShards: nor on when windows end, nor on the order of arrival, as far as versions do not.
func TestExpiryDoesNotDependOnShards(t *testing.T) {
	var hashes []string
	for shards := 1; shards <= 4; shards++ {
		b := newBroker(1)
		ordersInDays(b, rand.New(rand.NewPCG(1, 78)), 150)
		all := b.logs[0][ordersTopic]
		to := newBroker(shards)
		for _, i := range rand.New(rand.NewPCG(uint64(shards), 79)).Perm(len(all)) {
			// The event time alone says which of two is newer, here.
			r := all[i]
			for j := range r {
				r[j].Version = mutation.Version{EventTime: r[0].Version.EventTime, Rank: r[0].Version.Rank}
			}
			log := to.logs[to.shardOf(r[0].ID)]
			log[ordersTopic] = append(log[ordersTopic], r)
		}
		p := newPipeline(t, to, uint64(shards))
		p.keep = tenDays
		p.drain(0)
		p.checkOrders()
		hashes = append(hashes, p.hashOrders())
	}
	if slices.Sort(hashes); hashes[0] != hashes[3] {
		t.Errorf("the orders that count have the hashes %v", hashes)
	}
}

// hashOrders returns the fingerprint of the orders that count.
func (p *pipeline) hashOrders() string {
	p.t.Helper()
	ctx := context.Background()
	cut, err := commitlog.CurrentCut(ctx, p.store, p.b.shards)
	if err != nil {
		p.t.Fatal(err)
	}
	h, err := cut.OrderHorizon(ctx, p.store)
	if err != nil {
		p.t.Fatal(err)
	}
	g := commitlog.NewGraphHasher()
	for shard := range p.b.shards {
		for row, err := range cut.Orders(ctx, p.store, shard, h) {
			if err != nil {
				p.t.Fatal(err)
			}
			g.AddOrder(&row)
		}
	}
	return g.Sum()
}
