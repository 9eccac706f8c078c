package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// TestStatementsHaveOneOutcome: winners, losers and repetitions, each as people mean it.
func TestStatementsHaveOneOutcome(t *testing.T) {
	one := func(m mutation.Mutation) []mutation.Mutation { return []mutation.Mutation{m} }
	put := func(text string) []mutation.Mutation { return one(mutation.Mutation{Op: mutation.PutNode, Text: text}) }
	edge := func(op mutation.Op, others ...string) (all []mutation.Mutation) {
		for _, o := range others {
			all = append(all, mutation.Mutation{Op: op, Other: o})
		}
		return all
	}
	list := func(others ...string) []mutation.Mutation {
		return one(mutation.Mutation{Op: mutation.SetEdges, Others: others})
	}
	inline := func(text string, others ...string) []mutation.Mutation {
		return one(mutation.Mutation{Op: mutation.PutNode, Text: text, HasEdges: true, Others: others})
	}
	s := openLone(t)
	for i, step := range []struct {
		in   mutation.Input
		at   int64
		said []mutation.Mutation
		want mutation.Outcomes
	}{
		{mutation.Nodes, 10, put("t"), mutation.Outcomes{Applied: 1}},
		{mutation.Nodes, 10, put("t"), mutation.Outcomes{Repeated: 1}}, // the file again
		{mutation.Nodes, 11, put("t"), mutation.Outcomes{Applied: 1}},  // the row's event time
		{mutation.Nodes, 5, put("u"), mutation.Outcomes{Superseded: 1}},
		{mutation.Nodes, 5, one(mutation.Mutation{Op: mutation.DeleteNode}), mutation.Outcomes{Superseded: 1}},
		{mutation.Edges, 10, edge(mutation.PutEdge, "b"), mutation.Outcomes{Applied: 1}},
		{mutation.Edges, 10, edge(mutation.PutEdge, "b"), mutation.Outcomes{Repeated: 1}},
		{mutation.Edges, 5, edge(mutation.DeleteEdge, "b"), mutation.Outcomes{Superseded: 1}},
		{mutation.Edges, 5, edge(mutation.PutEdge, "b", "c"), mutation.Outcomes{Applied: 1}}, // c is new
		{mutation.Edges, 5, nil, mutation.Outcomes{Empty: 1}},
		{mutation.Edges, 20, list("b", "d"), mutation.Outcomes{Applied: 1}},
		{mutation.Edges, 20, list("d", "b"), mutation.Outcomes{Repeated: 1}},
		{mutation.Edges, 15, list("e"), mutation.Outcomes{Superseded: 1}},
		{mutation.Edges, 15, edge(mutation.PutEdge, "f"), mutation.Outcomes{Superseded: 1}}, // the list has no f
		{mutation.Edges, 30, edge(mutation.DeleteEdge, "b"), mutation.Outcomes{Applied: 1}},
		{mutation.Nodes, 25, inline("v", "b"), mutation.Outcomes{Applied: 1}}, // for the text
		{mutation.Nodes, 25, inline("v", "b"), mutation.Outcomes{Superseded: 1}},
		{mutation.Nodes, 40, one(mutation.Mutation{Op: mutation.DeleteNode}), mutation.Outcomes{Applied: 1}},
		{mutation.Nodes, 40, one(mutation.Mutation{Op: mutation.DeleteNode}), mutation.Outcomes{Repeated: 1}},
	} {
		if got := s.say(step.in, step.at, "a", step.said); got != step.want {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
	refused := mutation.Batch{Next: map[string]int64{edgesTopic: s.offset + 1}, Statements: []mutation.Statement{
		{Offset: s.offset, Input: mutation.Edges, Refused: true}}}
	before := s.state.meta.Counted[edgesTopic].Outcomes
	if err := s.Apply(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	if got := s.state.meta.Counted[edgesTopic].Minus(before); got != (mutation.Outcomes{DeadLetters: 1}) {
		t.Errorf("a dead letter counts as %+v", got)
	}
}

// TestOutcomesAreTheDefinition compares the outcome of random records with what the facts say before and after.
func TestOutcomesAreTheDefinition(t *testing.T) {
	var sum mutation.Outcomes
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s, facts := openLone(t), newFacts()
		for range 300 {
			topic, at, r := randomRecord(rng, 4)
			got := s.say(inputOf(topic), at%12, r[0].ID, r)
			if want := facts.say(r); got != want {
				t.Fatalf("seed %d: %+v has the outcome %+v, want %+v", seed, r, got, want)
			}
			sum = sum.Plus(got)
		}
	}
	if sum.Applied < 1000 || sum.Superseded < 500 || sum.Repeated < 50 {
		t.Errorf("the records had the outcomes %+v: too few of some", sum)
	}
}

// TestBatchesAccountForTheirMutations: mutations of no record, or of more than there are, are not applied.
func TestBatchesAccountForTheirMutations(t *testing.T) {
	for _, said := range []int32{0, 2, -1} {
		s := openLone(t)
		err := s.Apply(t.Context(), mutation.Batch{Next: map[string]int64{nodesTopic: 1},
			Statements: []mutation.Statement{{Mutations: said}},
			Mutations:  []mutation.Mutation{{Op: mutation.PutNode, ID: "a"}}})
		if err == nil {
			t.Errorf("a record of %d mutations in a batch of one was applied", said)
		}
	}
}

// lone is a shard that is told one statement after the other.
type lone struct {
	*Shard
	t      *testing.T
	offset int64
}

func openLone(t *testing.T) *lone {
	s, err := Open(t.Context(), newPipeline(t, newBroker(1), 1).options(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &lone{Shard: s, t: t}
}

// say applies a record of a node, stamps its version into it, and returns its outcome.
func (s *lone) say(in mutation.Input, eventTime int64, id string, r []mutation.Mutation) mutation.Outcomes {
	s.t.Helper()
	topic := statingTopics[in]
	for i := range r {
		r[i].ID, r[i].Version = id, mutation.Version{EventTime: eventTime, Rank: uint8(in), Offset: s.offset}
	}
	before := s.state.meta.Counted[topic].Outcomes
	b := mutation.Batch{Next: map[string]int64{topic: s.offset + 1}}
	b.State(in, s.offset, r...)
	s.offset++
	if err := s.Apply(s.t.Context(), b); err != nil {
		s.t.Fatal(err)
	}
	return s.state.meta.Counted[topic].Minus(before)
}

// facts are what a set of records states, in the plainest form.
type facts struct {
	nodes map[string]mutation.Mutation
	lists map[string][families]assertion
	links map[[2]string][families]assertion
	// attributes are the newest statements of nodes' attributes, by input.
	attributes map[uint8]map[string]mutation.Mutation
	orders     []mutation.Mutation // all that was said of them
	// vectors are the newest statements of nodes' vectors, by input.
	vectors map[uint8]map[string]mutation.Mutation
}

func newFacts() *facts {
	return &facts{map[string]mutation.Mutation{}, map[string][families]assertion{},
		map[[2]string][families]assertion{}, map[uint8]map[string]mutation.Mutation{0: {}, 2: {}}, nil,
		map[uint8]map[string]mutation.Mutation{0: {}, 2: {}}}
}

// effective is what is said of a link.
func (f *facts) effective(l [2]string) (best assertion) {
	for rank, a := range f.links[l] {
		if list := f.lists[l[0]][rank]; a.set && list.set && a.at.Compare(list.at) < 0 {
			a = list
		}
		if a.newer(best) {
			best = a
		}
	}
	return best
}

// say adds a record and returns its outcome: applied if a fact is now what the record says and was not before,
// superseded if a fact is newer than the record.
func (f *facts) say(r []mutation.Mutation) mutation.Outcomes {
	won, lost := false, false
	if r[0].Order != nil {
		for i := range r {
			w, l := f.sayOrder(&r[i])
			won, lost = won || w, lost || l
		}
		return outcome(won, lost)
	}
	src, at := r[0].ID, r[0].Version
	weigh := func(before, after assertion) {
		won = won || after.at == at && !before.repeats(after)
		lost = lost || at.Compare(after.at) < 0
	}
	old := map[[2]string]assertion{}
	for l := range f.links {
		old[l] = f.effective(l)
	}
	said, replaced := map[[2]string]assertion{}, false
	for _, m := range r {
		if m.Attributes != "" {
			before, stated := f.attributes[at.Rank][src]
			if newer := !stated || at.Compare(before.Version) > 0; newer {
				f.attributes[at.Rank][src] = m
				won = won || !stated || before.Attributes != m.Attributes || before.Version.EventTime != at.EventTime
			} else {
				lost = lost || at.Compare(before.Version) < 0
			}
		}
		if m.HasVectors {
			before, stated := f.vectors[at.Rank][src]
			if !stated || at.Compare(before.Version) > 0 {
				f.vectors[at.Rank][src] = m
				won = won || !slices.Equal(before.Vectors, m.Vectors)
			} else {
				lost = lost || at.Compare(before.Version) < 0
			}
		}
		switch m.Op {
		case mutation.SetAttributes:
			m.Others = nil
		case mutation.PutNode, mutation.DeleteNode:
			before, stated := f.nodes[src]
			if replaced = m.HasEdges; !stated || at.Compare(before.Version) > 0 {
				f.nodes[src] = m
				won = won || !stated || before.Op != m.Op || before.Version.EventTime != at.EventTime ||
					before.Text != m.Text || before.Class != m.Class
			} else {
				lost = true
			}
		case mutation.SetEdges, mutation.ClearEdges:
			replaced = true
		default:
			m.Others = []string{m.Other}
		}
		for dst, kind := range m.Ends() {
			a := statedBy(&m, m.Op != mutation.DeleteEdge)
			if l := [2]string{src, farEnd(dst, kind)}; dst != src && a.newer(said[l]) {
				said[l] = a
			}
		}
	}
	if lists := f.lists[src]; replaced {
		before := lists[family(at.Rank)]
		if mark := (assertion{set: true, at: at}); mark.newer(before) {
			lists[family(at.Rank)] = mark
			f.lists[src] = lists
		}
		weigh(before, f.lists[src][family(at.Rank)])
	}
	for l, a := range said {
		if registers := f.links[l]; a.newer(registers[family(at.Rank)]) {
			registers[family(at.Rank)] = a
			f.links[l] = registers
		}
		weigh(old[l], f.effective(l))
	}
	for l, registers := range f.links { // those that the list leaves out
		if _, listed := said[l]; replaced && !listed && l[0] == src && registers[family(at.Rank)].set &&
			registers[family(at.Rank)].at.Compare(at) < 0 && f.lists[src][family(at.Rank)].at == at {
			weigh(old[l], f.effective(l))
		}
	}
	return outcome(won, lost)
}

// sayOrder adds what a record says of an order: won, if that shows in the order's row; lost, if the whole order or a
// line of it was stated later.
func (f *facts) sayOrder(m *mutation.Mutation) (won, lost bool) {
	row := func() string {
		g := oracle.New(false)
		for _, said := range f.orders {
			if said.ID == m.ID {
				g.Add(said)
			}
		}
		return fmt.Sprint(g.Orders())
	}
	before := row()
	for _, said := range f.orders {
		lost = lost || said.ID == m.ID && said.Version.Compare(m.Version) > 0 &&
			(said.Op == mutation.SetOrder || shareItem(said.Order, m.Order))
	}
	f.orders = append(f.orders, *m)
	return row() != before, lost
}

func shareItem(a, b *mutation.Order) bool {
	return slices.ContainsFunc(a.Lines, func(l mutation.Line) bool {
		return slices.ContainsFunc(b.Lines, func(m mutation.Line) bool { return l.Item == m.Item })
	})
}

func outcome(won, lost bool) (out mutation.Outcomes) {
	switch {
	case won:
		out.Applied++
	case lost:
		out.Superseded++
	default:
		out.Repeated++
	}
	return out
}

// TestCountsGoWithTheTopic: a worker that has read more of one topic than the commit log, and less of another, counts
// each record once.
func TestCountsGoWithTheTopic(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1) // writes batch by batch
	sendNodes(p.b, 0, 20)
	for i := range 20 {
		p.b.send(edgesTopic, 1, record{{Op: mutation.PutEdge, ID: fmt.Sprintf("n%03d", i), Other: "x"}})
	}
	read := func(s *Shard, topic string, n int64) {
		t.Helper()
		batch := mutation.Batch{Next: map[string]int64{topic: s.position[topic] + n}}
		for at := s.position[topic]; at < batch.Next[topic]; at++ {
			batch.State(inputOf(topic), at, p.b.logs[0][topic][at]...)
		}
		if err := s.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *Shard {
		t.Helper()
		s, err := p.open(0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open()
	read(first, nodesTopic, 15) // and no edge
	mine := p.kill(first)
	p.disks[0] = vfs.NewCrashableMem()
	second := open()
	read(second, nodesTopic, 5)
	read(second, edgesTopic, 10)
	p.commit(second)
	_ = p.kill(second)
	p.disks[0] = mine
	third := open()
	defer third.Close() //nolint:errcheck // test
	p.consume(third, -1)
	p.commit(third)
	p.consume(third, -1)
	p.commit(third)
	p.checkLog()
	if got, want := third.head.Counted[nodesTopic].Outcomes, (mutation.Outcomes{Applied: 20}); got != want {
		t.Errorf("nodes: %+v, want %+v", got, want)
	}
	if third.head.Counted[mirrorTopic].Sum() == 0 {
		t.Error("the mirror is not counted")
	}
}

// TestCountsBeginWhereAnOlderReleaseEnded: a log without counts gets them from its head on.
func TestCountsBeginWhereAnOlderReleaseEnded(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 20)
	s := p.step(0, -1, true)
	old := *s.head
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old.Counted = nil
	data, err := old.Encode(p.store.Pipeline())
	if err == nil {
		err = sink.PutBytes(t.Context(), p.store, commitlog.ManifestKey(0, old.Seq), data)
	}
	if err != nil {
		t.Fatal(err)
	}
	sendNodes(p.b, 20, 30)
	s = p.step(0, -1, true)
	defer s.Close() //nolint:errcheck // test
	got := s.head.Counted[nodesTopic]
	if got.From != old.Next[nodesTopic] || got.Outcomes.Sum() != 10 || got.Gap(s.head.Next[nodesTopic]) != 0 {
		t.Errorf("after %d records that were not counted, 10 were counted as %+v", old.Next[nodesTopic], got)
	}
}

// TestStatedAgainMovesNoRow: what a topic says again of nodes and plain links, at a later time, is a row of attributes,
// which has the time and encodes nothing. A link that has a kind shows its own time, and so does one beside it.
func TestStatedAgainMovesNoRow(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	s, err := p.open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	say := func(at int64, link mutation.Mutation) (written int64) {
		t.Helper()
		for _, id := range []string{"a", "b"} {
			p.b.send(nodesTopic, at, record{{Op: mutation.PutNode, ID: id, Text: "text of " + id, HasEdges: true,
				Others: []string{"c"}}})
		}
		link.Op, link.ID, link.Other = mutation.PutEdge, "a", "b"
		p.b.send(edgesTopic, at, record{link})
		for range 2 { // the commit brings the mirror
			p.consume(s, -1)
			if m := p.commit(s); m != nil {
				written += m.Rows
			}
		}
		p.checkLog()
		return written
	}
	bought := mutation.Kind{Name: "bought"}
	for i, step := range []struct {
		at   int64
		link mutation.Mutation
		rows int64
	}{
		{1, mutation.Mutation{}, 3}, // one of them again, with its mirrored link
		{2, mutation.Mutation{}, 0},
		{3, mutation.Mutation{Weight: mutation.WeightOf(2)}, 2},
		{4, mutation.Mutation{Weight: mutation.WeightOf(2)}, 2},
		{5, mutation.Mutation{}, 2},
		{6, mutation.Mutation{}, 0},
		{7, mutation.Mutation{Kind: bought}, 2},
		{8, mutation.Mutation{}, 3}, // all show times by now
	} {
		if got := say(step.at, step.link); got != step.rows {
			t.Errorf("step %d: %d rows, want %d", i, got, step.rows)
		}
	}
}
