package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/sink/rows/rowstest"
	"giantstream/stream/commitlog"
)

const shard = 3

// topic is a compacted topic: what a consumer that reads all of it ends up with.
type topic struct {
	records []embedding.Record
	// all are the records and attributes in the order in which they arrived.
	all  []any
	fail func(call int) error
	// arrive, unless nil, says how many of so many records a call that fails has delivered.
	arrive func(records int) int
	calls  int
}

// call returns how many of n records a call delivers, and its error.
func (t *topic) call(n int) (int, error) {
	t.calls++
	var err error
	if t.fail != nil {
		err = t.fail(t.calls)
	}
	if err != nil {
		if t.arrive == nil {
			return 0, err
		}
		n = t.arrive(n)
	}
	return n, err
}

func (t *topic) Publish(_ context.Context, records []embedding.Record) error {
	n, err := t.call(len(records))
	for _, r := range records[:n] {
		r.Vector = slices.Clone(r.Vector)
		t.records, t.all = append(t.records, r), append(t.all, r)
	}
	return err
}

func (t *topic) PublishAttributes(_ context.Context, all []embedding.Attributes) error {
	n, err := t.call(len(all))
	for _, a := range all[:n] {
		t.all = append(t.all, a)
	}
	return err
}

// newest lists, per node in order of id, what its last record says: "a g1 m2 [3]" is node a,
// generation 1, manifest 2, embedding 3.
func (t *topic) newest() []string {
	last := map[string]embedding.Record{}
	for _, r := range t.records {
		last[r.NodeID] = r
	}
	var out []string
	for _, r := range last {
		s := fmt.Sprintf("%s g%d m%d %v", r.NodeID, r.Generation, r.Seq, r.Vector)
		if r.Deleted {
			s = fmt.Sprintf("%s g%d m%d gone", r.NodeID, r.Generation, r.Seq)
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// commit writes manifest seq with one row per "id=text"; "id=" deletes.
func commit(t *testing.T, store sink.Store, seq int64, changes ...[2]string) {
	t.Helper()
	commitVectors(t, store, seq, nil, changes...)
}

// commitVectors is commit of a window with vectors.
func commitVectors(t *testing.T, store sink.Store, seq int64, vectors []rows.Vectors, changes ...[2]string) {
	t.Helper()
	var batch []rows.Row
	for _, c := range changes {
		batch = append(batch, rows.Row{NodeID: c[0], Text: c[1], Deleted: c[1] == "", EventTime: seq})
	}
	commitRows(t, store, seq, batch, nil, vectors...)
}

// commitRows writes manifest seq with rows of nodes, with attributes that changed alone, and with vectors.
func commitRows(t *testing.T, store sink.Store, seq int64, batch []rows.Row, alone []rows.Attributes,
	vectors ...rows.Vectors) {
	t.Helper()
	m := commitlog.Manifest{Format: commitlog.ManifestFormat, Shard: shard, Seq: seq, Writer: "test",
		Next: map[string]int64{"nodes": seq}, Rows: int64(len(batch)), Created: time.Unix(seq, 0).UTC()}
	key := fmt.Sprintf("shards/%d/rows/%020d-x-0.parquet", shard, seq)
	info := rowstest.Put(t, store, key, batch)
	m.Objects = []commitlog.Object{{Key: key, Rows: info.Rows, Bytes: info.Bytes, Checksum: info.Checksum}}
	n := 0
	beside, _, err := commitlog.WriteObjects(t.Context(), store, rows.NodeAttributes, func() string {
		n++
		return fmt.Sprintf("shards/%d/rows/%020d-y-%d.parquet", shard, seq, n)
	}, 1000, rows.WriteOptions{}, func(yield func(rows.Attributes, error) bool) {
		for _, a := range alone {
			if !yield(a, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Objects = append(m.Objects, beside...)
	if len(vectors) > 0 {
		key := fmt.Sprintf("shards/%d/vectors/%020d-x-0.parquet", shard, seq)
		info, err := rows.NodeVectors.Write(t.Context(), store, key, rows.WriteOptions{},
			func(yield func(rows.Vectors, error) bool) {
				for _, v := range vectors {
					if !yield(v, nil) {
						return
					}
				}
			})
		if err != nil {
			t.Fatal(err)
		}
		m.Objects = append(m.Objects, commitlog.Object{Key: key, Rows: info.Rows, Bytes: info.Bytes,
			Checksum: info.Checksum, Table: rows.NodeVectors.Name})
	}
	head, err := commitlog.Head(t.Context(), store, shard)
	if err != nil {
		t.Fatal(err)
	}
	m.Follow(head)
	data, err := m.Encode("")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), commitlog.ManifestKey(shard, seq), data); err != nil {
		t.Fatal(err)
	}
}

// generationAt makes generation g, whose embeddings cover manifests up to cut. The embedding of a
// text is its length plus 100 times the generation.
func generationAt(t *testing.T, store sink.Store, g, cut int64, nodes ...embedding.Record) *Model {
	t.Helper()
	m := &Model{Generation: g, Cut: cut, Dim: 1, Encode: func(_, texts []string, out []float32) error {
		for i, text := range texts {
			out[i] = float32(100*g + int64(len(text)))
		}
		return nil
	}}
	key := fmt.Sprintf("generations/%06d/embeddings/part-00003.parquet", g)
	info, err := embedding.WriteParquet(t.Context(), store, key, embedding.Float32,
		func(yield func(embedding.Record, error) bool) {
			for _, r := range nodes {
				r.Generation, r.Shard = g, shard
				if !yield(r, nil) {
					return
				}
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	m.Parts = []sink.Ref{info.Ref(key)}
	return m
}

func embedded(id string, seq int64, v float32) embedding.Record {
	return embedding.Record{NodeID: id, Seq: seq, Vector: []float32{v}}
}

func follower(store sink.Store, to *topic, model func() *Model) *Follower {
	return New(Options{Shard: shard, Store: store, Publisher: to, Attributes: to.PublishAttributes, Model: model,
		Poll: time.Second,
		Log:  slog.New(slog.DiscardHandler)})
}

// moveTo puts the shard's cursor somewhere.
func moveTo(t testing.TB, store sink.Store, to commitlog.Published) {
	t.Helper()
	c, err := commitlog.OpenCursor(t.Context(), store, shard)
	if err == nil {
		err = c.Move(t.Context(), to, "test")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// catchUp steps until there is nothing left to publish.
func catchUp(t *testing.T, f *Follower) {
	t.Helper()
	for range 100 {
		progressed, err := f.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !progressed {
			return
		}
	}
	t.Fatal("the follower does not come to rest")
}

func expect(t *testing.T, to *topic, want ...string) {
	t.Helper()
	if got := to.newest(); !slices.Equal(got, want) {
		t.Errorf("the topic ends with\n%q, want\n%q", got, want)
	}
}

func TestNothingIsPublishedBeforeTheFirstGeneration(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "aa"})
	catchUp(t, follower(store, to, func() *Model { return nil }))
	expect(t, to)
}

func TestNewGenerationThenWhatCameAfterItsCut(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "aa"}, [2]string{"b", "b"}, [2]string{"c", "c"})
	commit(t, store, 2, [2]string{"b", "bbbb"}, [2]string{"d", "ddd"}, [2]string{"c", ""})
	g1 := generationAt(t, store, 1, 1, embedded("a", 1, 11), embedded("b", 1, 12), embedded("c", 1, 13))
	catchUp(t, follower(store, to, func() *Model { return g1 }))
	expect(t, to, "a g1 m1 [11]", "b g1 m2 [104]", "c g1 m2 gone", "d g1 m2 [103]")
	for _, r := range to.records {
		if r.NodeID == "b" && r.Seq == 1 {
			t.Error("b's old text was published after it had changed")
		}
	}
}

func TestFollowsManifestsAndResumesWhereItStopped(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	g1 := generationAt(t, store, 1, 0)
	f := follower(store, to, func() *Model { return g1 })
	commit(t, store, 1, [2]string{"a", "a"})
	catchUp(t, f)
	commit(t, store, 2, [2]string{"a", "aaa"})
	catchUp(t, f)
	expect(t, to, "a g1 m2 [103]")
	if got := f.cursor; got.Generation != 1 || got.Seq != 2 {
		t.Errorf("position %+v", got)
	}
	sent := len(to.records)
	catchUp(t, follower(store, to, func() *Model { return g1 }))
	if len(to.records) != sent {
		t.Errorf("a restart published %d records again", len(to.records)-sent)
	}
}

func TestDeletionsBeforeTheCutOfANewGenerationAreNotLost(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "a"}, [2]string{"b", "b"})
	model := generationAt(t, store, 1, 1, embedded("a", 1, 11), embedded("b", 1, 12))
	f := follower(store, to, func() *Model { return model })
	catchUp(t, f)
	// Both are deleted and one comes back before the follower looks again, and by then generation 2
	// covers all of it.
	commit(t, store, 2, [2]string{"a", ""}, [2]string{"b", ""})
	commit(t, store, 3, [2]string{"b", "bb"})
	model = generationAt(t, store, 2, 3, embedded("b", 3, 22))
	catchUp(t, f)
	expect(t, to, "a g2 m2 gone", "b g2 m3 [22]")
}

// Every store and publisher call is made to fail once; the outcome is that of an undisturbed run.
// Windows of one row each cost a save of the cursor only now and then.
func TestCursorIsSavedForManyManifestsAtOnce(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	const manifests = 300
	g1 := generationAt(t, store, 1, 0)
	for seq := int64(1); seq <= manifests; seq++ {
		commit(t, store, seq, [2]string{fmt.Sprintf("n%03d", seq), "text"})
	}
	saves := 0
	store.FailAfter = func(op, key string) error {
		if op == "put" && strings.HasSuffix(key, "/published.json") {
			saves++
		}
		return nil
	}
	catchUp(t, follower(store, to, func() *Model { return g1 }))
	if len(to.records) != manifests || saves > 3 || to.calls > 3 {
		t.Errorf("%d records in %d calls, and the cursor saved %d times", len(to.records), to.calls, saves)
	}
}

// A follower whose generation is damaged puts the embeddings of the one before it in place of all of its own.
func TestFallsBackToTheGenerationBefore(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "aa"}, [2]string{"b", "b"})
	commit(t, store, 2, [2]string{"b", "bbbb"}, [2]string{"c", ""})
	g1 := generationAt(t, store, 1, 1, embedded("a", 1, 11), embedded("b", 1, 12))
	g2 := generationAt(t, store, 2, 2, embedded("a", 1, 21), embedded("b", 2, 22))
	model := g2
	f := follower(store, to, func() *Model { return model })
	catchUp(t, f)
	expect(t, to, "a g2 m1 [21]", "b g2 m2 [22]", "c g2 m2 gone")
	model = g1
	model.PassedOver = 2
	catchUp(t, f)
	expect(t, to, "a g1 m1 [11]", "b g1 m2 [104]", "c g1 m2 gone")
}

// A process that has yet to hear of the generation on the topic publishes nothing. If it looks and finds an older one,
// that of the topic was deleted: the older one takes its place.
func TestWaitsToHearOfTheGenerationOnTheTopic(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "aa"}, [2]string{"b", "b"})
	g1 := generationAt(t, store, 1, 1, embedded("a", 1, 11), embedded("b", 1, 12))
	g1.AsOf = time.Now()
	g2 := generationAt(t, store, 2, 1, embedded("a", 1, 21), embedded("b", 1, 22))
	catchUp(t, follower(store, to, func() *Model { return g2 }))
	commit(t, store, 2, [2]string{"b", "bbbb"})
	late := follower(store, to, func() *Model { return g1 })
	catchUp(t, late)
	expect(t, to, "a g2 m1 [21]", "b g2 m1 [22]")
	g1.AsOf = time.Now()
	catchUp(t, late)
	expect(t, to, "a g1 m1 [11]", "b g1 m2 [104]")
}

// A generation is announced once, after all that it has changed, and again when it is published again.
func TestAnnouncesThatAllIsPublished(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "aa"}, [2]string{"b", "b"})
	g1 := generationAt(t, store, 1, 1, embedded("a", 1, 11), embedded("b", 1, 12))
	commit(t, store, 2, [2]string{"b", "bbbb"}, [2]string{"c", ""})
	var said []string
	fail := errors.New("injected")
	announce := func(_ context.Context, c embedding.Completion) error {
		said = append(said, fmt.Sprintf("g%d s%d to %d after %d", c.Generation, c.Space, c.Seq, len(to.records)))
		if err := fail; err != nil {
			fail = nil
			return err
		}
		return nil
	}
	model := g1
	f := follower(store, to, func() *Model { return model })
	f.opts.Announce = announce
	catchUp := func() {
		t.Helper()
		for range 10 {
			if more, err := f.Step(t.Context()); err == nil && !more {
				return
			}
		}
		t.Fatal("the follower does not come to rest")
	}
	expect := func(want ...string) {
		t.Helper()
		catchUp()
		if !slices.Equal(said, want) {
			t.Errorf("announced %q, want %q", said, want)
		}
		said = nil
	}
	// The first attempt fails, and what was under way is sent again: a of the cut, then b and c.
	expect("g1 s1 to 2 after 3", "g1 s1 to 2 after 5")
	expect()
	commit(t, store, 3, [2]string{"a", "aaa"})
	expect()
	g2 := generationAt(t, store, 2, 3, embedded("a", 3, 21), embedded("b", 2, 22))
	g2.Space = 1
	model = g2
	expect("g2 s1 to 3 after 8")
	model = g1
	model.PassedOver = 2
	expect("g1 s1 to 3 after 11")
}

func TestErrorAtEveryCall(t *testing.T) {
	broken := errors.New("injected")
	for n := 1; ; n++ {
		store, to := &memstore.Store{}, &topic{}
		commit(t, store, 1, [2]string{"a", "aa"}, [2]string{"b", "b"})
		g1 := generationAt(t, store, 1, 1, embedded("a", 1, 11), embedded("b", 1, 12))
		commit(t, store, 2, [2]string{"b", ""}, [2]string{"c", "c"})
		g2 := generationAt(t, store, 2, 2, embedded("a", 1, 21), embedded("c", 2, 22))
		commit(t, store, 3, [2]string{"a", "aaa"})

		var calls atomic.Int64
		hook := func() error {
			if calls.Add(1) == int64(n) {
				return broken
			}
			return nil
		}
		store.Fail = func(string, string) error { return hook() }
		to.fail = func(int) error { return hook() }
		model := g1
		f := follower(store, to, func() *Model { return model })
		for range 20 {
			progressed, err := f.Step(t.Context())
			if err != nil && !errors.Is(err, broken) {
				t.Fatalf("call %d: %v", n, err)
			}
			if err == nil && !progressed {
				if model == g2 {
					break
				}
				model = g2
			}
		}
		store.Fail, to.fail = nil, nil
		expect(t, to, "a g2 m3 [203]", "b g1 m2 gone", "c g2 m2 [22]")
		if t.Failed() {
			t.Fatalf("after a failure of call %d", n)
		}
		if calls.Load() < int64(n) {
			t.Logf("%d calls, each failed once", n-1)
			return
		}
	}
}

func TestRunRetriesWithPausesUntilTheBrokerIsBack(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "a"})
	g1 := generationAt(t, store, 1, 0)
	back := make(chan struct{})
	to.fail = func(call int) error {
		if call < 4 {
			return errors.New("broker away")
		}
		if call == 4 {
			close(back)
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := follower(store, to, func() *Model { return g1 })
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	<-back   // the fourth try, after pauses of 0.25, 0.5 and 1 s
	cancel() // which it may finish
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	catchUp(t, follower(store, to, func() *Model { return g1 }))
	expect(t, to, "a g1 m1 [101]")
}

// A node whose text becomes one that means nothing has no vector any more, and gets one again.
func TestTextsWithoutMeaningHaveNoVector(t *testing.T) {
	var store memstore.Store
	model := generationAt(t, &store, 1, 0, embedded("c", 0, 5))
	encode := model.Encode
	model.Encode = func(ids, texts []string, out []float32) error {
		err := encode(ids, texts, out)
		for i, text := range texts {
			if text == "unknown" {
				out[i] = 0
			}
		}
		return err
	}
	to := &topic{}
	f := follower(&store, to, func() *Model { return model })
	commit(t, &store, 1, [2]string{"a", "text"}, [2]string{"b", "--"}, [2]string{"c", "unknown"})
	for range 3 {
		if _, err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range to.records {
		if r.Seq == 1 && (r.Status == embedding.NoText) != (r.NodeID != "a") ||
			(r.Vector == nil) != (r.Status == embedding.NoText) {
			t.Errorf("node %s: status %q, vector %v", r.NodeID, r.Status, r.Vector)
		}
	}
	commit(t, &store, 2, [2]string{"b", "words"})
	if _, err := f.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if last := to.records[len(to.records)-1]; last.NodeID != "b" || last.Status != embedding.FromText ||
		len(last.Vector) != 1 {
		t.Errorf("the last record is %+v, want a vector of b", last)
	}
}

// A cursor beyond the end of the log would find nothing to publish until the log has passed it.
func TestCursorBeyondTheLogIsNoSilence(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	for seq, id := range []string{"a", "b", "c", "d"} {
		commit(t, store, int64(seq+1), [2]string{id, "text"})
	}
	model := generationAt(t, store, 1, 1, embedded("a", 1, 1))
	moveTo(t, store, commitlog.Published{Generation: 1, Seq: 3})
	backup := map[string][]byte{}
	for seq := int64(2); seq <= 4; seq++ {
		key := commitlog.ManifestKey(shard, seq)
		data, err := sink.ReadAll(t.Context(), store, key)
		if err == nil {
			err = store.Delete(t.Context(), key)
		}
		if err != nil {
			t.Fatal(err)
		}
		backup[key] = data
	}
	f := follower(store, to, func() *Model { return model })
	if _, err := f.Step(t.Context()); !errors.Is(err, commitlog.ErrDamaged) {
		t.Fatalf("the log ends at 1, and the cursor stands at 3: %v", err)
	}
	for key, data := range backup {
		if err := store.Create(t.Context(), key, data); err != nil {
			t.Fatal(err)
		}
	}
	catchUp(t, f)
	if got := to.newest(); len(got) != 1 || !strings.HasPrefix(got[0], "d") {
		t.Errorf("published %q, want what manifest 4 has", got)
	}
}

// A change of the format publishes the current generation again, deletions and what came after its cut
// included, so that no mixture stays; the same format again publishes nothing.
func TestChangeOfFormatPublishesTheGenerationAgain(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	commit(t, store, 1, [2]string{"a", "a"}, [2]string{"b", "b"}, [2]string{"c", "c"})
	commit(t, store, 2, [2]string{"b", "bbb"}, [2]string{"c", ""}, [2]string{"d", "dd"})
	g1 := generationAt(t, store, 1, 1, embedded("a", 1, 11), embedded("b", 1, 12), embedded("c", 1, 13))
	catchUp(t, follower(store, to, func() *Model { return g1 }))
	for _, format := range []embedding.Format{{Type: embedding.Int8}, {Type: embedding.Float16, Dim: 8}, {}} {
		g1.Format = format
		typ := format.Type
		before := len(to.records)
		catchUp(t, follower(store, to, func() *Model { return g1 }))
		types := map[string]embedding.Type{}
		for _, r := range to.records[before:] {
			if !r.Deleted {
				types[r.NodeID] = r.Type
			}
		}
		if len(types) != 3 || types["a"] != typ || types["b"] != typ || types["d"] != typ {
			t.Errorf("%s: published %v, want a, b and d of type %q", format, types, typ)
		}
		if typ != embedding.Int8 { // its numbers have 17 bits
			expect(t, to, "a g1 m1 [11]", "b g1 m2 [103]", "c g1 m2 gone", "d g1 m2 [102]")
		}
		before = len(to.records)
		catchUp(t, follower(store, to, func() *Model { return g1 }))
		if len(to.records) != before {
			t.Errorf("%s: a restart published %d records again", format, len(to.records)-before)
		}
	}
}
