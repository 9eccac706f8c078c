package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// stateVectors lets a mutation state up to two short vectors, or what its node is ordered with.
func stateVectors(rng *rand.Rand, m mutation.Mutation) mutation.Mutation {
	m.HasVectors = true
	if rng.IntN(3) == 0 {
		m.Vectors = append(m.Vectors, mutation.Vector{Name: rows.OrderedName, Precision: mutation.Float32,
			Data: string([]byte{0, 0, byte(rng.IntN(3)), 0x3F})})
		return m
	}
	if rng.IntN(3) > 0 {
		m.Vectors = append(m.Vectors, mutation.Vector{Name: "image", Precision: mutation.Float16,
			Data: string([]byte{byte(rng.IntN(3)), 0x3C})})
	}
	if rng.IntN(3) == 0 {
		m.Vectors = append(m.Vectors, mutation.Vector{Name: "text", Precision: mutation.Float32,
			Data: string([]byte{0, 0, byte(rng.IntN(2)), 0x40})})
	}
	return m
}

// vectors returns the newest rows of vectors that are not empty, ascending by node and input.
func (p *pipeline) vectors() (all []oracle.NodeVectors) {
	p.t.Helper()
	ctx := context.Background()
	cut, err := commitlog.CurrentCut(ctx, p.store, p.b.shards)
	if err != nil {
		p.t.Fatal(err)
	}
	for shard := range p.b.shards {
		last, unsorted := "", 0
		for row, err := range cut.NewestVectors(ctx, p.store, shard) {
			if err != nil {
				p.t.Fatal(err)
			}
			key := rows.NodeVectors.Key(&row.Vectors)
			if p.b.shardOf(row.NodeID) != shard || key <= last {
				p.t.Fatalf("vectors of %q are in shard %d, after %q", row.NodeID, shard, last)
			}
			last = key
			if unsorted++; len(row.Names) > 0 {
				all = append(all, oracle.VectorsOf(&row.Vectors))
			}
		}
		for _, err := range cut.Vectors(ctx, p.store, shard) {
			if unsorted--; err != nil {
				p.t.Fatal(err)
			}
		}
		if unsorted != 0 {
			p.t.Fatalf("shard %d: sorted there are %d rows of vectors more than unsorted", shard, unsorted)
		}
	}
	slices.SortFunc(all, func(a, b oracle.NodeVectors) int {
		return vectorsID{a.ID, a.Input}.compare(vectorsID{b.ID, b.Input})
	})
	return all
}

// checkVectors compares the newest rows of vectors with what was sent.
func (p *pipeline) checkVectors() {
	p.t.Helper()
	g := oracle.New(true)
	for _, m := range p.b.everything() {
		g.Add(m)
	}
	got, want := p.vectors(), g.Vectors()
	if !slices.EqualFunc(got, want, oracle.NodeVectors.Equal) {
		p.t.Fatalf("the rows of vectors are %q\nwant %q", got, want)
	}
	counted, stated := vectorCounts{}, vectorCounts{}
	for shard := range p.b.shards {
		head, err := commitlog.Head(context.Background(), p.store, shard)
		if err != nil {
			p.t.Fatal(err)
		}
		if head != nil {
			counted.addAll(head.Vectors)
		}
	}
	for _, of := range want {
		stated.add(of.Vectors, 1)
	}
	if !maps.Equal(counted, stated) {
		p.t.Fatalf("the manifests count the vectors %v, there are %v", counted, stated)
	}
}

// TestVectorsOfAnOlderReleaseAreCounted: a state that does not say how many vectors it has counts them as it is opened.
func TestVectorsOfAnOlderReleaseAreCounted(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	s := openLone(t)
	s.opts.Store = p.store
	image := mutation.Vector{Name: "image", Precision: mutation.Float16, Data: "\x00\x3c"}
	for _, id := range []string{"a", "b"} {
		s.say(2, 1, id, record{{Op: mutation.SetAttributes, HasVectors: true, Vectors: []mutation.Vector{image}}})
	}
	if _, err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	former := s.state.meta
	former.Vectors = nil
	data, err := former.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.state.db.Set(metaKey(), data, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := s.state.load(former); err != nil || !maps.Equal(s.state.meta.Vectors, vectorCounts{"image": 2}) {
		t.Errorf("the state says that it has the vectors %v, %v", s.state.meta.Vectors, err)
	}
}

// TestVectorsMoveTheRowOfTheirNode: what changes vectors writes a row of them and that of the node, for those who
// encode it, and what repeats them, of whatever time, writes neither. Those of no node have a row of their own alone.
func TestVectorsMoveTheRowOfTheirNode(t *testing.T) {
	picture := []mutation.Vector{{Name: "image", Precision: mutation.Float16, Data: "\x00\x3c"}}
	node := func(price string, vectors []mutation.Vector) record {
		return record{{Op: mutation.PutNode, Text: "text", Attributes: price, HasVectors: true, Vectors: vectors}}
	}
	alone := func(vectors ...mutation.Vector) record {
		return record{{Op: mutation.SetAttributes, HasVectors: true, Vectors: vectors}}
	}
	p := newPipeline(t, newBroker(1), 1)
	s := openLone(t)
	s.opts.Store = p.store
	for i, step := range []struct {
		in   mutation.Input
		at   int64
		said record
		want map[string]int64 // rows by table
	}{
		{0, 1, node(`{"price":1}`, picture), map[string]int64{"": 1, "vectors": 1}},
		{0, 2, node(`{"price":2}`, picture), map[string]int64{"attributes": 1}},
		{0, 2, node(`{"price":2}`, nil), map[string]int64{"": 1, "vectors": 1}},
		{0, 3, node(`{"price":2}`, nil), map[string]int64{"attributes": 1}},
		{2, 3, alone(picture...), map[string]int64{"": 1, "vectors": 1}},
		{2, 4, alone(picture...), map[string]int64{}},
		{2, 3, alone(), map[string]int64{}}, // too late
		{2, 5, alone(), map[string]int64{"": 1, "vectors": 1}},
		{0, 6, node(`{"price":2}`, picture), map[string]int64{"": 1, "vectors": 1}},
		{0, 7, record{{Op: mutation.DeleteNode, HasVectors: true}}, map[string]int64{"": 1, "vectors": 1}},
		{2, 8, alone(picture...), map[string]int64{"vectors": 1}},
	} {
		s.say(step.in, step.at, "n", step.said)
		m, err := s.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, o := range m.Objects {
			got[o.Table] += o.Rows
		}
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("step %d: rows %v, want %v", i, got, step.want)
		}
	}
}

// TestOrderedRowsAreNoChanges: what a node is ordered with writes its row, which counts as a change only if something
// else has changed in the window, too.
func TestOrderedRowsAreNoChanges(t *testing.T) {
	vectors := func(name string, x byte) record {
		return record{{Op: mutation.SetAttributes, HasVectors: true,
			Vectors: []mutation.Vector{{Name: name, Precision: mutation.Float32, Data: string([]byte{0, 0, x, 0x40})}}}}
	}
	type said struct {
		in mutation.Input
		record
	}
	ordered := func(x byte) said { return said{2, vectors(rows.OrderedName, x)} }
	image := func(x byte) said { return said{3, vectors("image", x)} }
	none := func(in mutation.Input) said { return said{in, record{{Op: mutation.SetAttributes, HasVectors: true}}} }
	node := func(text, price string) said {
		return said{0, record{{Op: mutation.PutNode, Text: text, Attributes: price}}}
	}
	gone := said{0, record{{Op: mutation.DeleteNode}}}
	p := newPipeline(t, newBroker(1), 1)
	s := openLone(t)
	s.opts.Store = p.store
	committed := int64(0)
	for i, step := range []struct {
		said        []said
		rows, again int64
	}{
		{[]said{ordered(1)}, 0, 0}, // of no node
		{[]said{ordered(2), node("a", "{}")}, 1, 0},
		{[]said{ordered(3)}, 1, 1},
		{[]said{ordered(3)}, 0, 0},
		{[]said{ordered(4), ordered(5)}, 1, 1},
		{[]said{ordered(6), node("b", "{}")}, 1, 0},
		{[]said{node("c", "{}"), ordered(7)}, 1, 0},
		{[]said{node("c", `{"price":1}`), ordered(8)}, 1, 1}, // a row of the attributes would be no change
		{[]said{ordered(9), node("c", `{"price":2}`)}, 1, 1},
		{[]said{image(1), ordered(10)}, 1, 0},
		{[]said{ordered(11), image(2)}, 1, 0},
		{[]said{none(2)}, 1, 1},
		{[]said{none(3)}, 1, 0},
		{[]said{ordered(12), gone}, 1, 0},
		{[]said{ordered(13), node("d", "{}"), gone}, 1, 0},
	} {
		for k, what := range step.said {
			s.say(what.in, int64(10*i+k), "n", what.record)
		}
		m, err := s.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		committed += step.rows - step.again
		if m.Rows != step.rows || m.Again != step.again || *m.Committed != committed {
			t.Errorf("step %d: %d rows, %d of them again, %d changes so far; want %d, %d and %d", i, m.Rows, m.Again,
				*m.Committed, step.rows, step.again, committed)
		}
	}
}
