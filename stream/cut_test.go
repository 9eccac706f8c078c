package stream

import (
	"context"
	"fmt"
	"os"
	"testing"

	"giantstream/sink/rows"
)

// A cut shows the graph as of its manifests, whatever was committed since, and
// logs of more windows than are read at once come out the same.
func TestCutShowsThePast(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := newPipeline(t, newBroker(1), 1)
	const windows = 2*maxFanIn + 9
	s := p.step(0, 0, false)
	defer s.Close() //nolint:errcheck // test
	var past Cut
	var want map[string]rows.Row
	for i := range windows {
		for j := range 3 {
			p.b.send(nodesTopic, int64(i), record{{Op: PutNode, ID: fmt.Sprintf("n%03d", (i*7+j*28)%997), Text: fmt.Sprint(i)}})
		}
		p.consume(s, -1)
		p.commit(s)
		if i == windows-20 {
			past, want = p.cut(), model(p.b.everything(), true)
		}
	}
	sameRows(t, p.newest(), model(p.b.everything(), true))

	got := map[string]rows.Row{}
	for row, err := range past.Newest(context.Background(), p.store, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Seq != row.EventTime+1 { // window i is manifest i+1 here
			t.Errorf("node %s of window %d is said to come from manifest %d", row.NodeID, row.EventTime, row.Seq)
		}
		got[row.NodeID] = row.Row
	}
	sameRows(t, got, want)
	facts := map[string]rows.Row{}
	for row, err := range past.Facts(context.Background(), p.store, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := facts[row.NodeID]; twice || row.Seq != row.EventTime+1 {
			t.Errorf("node %s of window %d came twice or from manifest %d", row.NodeID, row.EventTime, row.Seq)
		}
		facts[row.NodeID] = row.Row
	}
	sameRows(t, facts, want)
	for range past.Newest(context.Background(), p.store, 0) {
		break // a reader may stop early
	}
	for range past.Facts(context.Background(), p.store, 0) {
		break
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func (p *pipeline) cut() Cut {
	p.t.Helper()
	cut, err := CurrentCut(context.Background(), p.store, p.b.shards)
	if err != nil {
		p.t.Fatal(err)
	}
	return cut
}

func TestCutBeyondTheLogIsRefused(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 3)
	_ = p.step(0, -1, true).Close()
	for _, err := range (Cut{0: 2}).Newest(context.Background(), p.store, 0) {
		if err == nil {
			t.Fatal("got a row of a cut that does not exist")
		}
		return
	}
	t.Fatal("got nothing, not even an error")
}

// A missing or exchanged object is damage, not an empty result.
func TestCutNoticesLostObjects(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 3)
	_ = p.step(0, -1, true).Close()
	head, err := Head(context.Background(), p.store, 0)
	if err != nil {
		t.Fatal(err)
	}
	key := head.Objects[0].Key
	for name, damage := range map[string]func() error{
		"exchanged": func() error {
			_, err := rows.WriteSlice(context.Background(), p.store, key, []rows.Row{{NodeID: "x"}})
			return err
		},
		"lost": func() error { return p.store.Delete(context.Background(), key) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		var failure error
		for _, err := range p.cut().Newest(context.Background(), p.store, 0) {
			failure = err
		}
		if failure == nil {
			t.Errorf("%s: not noticed", name)
		}
		failure = nil
		for _, err := range p.cut().Facts(context.Background(), p.store, 0) {
			failure = err
		}
		if failure == nil {
			t.Errorf("%s: facts did not notice", name)
		}
	}
}

func TestGraphHash(t *testing.T) {
	a := rows.Row{NodeID: "a", Text: "x", Labels: []string{"b", "c"}, EventTime: 1}
	b := rows.Row{NodeID: "b", Text: "y", EventTime: 2}
	sum := func(rs ...rows.Row) string {
		g := NewGraphHasher()
		for _, r := range rs {
			g.Add(&r)
		}
		return g.Sum()
	}
	want := sum(a, b)
	if got := sum(b, rows.Row{NodeID: "gone", Deleted: true}, a); got != want {
		t.Errorf("order or deleted rows change the hash: %s, %s", got, want)
	}
	for name, change := range map[string]func(*rows.Row){
		"id":         func(r *rows.Row) { r.NodeID = "z" },
		"text":       func(r *rows.Row) { r.Text = "z" },
		"class":      func(r *rows.Row) { r.Class = "z" },
		"event time": func(r *rows.Row) { r.EventTime = 9 },
		"labels":     func(r *rows.Row) { r.Labels = []string{"bc"} },
		"deleted":    func(r *rows.Row) { r.Deleted = true },
	} {
		other := a
		change(&other)
		if sum(other, b) == want {
			t.Errorf("%s does not change the hash", name)
		}
	}
	same := a
	same.FeatureIndices, same.Generation = []int32{1}, 3
	if sum(same, b) != want {
		t.Error("features change the hash of the graph")
	}
}
