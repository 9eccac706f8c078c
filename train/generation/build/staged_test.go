package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/internal/tasks"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// shardLogs is a commit log in memory: rows by shard.
type shardLogs [][]generation.Row

func (l shardLogs) Cut() map[int]int64 {
	cut := map[int]int64{}
	for shard := range l {
		cut[shard] = 9
	}
	return cut
}

func (l shardLogs) Size(context.Context) (stages.Size, error) {
	var s stages.Size
	for _, rows := range l {
		for _, r := range rows {
			s.Rows++
			s.Bytes += int64(len(r.Text))
		}
	}
	for shard := range l { // older rows apart from the newest
		s.Splits = append(s.Splits, stages.Split{Shard: shard, To: 4},
			stages.Split{Shard: shard, After: 4, To: 9})
	}
	return s, nil
}

func (l shardLogs) Rows(_ context.Context, s stages.Split) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for _, r := range l[s.Shard] {
			if r.Seq <= s.After || r.Seq > s.To {
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (l shardLogs) Orders(context.Context, int) iter.Seq2[rows.Order, error] { return noOrders }

func noOrders(func(rows.Order, error) bool) {}

func (l shardLogs) Vectors(context.Context, int) iter.Seq2[rows.Vectors, error] { return noVectors }

func noVectors(func(rows.Vectors, error) bool) {}

func (l shardLogs) Fingerprint() work.Fingerprint { return commitlog.NewGraphHasher() }

// logsOf deals rows out to shards, in a random order, with older rows of some nodes and some deleted nodes.
func logsOf(all []rows.Row, shards int, seed uint64) shardLogs {
	r := rand.New(rand.NewPCG(seed, 1))
	logs := make(shardLogs, shards)
	for _, row := range all {
		shard := int(graph.HashOf(row.NodeID) % uint64(shards))
		add := func(row rows.Row, seq int64) {
			logs[shard] = append(logs[shard], generation.Row{Row: row, Shard: shard, Seq: seq})
		}
		add(row, 5)
		if r.IntN(5) == 0 {
			old := row
			old.Text, old.Labels = "an older text", nil
			old.LinkEnds, old.LinkKinds, old.LinkWeights, old.LinkTimes = nil, nil, nil, nil
			add(old, 2)
		}
	}
	for k := range 7 {
		id := fmt.Sprintf("gone-%d", k)
		shard := int(graph.HashOf(id) % uint64(shards))
		row := rows.Row{NodeID: id, Text: "x"}
		logs[shard] = append(logs[shard], generation.Row{Row: row, Shard: shard, Seq: 3})
		row.Deleted = true
		logs[shard] = append(logs[shard], generation.Row{Row: row, Shard: shard, Seq: 9})
	}
	for _, rows := range logs {
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	return logs
}

func classed(all []rows.Row, topics int) []rows.Row {
	for i := range all {
		all[i].Class = fmt.Sprintf("topic %d", i%topics)
		switch {
		case i%50 == 0:
			all[i].Text = ""
		case i%31 == 0:
			all[i].Labels = slices.Sorted(slices.Values(append(all[i].Labels, "nobody", all[i].NodeID)))
		}
	}
	return all
}

func settings() fit.Settings {
	return fit.Settings{
		Profile: "default", MaxDegree: 1000, ProjectionDim: 32, EmbeddingDim: 16, Weighting: "inverse_sqrt_degree",
		LabelFeatures: "pifa", LeafSize: 6, Branching: 3, Encoder: "linear", Seed: 1, Holdout: 0.1, EvalSeed: 1,
		ProbeRates: []float64{0.5},
	}
}

func resources() fit.Resources {
	return fit.Resources{Workers: 2, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Unix(0, 0) }}
}

// setup is a build of a graph.
type setup struct {
	worker  *Worker
	request Request
}

func newSetup(store sink.Store, logs shardLogs, s fit.Settings) *setup {
	return &setup{
		worker: &Worker{Means: work.Means{Store: store, Resources: resources(),
			Log: func(context.Context, map[int]int64) (work.Log, error) { return logs, nil }}},
		request: Request{Settings: s, Shards: len(logs)},
	}
}

func (s *setup) begin(t *testing.T, partitions, sample int) stages.Plan {
	t.Helper()
	s.request.Partitions, s.request.Sample = partitions, sample
	plan, err := s.worker.Begin(t.Context(), s.request)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func (s *setup) run(t *testing.T, plan stages.Plan, engine tasks.Engine) *generation.Doc {
	t.Helper()
	doc, err := s.worker.Run(t.Context(), plan, engine, s.worker, nil, stages.Finish)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// digests are the SHA-256 of all objects of a store, but for how long each stage took.
func digests(t *testing.T, store sink.Store) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	for info, err := range store.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := sink.ReadAll(t.Context(), store, info.Key)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Key, "/generation.json") {
			var doc map[string]any
			if err := json.Unmarshal(data, &doc); err != nil {
				t.Fatal(err)
			}
			delete(doc, "stages")
			delete(doc, "checksum")
			data = fmt.Append(nil, doc)
		}
		all[info.Key] = sha256.Sum256(data)
	}
	return all
}

func same(t *testing.T, name string, want, got map[string][32]byte) {
	t.Helper()
	if len(want) < 8 {
		t.Errorf("only %d objects", len(want))
	}
	for key := range got {
		if strings.Contains(key, "/tasks/") {
			t.Errorf("%s: %s is left", name, key)
		}
		if _, ok := want[key]; !ok {
			t.Errorf("%s: %s is new", name, key)
		}
	}
	for key, sum := range want {
		if got[key] != sum {
			t.Errorf("%s: %s differs", name, key)
		}
	}
}

// shuffled is an engine that does tasks in a random order, and some of them several times, also at the same time.
type shuffled struct{ seed uint64 }

func (s shuffled) Run(ctx context.Context, all []tasks.Task, work tasks.Work) error {
	r := rand.New(rand.NewPCG(s.seed, 2))
	all = slices.Clone(all)
	for _, t := range all {
		for r.IntN(3) == 0 {
			all = append(all, t)
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var group sync.WaitGroup
	errs := make([]error, len(all))
	for i, t := range all {
		group.Go(func() { errs[i] = work.Do(ctx, t) })
		if r.IntN(2) == 0 {
			group.Wait()
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

// Whoever does the tasks, in whatever order and however often, every object of the generation is the same.
func TestEveryEngineMakesTheSameBytes(t *testing.T) {
	for _, encoder := range []string{"linear", "hybrid"} {
		logs := logsOf(classed(graphtest.Rows(500, 8), 8), 3, 1)
		build := func(engine tasks.Engine, logs shardLogs) map[string][32]byte {
			store := &memstore.Store{}
			s := settings()
			if s.Encoder = encoder; encoder == "hybrid" {
				s.Epochs = 2
			}
			b := newSetup(store, logs, s)
			if doc := b.run(t, b.begin(t, 8, 0), engine); doc.Status != generation.Ready || doc.TextOnly != "" {
				t.Errorf("status %s, text only %q", doc.Status, doc.TextOnly)
			}
			return digests(t, store)
		}
		want := build(tasks.Local{Workers: 1}, logs)
		engines := map[string]tasks.Engine{"2 workers": tasks.Local{Workers: 2}, "7 workers": tasks.Local{Workers: 7},
			"shuffled": shuffled{1}}
		for seed := uint64(2); seed < 8 && encoder == "linear" && !testing.Short(); seed++ {
			engines[fmt.Sprintf("shuffled %d", seed)] = shuffled{seed}
		}
		for name, engine := range engines {
			same(t, encoder+", "+name, want, build(engine, logs))
		}
		same(t, encoder+", another order of rows", want,
			build(tasks.Local{Workers: 2}, logsOf(classed(graphtest.Rows(500, 8), 8), 3, 99)))
	}
}

// The number of partitions decides which part a node is in, and nothing else.
func TestPartitionsChangeNoArtifact(t *testing.T) {
	logs := logsOf(classed(graphtest.Rows(500, 8), 8), 2, 1)
	var want map[string][32]byte
	for _, partitions := range []int{1, 4, 16} {
		store := &memstore.Store{}
		b := newSetup(store, logs, settings())
		b.run(t, b.begin(t, partitions, 0), tasks.Local{Workers: 2})
		got := digests(t, store)
		for key := range got {
			if strings.Contains(key, "/part-") || strings.HasSuffix(key, "generation.json") {
				delete(got, key)
			}
		}
		if want == nil {
			want = got
		}
		if len(got) < 6 {
			t.Errorf("only %d artifacts", len(got))
		}
		for key, sum := range want {
			if got[key] != sum {
				t.Errorf("%d partitions: %s differs", partitions, key)
			}
		}
	}
}

// A build whose store fails again and again, and whose responses are lost, ends with the same bytes once it is run
// often enough.
func TestFailuresOfTheStoreChangeNothing(t *testing.T) {
	logs := logsOf(classed(graphtest.Rows(300, 6), 6), 2, 1)
	whole := &memstore.Store{}
	b := newSetup(whole, logs, settings())
	b.run(t, b.begin(t, 4, 0), tasks.Local{Workers: 1})
	want := digests(t, whole)
	for seed := range uint64(6) {
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(seed, 3))
		broken := errors.New("the store is broken")
		fails := true
		fail := func(op, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			if fails && op != "list" && r.IntN(60) == 0 {
				return broken
			}
			return nil
		}
		store := &memstore.Store{Fail: fail, FailAfter: fail}
		var err error
		runs := 0
		for ; runs < 1000; runs++ {
			s := newSetup(store, logs, settings()) // another process
			mu.Lock()
			fails = runs < 200
			mu.Unlock()
			var plan stages.Plan
			s.request.Partitions = 4
			if plan, err = s.worker.Begin(t.Context(), s.request); err == nil {
				_, err = s.worker.Run(t.Context(), plan, tasks.Local{Workers: 3}, s.worker, nil, stages.Finish)
			}
			if err == nil || !errors.Is(err, broken) && !damage(err) {
				break
			}
			if doc, err := generation.Load(t.Context(), store, 1); err == nil && doc.Complete() {
				// Only a response was lost, or a removal: the last task goes on with that.
				mu.Lock()
				fails = false
				mu.Unlock()
				if err := s.worker.Do(t.Context(), tasks.Task{Generation: 1, Stage: stages.Finish}); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		if err != nil && !errors.Is(err, broken) && !damage(err) {
			t.Fatal(err)
		}
		if runs == 0 {
			t.Errorf("seed %d: nothing failed", seed)
		}
		mu.Lock()
		fails = false
		mu.Unlock()
		same(t, fmt.Sprintf("seed %d", seed), want, digests(t, store))
	}
}

// An output that is damaged or lost is noticed by the task that reads it, and is made again.
func TestDamagedOutputsAreMadeAgain(t *testing.T) {
	race.SkipComputing(t)
	logs := logsOf(classed(graphtest.Rows(300, 6), 6), 2, 1)
	whole := &memstore.Store{}
	b := newSetup(whole, logs, settings())
	b.run(t, b.begin(t, 4, 0), tasks.Local{Workers: 1})
	want := digests(t, whole)
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 4))
		store := &memstore.Store{}
		s := newSetup(store, logs, settings())
		plan := s.begin(t, 4, 0)
		all := plan.Stages()
		at := all[r.IntN(len(all)-1)].Name
		engine := engineFunc(func(ctx context.Context, of []tasks.Task, work tasks.Work) error {
			err := tasks.Local{Workers: 2}.Run(ctx, of, work)
			if err == nil && of[0].Stage == at {
				at = "" // once
				spoil(t, store, r, stages.TasksPrefix(1)+of[0].Stage+"/")
				s.worker.drop(1) // another process reads it
			}
			return err
		})
		s.run(t, plan, engine)
		same(t, fmt.Sprintf("seed %d", seed), want, digests(t, store))
	}
}

type engineFunc func(context.Context, []tasks.Task, tasks.Work) error

func (f engineFunc) Run(ctx context.Context, all []tasks.Task, work tasks.Work) error {
	return f(ctx, all, work)
}

// spoil flips a bit of an object below a prefix, or removes the object.
func spoil(t *testing.T, store sink.Store, r *rand.Rand, prefix string) {
	t.Helper()
	var keys []string
	for info, err := range store.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	key := keys[r.IntN(len(keys))]
	data, err := sink.ReadAll(t.Context(), store, key)
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(3) == 0 {
		err = store.Delete(t.Context(), key)
	} else {
		data = bytes.Clone(data)
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		err = sink.PutBytes(t.Context(), store, key, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What the plan says that a stage reads is what its tasks read.
func TestPlanSaysWhatStagesRead(t *testing.T) {
	store := &memstore.Store{}
	b := newSetup(store, logsOf(classed(graphtest.Rows(300, 6), 6), 2, 1), settings())
	planReads(t, store, b, b.begin(t, 4, 0))
}

// planReads does the tasks of a plan and compares what they read with what the plan says.
func planReads(t *testing.T, store *memstore.Store, b *setup, plan stages.Plan) {
	t.Helper()
	var mu sync.Mutex
	read := map[string]bool{}
	store.Fail = func(op, key string) error {
		rest, of := strings.CutPrefix(key, stages.TasksPrefix(plan.Generation))
		if stage, task, ok := strings.Cut(rest, "/"); ok && of && op == "open" && strings.HasSuffix(task,
			"/done.json") {
			mu.Lock()
			read[stage] = true
			mu.Unlock()
		}
		return nil
	}
	for _, s := range plan.Stages() {
		clear(read)
		b.worker.drop(plan.Generation) // another process, which has read nothing
		for _, task := range plan.TasksOf(s) {
			if err := b.worker.Do(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
		if s.Name == stages.Finish {
			continue // it lists the objects, too
		}
		if want := slices.Sorted(slices.Values(s.Reads)); !slices.Equal(want, slices.Sorted(maps.Keys(read))) {
			t.Errorf("%s reads %v, the plan says %v", s.Name, slices.Sorted(maps.Keys(read)), want)
		}
	}
}

// A build of more nodes than the sample trains and evaluates on a part of them.
func TestEncoderOfASample(t *testing.T) {
	logs := logsOf(classed(graphtest.Rows(800, 8), 8), 2, 1)
	store := &memstore.Store{}
	b := newSetup(store, logs, settings())
	doc := b.run(t, b.begin(t, 8, 300), tasks.Local{Workers: 2})
	if doc.Graph.Nodes != 800 || doc.Graph.Deleted != 7 || len(doc.Evaluation) != 2 {
		t.Errorf("graph %+v, %d evaluations", doc.Graph, len(doc.Evaluation))
	}
	var rows int64
	for _, p := range doc.Embeddings {
		rows += p.Rows
	}
	if rows != 800 {
		t.Errorf("%d embeddings", rows)
	}
}

// A task of a generation that is complete, or gone, does no harm.
func TestLateTasks(t *testing.T) {
	logs := logsOf(classed(graphtest.Rows(200, 4), 4), 1, 1)
	store := &memstore.Store{}
	b := newSetup(store, logs, settings())
	b.run(t, b.begin(t, 2, 0), tasks.Local{})
	want := digests(t, store)
	late := tasks.Task{Generation: 1, Stage: stages.Number, Partition: 1}
	if err := b.worker.Do(t.Context(), late); err != nil {
		t.Error(err)
	}
	if done, err := b.worker.Done(t.Context(), late); err != nil || !done {
		t.Errorf("Done = %v, %v", done, err)
	}
	late.Generation = 7
	if err := b.worker.Do(t.Context(), late); !errors.Is(err, stages.ErrNoPlan) {
		t.Errorf("a task of no generation: %v", err)
	}
	same(t, "late tasks", want, digests(t, store))
}

// putHook is a store that calls before once, before the first Put.
type putHook struct {
	sink.Store
	before func()
}

func (h *putHook) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if before := h.before; before != nil {
		h.before = nil
		before()
	}
	return h.Store.Put(ctx, key, r, size)
}

// A process that loses a task to others, and ends it when they have completed the generation, leaves nothing. If they
// have begun anew, it leaves nothing that counts for the new build.
func TestTasksThatEndLate(t *testing.T) {
	logs := logsOf(classed(graphtest.Rows(200, 4), 4), 1, 1)
	whole := &memstore.Store{}
	b := newSetup(whole, logs, settings())
	b.run(t, b.begin(t, 2, 0), tasks.Local{})
	want := digests(t, whole)
	for _, anew := range []bool{false, true} {
		store := &memstore.Store{}
		first := logs
		if anew {
			first = logsOf(classed(graphtest.Rows(300, 5), 4), 1, 1)
		}
		b := newSetup(store, first, settings())
		plan := b.begin(t, 2, 0)
		again := newSetup(store, logs, settings())
		hook := &putHook{Store: store, before: func() {
			if anew {
				if err := again.worker.Discard(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				again.begin(t, 2, 0)
			} else {
				again.run(t, plan, tasks.Local{})
			}
		}}
		late := newSetup(hook, first, settings())
		if err := late.worker.Do(t.Context(), tasks.Task{Generation: 1, Stage: stages.Scatter}); err != nil {
			t.Errorf("late task: %v", err)
		}
		if anew {
			again.run(t, again.begin(t, 2, 0), tasks.Local{})
		}
		same(t, fmt.Sprintf("begun anew: %v", anew), want, digests(t, store))
	}
}

func TestTasksSayWhatIsMissing(t *testing.T) {
	b := newSetup(&memstore.Store{}, logsOf(graphtest.Rows(50, 4), 1, 1), settings())
	b.begin(t, 2, 0)
	err := b.worker.Do(t.Context(), tasks.Task{Generation: 1, Stage: stages.Number, Partition: 1})
	if missing := new(work.MissingError); !errors.As(err, &missing) || missing.Task.Stage != stages.Scatter {
		t.Errorf("%v", err)
	}
	for _, bad := range []tasks.Task{{Generation: 1, Stage: "paint"}, {Generation: 1, Stage: stages.Number,
		Partition: 2}} {
		if err := b.worker.Do(t.Context(), bad); err == nil {
			t.Errorf("task %v: no error", bad)
		}
	}
}

func TestTooFewNodesLeaveNothing(t *testing.T) {
	store := &memstore.Store{}
	b := newSetup(store, shardLogs{nil, nil}, settings())
	plan := b.begin(t, 4, 0)
	if _, err := b.worker.Run(t.Context(), plan, tasks.Local{}, b.worker, nil, stages.Finish); !errors.Is(err,
		generation.ErrTooFew) {
		t.Errorf("%v", err)
	}
	if left := digests(t, store); len(left) > 0 {
		t.Errorf("%d objects are left", len(left))
	}
}

func TestGraphWithoutLinksIsMadeOfTexts(t *testing.T) {
	all := graphtest.Rows(200, 4)
	for i := range all {
		all[i].Labels = nil
	}
	b := newSetup(&memstore.Store{}, logsOf(all, 2, 1), settings())
	if doc := b.run(t, b.begin(t, 4, 0), tasks.Local{}); doc.TextOnly == "" || doc.Encoder.Kind != "lsa" {
		t.Errorf("%q, %s", doc.TextOnly, doc.Encoder.Kind)
	}
}
