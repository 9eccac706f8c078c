package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"giantstream/stream/mutation"
)

// plan is what a seed decides before anything happens.
type plan struct {
	shards, machines int
	undirected       bool
	records          []sent
	active           time.Duration // until the last record is sent, and failures end

	// Of calls to the store and the brokers.
	slow                time.Duration // most delays are below
	refuse, drop, lose  float64       // shares that fail before and after their effect
	disturbances        int           // kills, freezes and so on
	changes             int           // of a window
	window              time.Duration
	batch               int // most records of a batch
	memory              int64
	checkpointEvery     time.Duration
	generations         int
	refreshEvery        time.Duration
	grace, history      time.Duration // of merged rows, of manifests
	compactEvery        time.Duration
	orphansEvery        time.Duration
	janitors            bool // any process merges and collects for any shard
	retention, zombies  bool
	longFreeze          bool // the first disturbance is a freeze of shard 0's owner, until the log is folded
	leaseTTL, heartbeat time.Duration
	load                bool // until the failures end, nothing is committed
	saveEvery           time.Duration
	remember            bool          // processes keep in memory what they have committed
	canary              bool          // a second topic gets new generations first, until people promote or withdraw
	keep                time.Duration // of orders; 0 is for ever
}

// sent is a record and when it is sent.
type sent struct {
	at        time.Duration
	topic     string
	eventTime int64
	record    record
}

func newPlan(d dice) plan {
	r := d.randFor("plan")
	p := plan{
		shards: 1 + r.IntN(3), machines: 2 + r.IntN(2), undirected: r.IntN(4) > 0,
		active: drawDuration(r, 20*time.Second, 90*time.Second),
		slow:   drawDuration(r, 2*time.Millisecond, 60*time.Millisecond),
		refuse: pick(r, 0, 0.01, 0.05), drop: pick(r, 0, 0.01, 0.03), lose: pick(r, 0, 0.01, 0.05),
		disturbances: r.IntN(30),
		changes:      1 + r.IntN(8), window: drawDuration(r, 200*time.Millisecond, 5*time.Second),
		batch: 1 + r.IntN(8), memory: pick[int64](r, 48<<20, 0, 0, 3000),
		checkpointEvery: pick(r, 0, 2*time.Second, 8*time.Second, 20*time.Second),
		generations:     r.IntN(4), refreshEvery: drawDuration(r, 5*time.Second, 25*time.Second),
		grace:        drawDuration(r, 100*time.Millisecond, 20*time.Second),
		compactEvery: drawDuration(r, 2*time.Second, 12*time.Second),
		orphansEvery: drawDuration(r, 3*time.Second, 20*time.Second),
		janitors:     r.IntN(3) == 0,
		retention:    r.IntN(2) == 0, zombies: r.IntN(3) > 0,
		leaseTTL:  drawDuration(r, 3*time.Second, 10*time.Second),
		heartbeat: drawDuration(r, time.Second, 4*time.Second),
	}
	records := 20 + r.IntN(100)
	if oneIn(r, 4) { // a log long enough for a merged block
		p.shards, p.changes, p.batch, p.window = 1, 1, 1+r.IntN(2), 500*time.Millisecond
		p.slow = min(p.slow, 15*time.Millisecond)
		p.janitors = true
		records = 110 + r.IntN(60)
		if oneIn(r, 2) { // and folded, once there are a generation and a checkpoint behind it
			records = 240 + r.IntN(60)
			p.active, p.window, p.batch, p.zombies = 60*time.Second, 200*time.Millisecond, 1, true
			p.generations, p.refreshEvery = 1, drawDuration(r, 30*time.Second, 45*time.Second)
			p.checkpointEvery = pick(r, time.Second, 4*time.Second)
			p.refuse, p.drop, p.lose = 0, pick(r, 0, 0.01), pick(r, 0, 0.003) // folding takes many calls
			p.longFreeze, p.disturbances = true, 1+p.disturbances/3
			p.compactEvery = min(p.compactEvery, 4*time.Second)
		}
	}
	p.history = drawDuration(r, 0, 10*time.Second)
	nodes := 4 + r.IntN(16)
	for range records {
		s := sent{at: drawDuration(r, 0, p.active)}
		s.topic, s.record = randomRecord(r, nodes)
		s.eventTime = int64(s.at/time.Second) + r.Int64N(20)
		p.records = append(p.records, s)
	}
	p.load = oneIn(r, 8)
	p.saveEvery = pick(r, 0, 2*time.Second, 10*time.Second)
	p.remember = !oneIn(r, 3)
	p.canary = oneIn(r, 2)
	if p.keep = pick(r, 0, 2*day, 5*day+7*time.Hour, 20*day, 60*day); p.keep > 0 {
		for i := range p.records {
			p.records[i].inDays(r)
		}
	}
	kinds := pick(r, 0, 0, p.active/2, 2*p.active) // from when on links have kinds
	for i := range p.records {
		if s := &p.records[i]; s.at < kinds {
			s.leaveOutKinds()
		}
	}
	return p
}

const day = 24 * time.Hour

// inDays makes days of the event time of an order, and lets it be placed at about that time: before it, at bounds of
// what counts, or at a wrong date.
func (s *sent) inDays(r *rand.Rand) {
	if s.topic != ordersTopic {
		return
	}
	stated := time.Duration(1000+s.eventTime)*day + time.Duration(r.IntN(24))*time.Hour
	s.eventTime = stated.Microseconds()
	for i := range s.record {
		o := s.record[i].Order
		placed := stated - time.Duration(r.IntN(40))*day
		switch r.IntN(6) {
		case 0:
			placed = placed.Truncate(day)
		case 1:
			placed = stated - time.Duration(r.IntN(5))*time.Hour
		case 2:
			placed = stated + pick(r, day, day+time.Microsecond, 3*day, 10_000*day)
		}
		o.Time, o.Customer = placed.Microseconds(), pick(r, "", "c1", "c2")
	}
}

// leaveOutKinds makes plain links of those of a record.
func (s *sent) leaveOutKinds() {
	if s.topic == viewsTopic {
		s.topic = edgesTopic
	}
	for i := range s.record {
		s.record[i].Kind, s.record[i].Kinds = mutation.Kind{}, nil
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// delay draws how long a call takes.
func (p *plan) delay(r *rand.Rand) time.Duration {
	if oneIn(r, 40) {
		return drawDuration(r, 0, 40*p.slow)
	}
	return drawDuration(r, 0, p.slow)
}

// randomOrder draws what a record states of one of a few orders: all of it, lines, or lines to take back. A change
// event has an order as it was and as it is.
func randomOrder(r *rand.Rand, items []string) (rec record) {
	id := fmt.Sprintf("o%02d", r.IntN(12))
	for range 1 + r.IntN(2) {
		o := &mutation.Order{Time: int64(r.IntN(30)), Kind: pick(r, "", "cart")}
		for _, item := range items[r.IntN(len(items)+1):] {
			o.Lines = append(o.Lines, mutation.Line{Item: item, Quantity: float32(1 + r.IntN(3))})
		}
		o.Lines = mutation.SortLines(o.Lines)
		op := pick(r, mutation.SetOrder, mutation.AddLines, mutation.AddLines, mutation.RemoveLines)
		rec = append(rec, mutation.Mutation{Op: op, ID: id, Order: o})
	}
	return rec
}

// viewed is the kind of the edges of viewsTopic.
var viewed = mutation.Kind{Name: "viewed"}

// randomRecord draws a record of any kind over few nodes, so that everything collides with everything.
func randomRecord(r *rand.Rand, nodes int) (topic string, rec record) {
	id := func() string { return fmt.Sprintf("n%02d", r.IntN(nodes)) }
	list := func() []string {
		out := make([]string, r.IntN(4))
		for i := range out {
			out[i] = id()
		}
		return out
	}
	src := id()
	switch r.IntN(18) {
	case 16, 17:
		weight, op := randomWeight(r), mutation.PutEdge
		if oneIn(r, 3) {
			weight, op = 0, mutation.DeleteEdge
		}
		for _, dst := range append(list(), id()) {
			rec = append(rec, mutation.Mutation{Op: op, ID: src, Other: dst, Weight: weight, Kind: viewed})
		}
		return viewsTopic, rec
	case 13, 14, 15:
		return ordersTopic, randomOrder(r, append(list(), id()))
	case 10, 11, 12:
		m := mutation.Mutation{Op: mutation.SetAttributes, ID: src, Attributes: mutation.NoAttributes}
		if !oneIn(r, 4) {
			m.Attributes = fmt.Sprintf(`{"price":%d}`, r.IntN(50))
		}
		switch r.IntN(4) {
		case 0: // vectors beside attributes
			m = withVectors(r, m)
		case 1: // vectors alone
			m.Attributes = ""
			m = withVectors(r, m)
		}
		return pricesTopic, record{m}
	case 0, 1, 2, 3:
		m := mutation.Mutation{Op: mutation.PutNode, ID: src, Text: fmt.Sprintf("text %d", r.IntN(50)), Class: "c"}
		if oneIn(r, 2) { // a record that may change attributes alone
			m.Text, m.Attributes = "text", fmt.Sprintf(`{"brand":"b%d"}`, r.IntN(5))
		}
		if oneIn(r, 3) {
			m.HasEdges, m.Others = true, list()
			if oneIn(r, 2) {
				for range m.Others {
					m.Kinds = append(m.Kinds, pick(r, randomKind(r), randomKind(r), viewed))
				}
			}
		}
		if oneIn(r, 2) {
			m = withVectors(r, m)
		}
		return nodesTopic, record{m}
	case 4:
		return nodesTopic, record{{Op: mutation.DeleteNode, ID: src, HasVectors: oneIn(r, 2)}}
	case 5:
		return edgesTopic, record{{Op: mutation.DeleteEdge, ID: src, Other: id(), Kind: randomKind(r)}}
	case 6:
		return edgesTopic, record{{Op: mutation.SetEdges, ID: src, Others: list(), Weight: randomWeight(r),
			Kind: randomKind(r)}}
	case 7:
		return edgesTopic, record{{Op: mutation.ClearEdges, ID: src}}
	}
	weight, kind := randomWeight(r), randomKind(r)
	for _, dst := range append(list(), id()) { // one record, several edges
		rec = append(rec, mutation.Mutation{Op: mutation.PutEdge, ID: src, Other: dst, Weight: weight, Kind: kind})
	}
	return edgesTopic, rec
}

// randomWeight draws what a record says of the weight of its edges, often nothing.
func randomWeight(r *rand.Rand) mutation.Weight {
	if oneIn(r, 2) {
		return 0
	}
	return mutation.WeightOf(float32(r.IntN(4)) / 2)
}

// randomKind draws the kind of a record's edges, often none.
func randomKind(r *rand.Rand) mutation.Kind {
	return pick(r, mutation.Kind{}, mutation.Kind{}, mutation.Kind{Name: "bought"},
		mutation.Kind{Name: "part", Directed: true})
}
