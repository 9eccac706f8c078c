package build

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"giantstream/internal/tasks"
	"giantstream/sink/memstore"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/internal/graphtest"
)

// What no later stage reads is removed while the build goes on; what one reads is there. How long the stages took is
// not forgotten with it.
func TestOutputsAreRemovedAfterTheirLastReader(t *testing.T) {
	store := &memstore.Store{}
	b := newSetup(store, logsOf(classed(graphtest.Rows(300, 6), 6), 2, 1), settings())
	plan := b.begin(t, 4, 0)
	var ticks atomic.Int64
	b.worker.Now = func() time.Time { return time.Unix(ticks.Add(1), 0) }
	begun := map[string]bool{}
	left := func(stage string) (n int) {
		for _, err := range store.List(t.Context(), stages.TasksPrefix(1)+stage+"/", "") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	check := func(s stages.Stage) {
		needed := map[string]bool{}
		for _, later := range plan.Stages() {
			if !begun[later.Name] {
				for _, read := range later.Reads {
					needed[read] = true
				}
			}
		}
		for name := range begun {
			if n := left(name); (n > 0) != needed[name] {
				t.Errorf("when %s begins, %d objects of %s are there; needed: %v", s.Name, n, name, needed[name])
			}
		}
		begun[s.Name] = true
	}
	doc, err := b.worker.Run(t.Context(), plan, tasks.Local{Workers: 1}, b.worker, check, stages.Finish)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range doc.Stages {
		if s.Seconds <= 0 {
			t.Errorf("stage %s took no time", s.Name)
		}
	}
	if len(begun) != len(plan.Stages()) {
		t.Errorf("%d stages of %d", len(begun), len(plan.Stages()))
	}
}

// An output that is damaged after what it was made of is gone is made again from the beginning.
func TestDamageLateInABuild(t *testing.T) {
	logs := logsOf(classed(graphtest.Rows(300, 6), 6), 2, 1)
	whole := &memstore.Store{}
	b := newSetup(whole, logs, settings())
	b.run(t, b.begin(t, 4, 0), tasks.Local{Workers: 1})
	want := digests(t, whole)
	for _, damaged := range []string{stages.Number, stages.Link, stages.Vectorise} {
		store := &memstore.Store{}
		s := newSetup(store, logs, settings())
		plan := s.begin(t, 4, 0)
		once := true
		engine := engineFunc(func(ctx context.Context, of []tasks.Task, work tasks.Work) error {
			if of[0].Stage == stages.Encoder && once {
				once = false
				spoil(t, store, rand.New(rand.NewPCG(1, 1)), fmt.Sprintf("%s%s/00001/", stages.TasksPrefix(1), damaged))
				s.worker.drop(1)
			}
			return tasks.Local{Workers: 2}.Run(ctx, of, work)
		})
		s.run(t, plan, engine)
		same(t, damaged, want, digests(t, store))
	}
}

// A process reads a model once, however many tasks it does, and a build that was begun again under the same number is
// another build.
func TestModelsAreReadOnce(t *testing.T) {
	var mu sync.Mutex
	opened := map[string]int{}
	store := &memstore.Store{Fail: func(op, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "open" && strings.HasPrefix(key, generation.Prefix(1)) {
			opened[strings.TrimPrefix(key, generation.Prefix(1))]++
		}
		return nil
	}}
	b := newSetup(store, logsOf(classed(graphtest.Rows(400, 6), 6), 2, 1), settings())
	plan := b.begin(t, 8, 0)
	engine := engineFunc(func(ctx context.Context, of []tasks.Task, work tasks.Work) error {
		mu.Lock()
		clear(opened)
		mu.Unlock()
		if err := (tasks.Local{Workers: 3}).Run(ctx, of, work); err != nil || len(of) == 1 {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if n := opened[generation.ProjectionName]; of[0].Stage == stages.Vectorise && n != 1 {
			t.Errorf("%d tasks opened the projection %d times", len(of), n)
		}
		for _, name := range []string{generation.VectorizerName, generation.ProjectionName, generation.TreeName} {
			if opened[name] > 1 {
				t.Errorf("%d tasks of %s opened %s %d times", len(of), of[0].Stage, name, opened[name])
			}
		}
		return nil
	})
	first := b.worker
	if err := first.stages(t.Context(), plan, engineFunc(func(ctx context.Context, of []tasks.Task,
		work tasks.Work) error {
		if of[0].Stage == stages.Encode {
			return context.Canceled
		}
		return engine(ctx, of, work)
	}), first, nil, stages.Finish); err == nil {
		t.Fatal("no error")
	}
	if err := first.Discard(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	again := b.begin(t, 8, 0)
	if again.Generation != plan.Generation || again.Token == plan.Token {
		t.Errorf("plans %+v and %+v", plan, again)
	}
	b.run(t, again, engine)
}

// Everything that is done is logged once, with how much is left.
func TestWatchCountsEveryTaskOnce(t *testing.T) {
	for _, workers := range []int{1, 4} {
		store := &memstore.Store{}
		b := newSetup(store, logsOf(graphtest.Rows(200, 4), 2, 1), settings())
		plan := b.begin(t, 4, 0)
		var log bytes.Buffer
		watch := &Watch{Work: b.worker, Log: slog.New(slog.NewTextHandler(&log, nil))}
		if _, err := b.worker.Run(t.Context(), plan, tasks.Local{Workers: workers}, watch, watch.Stage,
			stages.Finish); err != nil {
			t.Fatal(err)
		}
		lines := log.String()
		for _, s := range plan.Stages() {
			for _, task := range plan.TasksOf(s) {
				if n := strings.Count(lines, "task="+task.String()+" "); n != 1 {
					t.Errorf("%d lines of %v", n, task)
				}
			}
			if n := strings.Count(lines, fmt.Sprintf("/%s/", s.Name)); n != s.Tasks ||
				!strings.Contains(lines, fmt.Sprintf("done=%d of=%d eta=0s", s.Tasks, s.Tasks)) {
				t.Errorf("%d lines of %s:\n%s", n, s.Name, lines)
			}
		}
	}
}
