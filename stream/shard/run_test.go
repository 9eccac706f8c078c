package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// script is a feed that plays batches, moving the clock, and then ends.
type script struct {
	now     time.Time
	batches []scripted
	waits   []time.Duration
}

type scripted struct {
	nodes    int           // nodes put by the batch
	bytes    int64         // size of the batch
	takes    time.Duration // until the batch arrives
	caughtUp bool
}

var errScriptOver = errors.New("end of script")

func (f *script) Next(_ context.Context, wait time.Duration) (mutation.Batch, error) {
	f.waits = append(f.waits, wait)
	if len(f.batches) == 0 {
		return mutation.Batch{}, errScriptOver
	}
	s := f.batches[0]
	f.batches = f.batches[1:]
	f.now = f.now.Add(s.takes)
	b := mutation.Batch{Bytes: s.bytes, CaughtUp: s.caughtUp, Next: map[string]int64{}}
	for range s.nodes {
		offset := int64(len(f.waits)*1000 + len(b.Mutations))
		b.State(mutation.Nodes, offset, mutation.Mutation{Op: mutation.PutNode,
			ID: string(rune('a' + len(b.Mutations))), Text: fmt.Sprint(offset),
			Version: mutation.Version{EventTime: offset, Offset: offset}})
		b.Next[nodesTopic] = offset + 1
	}
	return b, nil
}

func TestRunClosesWindows(t *testing.T) {
	limits := Window{Changes: 3, Bytes: 1000, Time: 10 * time.Second}
	for _, test := range []struct {
		name    string
		drain   bool
		load    bool
		memory  int64 // for windows, 0 for plenty
		batches []scripted
		rows    []int64 // of each manifest
	}{
		{"nothing came", false, false, 0, []scripted{{}, {}}, nil},
		{"not full", false, false, 0, []scripted{{nodes: 2, bytes: 10}}, nil},
		{"changes", false, false, 0, []scripted{{nodes: 2}, {nodes: 2}, {nodes: 3}}, []int64{3}},
		{"bytes", false, false, 0, []scripted{{nodes: 1, bytes: 999}, {nodes: 1, bytes: 1}}, []int64{1}},
		{"time", false, false, 0, []scripted{{nodes: 1}, {takes: 10 * time.Second}}, []int64{1}},
		{"time counts from the commit before", false, false, 0, []scripted{{nodes: 1}, {takes: 10 * time.Second},
			{nodes: 2}, {takes: 9 * time.Second}, {takes: time.Second}, {nodes: 1}}, []int64{1, 2}},
		{"a change after a pause waits for what comes with it", false, false, 0, []scripted{{takes: time.Hour},
			{nodes: 1}, {nodes: 2, takes: linger - 1}, {takes: 1}, {nodes: 1, takes: 9 * time.Second}}, []int64{2}},
		{"caught up is no reason", false, false, 0, []scripted{{nodes: 1, caughtUp: true}}, nil},
		{"draining", true, false, 0, []scripted{{nodes: 1}, {nodes: 2, caughtUp: true}, {caughtUp: true}}, []int64{2}},
		{"memory", false, false, 4 * pendingNodeBytes, []scripted{{nodes: 1}, {nodes: 1}, {nodes: 2}, {nodes: 1}},
			[]int64{2}},
		{"load", false, true, pendingNodeBytes, []scripted{{nodes: 4, bytes: 1000}, {takes: time.Hour},
			{nodes: 4, caughtUp: true}, {caughtUp: true}}, nil},
		{"end of a load", true, true, pendingNodeBytes, []scripted{{nodes: 4}, {nodes: 5, caughtUp: true},
			{caughtUp: true}}, []int64{5}},
		{"end of a load under traffic", true, true, 0, []scripted{{nodes: 1, caughtUp: true},
			{nodes: 2, caughtUp: true, takes: 9 * time.Second}, {nodes: 3, caughtUp: true, takes: time.Second}}, []int64{3}},
		{"after a load", true, true, 0, []scripted{{nodes: 1}, {caughtUp: true}, {nodes: 3}}, []int64{1, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPipeline(t, newBroker(1), 0)
			if test.memory > 0 {
				p.cache.window.limit = test.memory
			}
			feed := &script{now: time.Unix(100, 0), batches: test.batches}
			var got []int64
			s, err := Open(context.Background(), Options{
				Shards: 1, Dir: "state", fs: vfs.NewMem(), Store: p.store, Cache: p.cache, Window: limits,
				Topics: Topics{Nodes: nodesTopic}, Clock: func() time.Time { return feed.now },
				Drain:    func() bool { return test.drain },
				Load:     test.load,
				Listener: onCommit(func(m *commitlog.Manifest) { got = append(got, m.Rows) }),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // test
			if err := s.Run(context.Background(), feed); !errors.Is(err, errScriptOver) {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.rows) {
				t.Errorf("manifests with %v rows, want %v", got, test.rows)
			}
		})
	}
}

// commitListener hears of commits alone.
type commitListener struct {
	NopListener
	committed func(*commitlog.Manifest)
}

func onCommit(f func(*commitlog.Manifest)) Listener { return commitListener{committed: f} }

func (l commitListener) Committed(m *commitlog.Manifest) { l.committed(m) }

// Commits are at least as far apart as the one before took, within bounds, and no farther than Window.Time once they
// are fast again.
func TestWindowsWaitForSlowCommits(t *testing.T) {
	limits := Window{Changes: 10_000, Bytes: 64 << 20, Time: time.Second}
	commits := []time.Duration{5 * time.Second, 0, time.Minute, time.Millisecond, 0}
	want := []time.Duration{time.Second, 5 * time.Second, time.Second, 10 * time.Second, time.Second}
	feed := &script{now: time.Unix(100, 0)}
	for range 60 {
		feed.batches = append(feed.batches, scripted{nodes: 1, takes: 500 * time.Millisecond})
	}
	var got []time.Duration
	began := feed.now // when the commit before had ended
	p := newPipeline(t, newBroker(1), 1)
	s, err := Open(context.Background(), Options{
		Shards: 1, Dir: "state", fs: vfs.NewMem(), Store: p.store, Window: limits,
		Topics: Topics{Nodes: nodesTopic}, Clock: func() time.Time { return feed.now },
		Listener: onCommit(func(*commitlog.Manifest) {
			if got = append(got, feed.now.Sub(began)); len(got) == len(commits) {
				feed.batches = nil
				return
			}
			feed.now = feed.now.Add(commits[len(got)-1])
			began = feed.now
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	if err := s.Run(context.Background(), feed); !errors.Is(err, errScriptOver) {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("commits are %v apart, want %v", got, want)
	}
}

// A feed is never asked to wait longer than the window stays open.
func TestRunWaitsForTheWindow(t *testing.T) {
	feed := &script{now: time.Unix(100, 0), batches: []scripted{{}, {nodes: 1}, {takes: 4 * time.Second},
		{takes: 6 * time.Second}}}
	p := newPipeline(t, newBroker(1), 1)
	s, err := Open(context.Background(), Options{
		Shards: 1, Dir: "state", fs: vfs.NewMem(), Store: p.store,
		Window: Window{Changes: 10_000, Bytes: 64 << 20, Time: 10 * time.Second},
		Topics: Topics{Nodes: nodesTopic}, Clock: func() time.Time { return feed.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	if err := s.Run(context.Background(), feed); !errors.Is(err, errScriptOver) {
		t.Fatal(err)
	}
	want := []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 6 * time.Second, 10 * time.Second}
	for i := range want {
		if feed.waits[i] != want[i] {
			t.Fatalf("waits %v, want %v", feed.waits, want)
		}
	}
}

// A shard that may be told to drain looks for it several times a second, however long its windows
// stay open. Otherwise the end of a small input would wait for a whole window.
func TestAShardNoticesSoonThatItIsToDrain(t *testing.T) {
	feed := &script{now: time.Unix(100, 0), batches: []scripted{{}, {nodes: 1}, {}}}
	p := newPipeline(t, newBroker(1), 1)
	s, err := Open(context.Background(), Options{
		Shards: 1, Dir: "state", fs: vfs.NewMem(), Store: p.store,
		Window: Window{Changes: 10_000, Bytes: 64 << 20, Time: time.Hour},
		Topics: Topics{Nodes: nodesTopic}, Clock: func() time.Time { return feed.now },
		Drain: func() bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	if err := s.Run(context.Background(), feed); !errors.Is(err, errScriptOver) {
		t.Fatal(err)
	}
	for _, wait := range feed.waits {
		if wait > idleWait {
			t.Fatalf("waits %v, want none above %v", feed.waits, idleWait)
		}
	}
}

// A state that must be rebuilt from topics that no longer hold the records is an error in words,
// not an endless wait or a graph with holes.
func TestRebuildFromShortenedTopicIsRefused(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 5)
	_ = p.step(0, -1, true).Close()
	p.disks[0] = vfs.NewCrashableMem()
	p.b.logs[0][nodesTopic] = p.b.logs[0][nodesTopic][:3]
	s, err := p.open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	if err := s.Run(context.Background(), p.feed(s)); !errors.Is(err, ErrLogIncomplete) {
		t.Errorf("got %v", err)
	}
}

func TestStateOfAnotherPipelineIsRefused(t *testing.T) {
	ctx := context.Background()
	p := newPipeline(t, newBroker(1), 1)
	sendNodes(p.b, 0, 5)
	_ = p.step(0, -1, true).Close()
	base := Options{Pipeline: "test", Shards: 1, Dir: "state", fs: p.disks[0], Store: p.store, Window: wide,
		Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic, Further: furtherTopics,
			Mirror: mirrorTopic}, Mirror: &brokerMirror{b: p.b}}
	for _, test := range []struct {
		name   string
		change func(*Options)
		words  string
	}{
		{"name", func(o *Options) { o.Pipeline = "other" }, `of pipeline "test"`},
		{"shards", func(o *Options) { o.Shards = 2 }, "shard 0 of 1"},
		{"directed", func(o *Options) { o.Mirror, o.Topics.Mirror = nil, "" }, "undirected true"},
		{"empty store", func(o *Options) { o.Store = newPipeline(t, newBroker(1), 1).store }, "ends at 0"},
		{"another log", func(o *Options) {
			q := newPipeline(t, newBroker(1), 1)
			sendNodes(q.b, 0, 5)
			_ = q.step(0, -1, true).Close()
			o.Store = q.store
		}, "was written by"},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := base
			test.change(&opts)
			s, err := Open(ctx, opts)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, commitlog.ErrIdentity) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v, want %q", err, test.words)
			}
		})
	}
	s, err := Open(ctx, base)
	if err != nil {
		t.Fatalf("its own state is refused: %v", err)
	}
	_ = s.Close()
}

type upper struct{ shown []string }

func (u *upper) Featurize(r *rows.Row) error {
	if r.NodeID == "n004" {
		return errInjected
	}
	u.shown = append(u.shown, r.NodeID)
	r.FeatureIndices, r.FeatureValues, r.Generation = []int32{1}, []float32{1}, 4
	return nil
}

// Rows carry what the generation says of them; deleted ones are left alone. A featurizer that fails
// fails the window.
func TestRowsAreFeaturized(t *testing.T) {
	p := newPipeline(t, newBroker(1), 1)
	u := &upper{}
	s, err := Open(context.Background(),
		Options{Shards: 1, Dir: "state", fs: vfs.NewMem(), Store: p.store, Window: wide,
			Topics: Topics{Nodes: nodesTopic}, Featurizer: u})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	sendNodes(p.b, 0, 2)
	p.b.send(nodesTopic, 9, record{{Op: mutation.DeleteNode, ID: "n001"}})
	p.consume(s, -1)
	m := p.commit(s)
	if m.Generation != 4 || m.Rows != 2 || len(u.shown) != 1 {
		t.Errorf("manifest %+v, featurized %v", m, u.shown)
	}
	sendNodes(p.b, 4, 5)
	p.consume(s, -1)
	if _, err := s.Commit(context.Background()); !errors.Is(err, errInjected) {
		t.Errorf("got %v", err)
	}
}
