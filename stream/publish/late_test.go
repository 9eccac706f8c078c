package publish

import (
	"context"
	"errors"
	"fmt"
	"giantstream/sink/embedding"
	"log/slog"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// A worker is frozen while it sends and loses its shard, and its records arrive after newer ones of
// the worker that took over. The newer ones are published again, whether the late worker notices by
// itself or its context has ended.
func TestLateRecordsAreOverwritten(t *testing.T) {
	for _, ended := range []bool{false, true} {
		store, to := &memstore.Store{}, &topic{}
		g1 := generationAt(t, store, 1, 0)
		model := func() *Model { return g1 }
		commit(t, store, 1, [2]string{"a", "a"})
		late, next := follower(store, to, model), follower(store, to, model)
		catchUp(t, late)
		commit(t, store, 2, [2]string{"a", "aa"})

		ctx, cancel := context.WithCancel(t.Context())
		to.fail = func(int) error {
			to.fail = nil // what follows is sent while the first worker is frozen
			commit(t, store, 3, [2]string{"a", "aaa"}, [2]string{"b", ""})
			catchUp(t, next)
			expect(t, to, "a g1 m3 [103]", "b g1 m3 gone")
			if ended {
				cancel()
			}
			return nil
		}
		if _, err := late.Step(ctx); err == nil || !ended && !errors.Is(err, ErrNotAlone) {
			t.Errorf("ended %t: the late worker's step: %v, want an error", ended, err)
		}
		cancel()
		expect(t, to, "a g1 m2 [102]", "b g1 m3 gone") // stale, for a moment
		catchUp(t, next)
		expect(t, to, "a g1 m3 [103]", "b g1 m3 gone")
		if got := next.cursor; got.Generation != 1 || got.Seq != 3 {
			t.Errorf("ended %t: position %+v", ended, got)
		}
	}
}

// A late worker's record reaches the topic after its successor has sent a newer one, and before the
// successor moves the cursor. The late worker then writes the cursor, whether or not it has moved. So
// the successor's own move fails, and it sends again.
func TestLateRecordsBetweenSendingAndMoving(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		t.Run(fmt.Sprintf("successor ahead %t", ahead), func(t *testing.T) {
			store, to := &memstore.Store{}, &topic{}
			g1 := generationAt(t, store, 1, 0)
			model := func() *Model { return g1 }
			commit(t, store, 1, [2]string{"a", "a"})
			arrived, release, ended := make(chan struct{}), make(chan struct{}), make(chan error)
			late := New(Options{Shard: shard, Store: store, Model: model, Log: slog.New(slog.DiscardHandler),
				Publisher: publisherFunc(func(ctx context.Context, records []embedding.Record) error {
					close(arrived)
					<-release
					return errors.Join(to.Publish(ctx, records), errors.New("injected"))
				})})
			moving := &beforeReplace{Store: store, before: func() {}}
			next := follower(moving, to, model)
			catchUp(t, next)
			commit(t, store, 2, [2]string{"a", "aa"})
			go func() {
				_, err := late.Step(context.WithoutCancel(t.Context()))
				ended <- err
			}()
			<-arrived // with manifest 2
			if ahead {
				catchUp(t, next)
			}
			commit(t, store, 3, [2]string{"a", ""})
			moving.before = func() {
				moving.before = func() {}
				close(release)
				if err := <-ended; err == nil {
					t.Error("the late worker's step has no error")
				}
				expect(t, to, "a g1 m2 [102]") // stale, for a moment
			}
			if _, err := next.Step(t.Context()); !errors.Is(err, ErrNotAlone) {
				t.Errorf("the successor's step: %v, want ErrNotAlone", err)
			}
			catchUp(t, next)
			expect(t, to, "a g1 m3 gone")
		})
	}
}

type publisherFunc func(ctx context.Context, records []embedding.Record) error

func (f publisherFunc) Publish(ctx context.Context, records []embedding.Record) error {
	return f(ctx, records)
}

// beforeReplace is a store that calls a function before it compares and swaps.
type beforeReplace struct {
	*memstore.Store
	before func()
}

func (b *beforeReplace) Replace(ctx context.Context, key string, old, data []byte) error {
	b.before()
	return b.Store.Replace(ctx, key, old, data)
}

// A worker that failed while no other was there sends again.
func TestFailureAloneMovesNothingBack(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	g1 := generationAt(t, store, 1, 0)
	f := follower(store, to, func() *Model { return g1 })
	commit(t, store, 1, [2]string{"a", "a"})
	catchUp(t, f)
	commit(t, store, 2, [2]string{"a", "aa"})
	broken := errors.New("injected")
	to.fail = func(int) error { to.fail = nil; return broken }
	if _, err := f.Step(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if got, err := commitlog.LoadPublished(t.Context(), store, shard); err != nil || got.Seq != 1 {
		t.Errorf("cursor %+v (%v), want to stay at 1", got, err)
	}
	catchUp(t, f)
	expect(t, to, "a g1 m2 [102]")
}

// As above, and the store does not answer the late worker for some steps. The worker remembers where
// it was, and moves the cursor back as soon as it can.
func TestLateRecordsAreOverwrittenOnceTheStoreAnswers(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	cut := false
	g1 := generationAt(t, store, 1, 0)
	model := func() *Model { return g1 }
	commit(t, store, 1, [2]string{"a", "a"})
	late, next := follower(unreachable{store, &cut}, to, model), follower(store, to, model)
	catchUp(t, late)
	commit(t, store, 2, [2]string{"a", "aa"})
	to.fail = func(int) error {
		to.fail = nil
		commit(t, store, 3, [2]string{"a", "aaa"})
		catchUp(t, next)
		cut = true
		return nil
	}
	for range 3 {
		if _, err := late.Step(t.Context()); err == nil {
			t.Fatal("a step without a store has no error")
		}
	}
	expect(t, to, "a g1 m2 [102]") // stale, until the store answers
	cut = false
	catchUp(t, late)
	catchUp(t, next)
	expect(t, to, "a g1 m3 [103]")
}

// unreachable is a store that cannot be reached while *cut is true.
type unreachable struct {
	sink.Store
	cut *bool
}

func (u unreachable) Open(ctx context.Context, key string) (sink.Object, error) {
	if *u.cut {
		return nil, errors.New("the store is away")
	}
	return u.Store.Open(ctx, key)
}

// A topic that is another one, or that has lost all that was published to it, gets everything again.
func TestEverythingIsPublishedAgainToATopicThatDoesNotHaveIt(t *testing.T) {
	for what, change := range map[string]func(*commitlog.SinkTopic){
		"another name":  func(s *commitlog.SinkTopic) { s.Name, s.First = "renamed", 0 },
		"created again": func(s *commitlog.SinkTopic) { s.ID, s.First = "2", 0 },
		"created again, where brokers give no ids": func(s *commitlog.SinkTopic) { s.ID, s.First = "", 0 },
		"emptied": func(s *commitlog.SinkTopic) { s.First = s.End },
	} {
		store, to := &memstore.Store{}, &topic{}
		g1 := generationAt(t, store, 1, 1, embedded("a", 1, 7))
		commit(t, store, 1, [2]string{"a", "a"})
		commit(t, store, 2, [2]string{"b", "bb"})
		is := commitlog.SinkTopic{Name: "embeddings", ID: "1"}
		f := follower(store, to, func() *Model { return g1 })
		f.lookEvery = 0
		f.opts.Topic = func(context.Context) (commitlog.SinkTopic, error) {
			is.End = is.First + int64(len(to.records))
			return is, nil
		}
		catchUp(t, f)
		expect(t, to, "a g1 m1 [7]", "b g1 m2 [102]")
		change(&is)
		to.records = nil
		catchUp(t, f)
		if len(to.records) != 2 {
			t.Errorf("%s: %d records are published again, want 2", what, len(to.records))
		}
		expect(t, to, "a g1 m1 [7]", "b g1 m2 [102]")
	}
}
