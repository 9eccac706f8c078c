package shard

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// step opens a shard, consumes n records (-1: all) and, if told to, commits.
func (p *pipeline) step(shard, n int, commit bool) *Shard {
	p.t.Helper()
	s, err := p.open(shard)
	if err != nil {
		p.t.Fatal(err)
	}
	p.consume(s, n)
	if commit {
		p.commit(s)
	}
	return s
}

func (p *pipeline) consume(s *Shard, n int) {
	p.t.Helper()
	f := p.feed(s)
	f.max = 1
	for ; n != 0 && !f.caughtUp(); n-- {
		batch, err := f.Next(context.Background(), 0)
		if err == nil {
			err = s.Apply(context.Background(), batch)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pipeline) commit(s *Shard) *commitlog.Manifest {
	p.t.Helper()
	m, err := s.Commit(context.Background())
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// kill ends a shard's process: all that was written stays on its disk.
func (p *pipeline) kill(s *Shard) *vfs.MemFS {
	// The engine writes its log in the background: wait until it has.
	if err := s.state.sync(); err != nil {
		p.t.Fatal(err)
	}
	disk := p.disks[s.opts.Shard].CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: p.rng})
	_ = s.Close()
	return disk
}

func sendNodes(b *broker, from, to int) {
	for i := from; i < to; i++ {
		b.send(nodesTopic, int64(i), record{{Op: mutation.PutNode, ID: fmt.Sprintf("n%03d", i),
			Text: fmt.Sprint("text ", i)}})
	}
}

// A worker is killed with more applied than the one who takes over commits. When it returns, the
// head is ahead of what its state has seen committed, yet the marks in its state are all there is
// to tell which rows are due: the records come again, but change nothing. Clearing them would lose
// rows (compare apache/iceberg #17551).
func TestReturningWorkerCommitsWhatOnlyItsStateKnows(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	p.cache.window.limit = 0 // the state is written before the window is committed
	sendNodes(p.b, 0, 30)
	a := p.step(0, 10, true)
	p.consume(a, 10) // up to record 20, never committed
	diskOfA := p.kill(a)

	p.disks[0] = vfs.NewCrashableMem()
	p.kill(p.step(0, 15, true)) // another machine commits up to 15

	p.disks[0] = diskOfA
	a = p.step(0, -1, true)
	defer a.Close() //nolint:errcheck // test
	sameRows(t, p.newest(), model(p.b.everything(), true))
	p.checkLog()
}

// What a killed worker had handed to the mirror but not flushed is gone. The next one sees
// statements that change nothing in its state, and must mirror them all the same, even when it
// commits before it has seen them again and its own state is lost after that.
func TestMirrorLostInACrashIsRepeated(t *testing.T) {
	edge := func(op mutation.Op) record { return record{{Op: op, ID: "a", Other: "b"}} }
	for _, test := range []struct {
		name   string
		topics []string
		after  []record
	}{
		{"delete", []string{edgesTopic}, []record{edge(mutation.DeleteEdge)}},
		{"set", []string{edgesTopic}, []record{{{Op: mutation.SetEdges, ID: "a", Others: []string{"c"}}}}},
		{"clear", []string{edgesTopic}, []record{{{Op: mutation.ClearEdges, ID: "a"}}}},
		{"node with edges", []string{nodesTopic}, []record{{{Op: mutation.PutNode, ID: "a", Text: "a", HasEdges: true,
			Others: []string{"c"}}}}},
		{"dead on arrival", []string{edgesTopic, edgesTopic}, []record{{{Op: mutation.ClearEdges, ID: "a"}},
			edge(mutation.PutEdge)}},
	} {
		for i := range uint64(4) {
			early := i < 2
			t.Run(fmt.Sprintf("%s/commit early %t/memory %d", test.name, early, windowLimits[i%2]), func(t *testing.T) {
				p := newPipeline(t, newBroker(1), i%2)
				p.b.send(nodesTopic, 1,
					record{{Op: mutation.PutNode, ID: "a", Text: "a", HasEdges: true, Others: []string{"b"}}})
				p.b.send(nodesTopic, 1, record{{Op: mutation.PutNode, ID: "b", Text: "b"}})
				p.b.send(edgesTopic, 2, edge(mutation.PutEdge))
				s := p.step(0, -1, true)
				p.consume(s, -1) // the mirror
				p.commit(s)
				for i, r := range test.after {
					p.b.send(test.topics[i], int64(9-i), r)
				}
				p.consume(s, -1)
				p.disks[0] = p.kill(s) // the mirror of test.after is lost
				if early {
					s = p.step(0, 0, true)
					_ = s.Close()
					p.disks[0] = vfs.NewCrashableMem()
				}
				s = p.step(0, -1, true)
				p.consume(s, -1)
				p.commit(s)
				defer s.Close() //nolint:errcheck // test
				sameRows(t, p.newest(), model(p.b.everything(), true))
			})
		}
	}
}

// Two workers hold one shard. The one that lost it finds its sequence number taken, writes nothing
// more, and nothing is lost (apache/iceberg #17551: a zombie's late commit lost data).
func TestZombieIsFenced(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 20)
	zombie := p.step(0, 5, true)
	p.consume(zombie, 5)
	mine := p.disks[0]
	p.disks[0] = vfs.NewCrashableMem()
	owner := p.step(0, 12, true)
	defer owner.Close() //nolint:errcheck // test

	if m, err := zombie.Commit(context.Background()); !errors.Is(err, ErrFenced) {
		t.Fatalf("late commit gave %v, %v; want ErrFenced", m, err)
	}
	batch := mutation.Batch{Next: map[string]int64{nodesTopic: 20}}
	if err := zombie.Apply(context.Background(), batch); !errors.Is(err, ErrFenced) {
		t.Fatalf("a fenced shard took another batch: %v", err)
	}
	p.disks[0] = mine
	p.disks[0] = p.kill(zombie)

	p.consume(owner, -1)
	p.commit(owner)
	sameRows(t, p.newest(), model(p.b.everything(), true))
	p.checkLog()
}

// A worker that restarts between commits commits nothing twice and its offsets never go back
// (apache/iceberg #16282 and #17340).
func TestRestartCommitsNothingTwice(t *testing.T) {
	for i := range uint64(4) {
		lost := i < 2
		t.Run(fmt.Sprintf("disk lost %t/memory %d", lost, windowLimits[i%2]), func(t *testing.T) {
			p := newPipeline(t, newBroker(1), i%2)
			sendNodes(p.b, 0, 20)
			p.b.send(edgesTopic, 1, record{{Op: mutation.PutEdge, ID: "n000", Other: "n001"}})
			s := p.step(0, -1, true)
			p.consume(s, -1)
			before := p.commit(s)
			p.disks[0] = p.kill(s)
			if lost {
				p.disks[0] = vfs.NewCrashableMem()
			}
			s = p.step(0, -1, false)
			defer s.Close() //nolint:errcheck // test
			if m := p.commit(s); m != nil {
				t.Errorf("manifest %d with %d rows was committed though nothing is new", m.Seq, m.Rows)
			}
			if got := s.state.meta; got.Nodes != before.Nodes || got.Edges != before.Edges || got.Nodes != 20 || got.Edges != 1 {
				t.Errorf("state counts %d nodes and %d edges, the manifest %d and %d",
					got.Nodes, got.Edges, before.Nodes,
					before.Edges)
			}
			if n := len(p.b.logs[0][mirrorTopic]); n != 1 {
				t.Errorf("the mirror has %d records, want 1", n)
			}
		})
	}
}

// A response that got lost is not a lost commit: the manifest is there, so trying again must not
// read its own success as a rival's.
func TestCommitWithLostResponse(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	lost := false
	p.store.FailAfter = func(op, _ string) error {
		if op == "create" && !lost {
			lost = true
			return errInjected
		}
		return nil
	}
	sendNodes(p.b, 0, 3)
	s := p.step(0, -1, false)
	defer s.Close() //nolint:errcheck // test
	if m := p.commit(s); m.Seq != 1 || m.Rows != 3 || !lost {
		t.Errorf("committed %+v", m)
	}
	p.checkLog()
}

// What changes nothing writes nothing.
func TestNoRowsWithoutChange(t *testing.T) {
	put := record{{Op: mutation.PutNode, ID: "a", Text: "text"}}
	for _, test := range []struct {
		name  string
		topic string
		time  int64
		r     record
		rows  int64
	}{
		{"changed text", nodesTopic, 5, record{{Op: mutation.PutNode, ID: "a", Text: "new"}}, 1},
		{"same node again", nodesTopic, 5, put, 0},
		{"older node", nodesTopic, 4, record{{Op: mutation.PutNode, ID: "a", Text: "old"}}, 0},
		{"delete unknown", nodesTopic, 6, record{{Op: mutation.DeleteNode, ID: "x"}}, 0},
		{"delete known", nodesTopic, 6, record{{Op: mutation.DeleteNode, ID: "a"}}, 1},
		{"older delete", nodesTopic, 4, record{{Op: mutation.DeleteNode, ID: "a"}}, 0},
		{"clear of nothing", edgesTopic, 6, record{{Op: mutation.ClearEdges, ID: "a"}}, 0},
		{"edge to nobody", edgesTopic, 6, record{{Op: mutation.PutEdge, ID: "a", Other: "nobody"}}, 1},
		{"edge of nobody", edgesTopic, 6, record{{Op: mutation.PutEdge, ID: "nobody", Other: "nothing"}}, 0},
		{"edge to itself", edgesTopic, 6, record{{Op: mutation.PutEdge, ID: "a", Other: "a"}}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPipeline(t, newBroker(1), 1)
			p.b.send(nodesTopic, 5, append(record{}, put...))
			s := p.step(0, -1, true)
			defer s.Close() //nolint:errcheck // test
			p.b.send(test.topic, test.time, append(record{}, test.r...))
			p.consume(s, -1)
			m := p.commit(s)
			if m == nil || m.Rows != test.rows {
				t.Fatalf("committed %+v, want the offsets and %d rows", m, test.rows)
			}
			if p.commit(s) != nil && test.topic == nodesTopic {
				t.Error("a second commit found something to do")
			}
			sameRows(t, p.newest(), model(p.b.everything(), true))
		})
	}
}

// A deleted node's row has neither text nor labels; its edges are there again when it comes back.
func TestEdgesSurviveDeletion(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	p.b.send(nodesTopic, 1, record{{Op: mutation.PutNode, ID: "a", Text: "one"}})
	p.b.send(edgesTopic, 2, record{{Op: mutation.PutEdge, ID: "a", Other: "b"}})
	p.b.send(nodesTopic, 3, record{{Op: mutation.DeleteNode, ID: "a"}})
	s := p.step(0, -1, true)
	defer s.Close() //nolint:errcheck // test
	sameRows(t, p.newest(), map[string]rows.Row{"a": {NodeID: "a", EventTime: 3, Deleted: true}})
	p.b.send(nodesTopic, 4, record{{Op: mutation.PutNode, ID: "a", Text: "two"}})
	p.consume(s, -1)
	p.commit(s)
	sameRows(t, p.newest(), map[string]rows.Row{"a": {NodeID: "a", Text: "two", Labels: []string{"b"}, EventTime: 4}})
}

// consumeTopic consumes one topic to its end before any other.
func (p *pipeline) consumeTopic(s *Shard, topic string) {
	p.t.Helper()
	log := p.b.logs[s.opts.Shard][topic]
	batch := mutation.Batch{Next: map[string]int64{topic: int64(len(log))}}
	for at := s.position[topic]; at < int64(len(log)); at++ {
		batch.State(inputOf(topic), at, log[at]...)
	}
	if err := s.Apply(context.Background(), batch); err != nil {
		p.t.Fatal(err)
	}
}

// After a lost disk the topics come again in any interleaving. An edge that nobody has committed
// yet may come before the node, which has been; its row is due although, at that moment, there is
// no node to have a row.
func TestRebuildMarksWhatComesBeforeItsNode(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 2)
	_ = p.step(0, -1, true).Close()
	p.b.send(edgesTopic, 1, record{{Op: mutation.PutEdge, ID: "n000", Other: "n001"}})
	p.disks[0] = vfs.NewCrashableMem()
	s := p.step(0, 0, false)
	defer s.Close() //nolint:errcheck // test
	p.consumeTopic(s, edgesTopic)
	p.consumeTopic(s, nodesTopic)
	p.commit(s)
	p.consume(s, -1) // the mirror
	p.commit(s)
	sameRows(t, p.newest(), model(p.b.everything(), true))
}

// A worker is killed when it has applied an edge of a node that it does not know. The next one
// commits the node, but not the edge. When the first returns, neither the edge (seen before) nor
// the node (committed before) changes anything, and still the row is due.
func TestReturningWorkerCommitsWhatChangedNoRowThen(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 1)
	a := p.step(0, -1, true)
	p.b.send(edgesTopic, 1, record{{Op: mutation.PutEdge, ID: "n001", Other: "n000"}})
	p.consumeTopic(a, edgesTopic)
	diskOfA := p.kill(a)

	sendNodes(p.b, 1, 2)
	p.disks[0] = vfs.NewCrashableMem()
	b := p.step(0, 0, false)
	p.consumeTopic(b, nodesTopic)
	p.commit(b)
	_ = b.Close()

	p.disks[0] = diskOfA
	a = p.step(0, -1, true)
	defer a.Close()  //nolint:errcheck // test
	p.consume(a, -1) // the mirror
	p.commit(a)
	sameRows(t, p.newest(), model(p.b.everything(), true))
}

// A state that is ahead of the commit log must not be committed from until its records have come
// again: rows may hold nothing that lies beyond the offsets of their manifest. Here the worker that
// was ahead dies, and the one after it sees the same records in an order in which no row ever
// changes.
func TestNothingIsCommittedAheadOfItsOffsets(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	send := func(topic string, r record) { p.b.send(topic, 5, r) }
	send(nodesTopic, record{{Op: mutation.PutNode, ID: "s", Text: "s"}})
	send(nodesTopic, record{{Op: mutation.PutNode, ID: "d", Text: "d"}})
	send(edgesTopic, record{{Op: mutation.PutEdge, ID: "s", Other: "d"}})
	a := p.step(0, -1, true)
	p.consume(a, -1) // the mirror
	p.commit(a)
	send(edgesTopic, record{{Op: mutation.DeleteEdge, ID: "s", Other: "d"}})
	p.consumeTopic(a, edgesTopic)
	p.commit(a)                    // the mirror of the deletion waits in its topic
	p.consumeTopic(a, mirrorTopic) // applied, not committed: s is no label of d
	p.disks[0] = p.kill(a)
	a = p.step(0, 0, true)
	if a.headSeq() != 3 {
		t.Errorf("manifest %d was committed by a worker that has consumed nothing", a.headSeq())
	}
	_ = a.Close()

	send(edgesTopic, record{{Op: mutation.PutEdge, ID: "d", Other: "s"}})
	p.disks[0] = vfs.NewCrashableMem()
	b := p.step(0, 0, false)
	defer b.Close() //nolint:errcheck // test
	for range 2 {
		p.consumeTopic(b, nodesTopic)
		p.consumeTopic(b, edgesTopic)
		p.consumeTopic(b, mirrorTopic)
		p.commit(b)
	}
	sameRows(t, p.newest(), model(p.b.everything(), true))
}
