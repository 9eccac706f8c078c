package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
)

// fickle is a topic to which everything happens that can happen to a topic: it is created again,
// deletes old records, and forgets new ones (as brokers do that elect a leader which lacks them).
type fickle struct {
	ids     bool // brokers give topics ids
	id      int
	floor   int64
	records []string // each unique
	made    int
}

func (f *fickle) write(n int) {
	for range n {
		f.made++
		f.records = append(f.records, fmt.Sprint("record-", f.made))
	}
}

func (f *fickle) end() int64 { return int64(len(f.records)) }

// Identify implements Inputs.
func (f *fickle) Identify(context.Context) (map[string]Identity, error) {
	id := Identity{Partitions: 1}
	if f.ids {
		id.ID = fmt.Sprint(f.id)
	}
	return map[string]Identity{nodesTopic: id}, nil
}

// Bounds implements Inputs.
func (f *fickle) Bounds(context.Context) (map[string]Bounds, error) {
	return map[string]Bounds{nodesTopic: {Oldest: f.floor, End: f.end()}}, nil
}

// Fingerprint implements Inputs.
func (f *fickle) Fingerprint(_ context.Context, _ string, offset int64) (string, error) {
	if offset < f.floor || offset >= f.end() {
		return "", nil
	}
	return f.records[offset], nil
}

// read returns all records from an offset of the shard on.
func (f *fickle) read(s *Shard, at int64, consumed map[string]bool) (mutation.Batch, error) {
	base := s.Bases()[nodesTopic]
	b := mutation.Batch{Next: map[string]int64{}, CaughtUp: true}
	from := at - base
	if from > f.end() {
		return b, errors.New("the topic is too short")
	}
	if from < f.floor {
		b.Lost = []mutation.Lost{{Topic: nodesTopic, From: at, To: f.floor + base}}
		from = f.floor
	}
	for o := from; o < f.end(); o++ {
		b.State(mutation.Nodes, o+base, mutation.Mutation{Op: mutation.PutNode, ID: f.records[o], Text: "x",
			Version: mutation.Version{Offset: o + base}})
		b.Last = map[string]mutation.Record{nodesTopic: {Offset: o + base, Fingerprint: f.records[o]}}
		consumed[f.records[o]] = true
	}
	b.Next[nodesTopic] = f.end() + base
	return b, nil
}

// A topic is created again, longer than it was, after a shard has read from it and before the shard
// commits. Reading goes on without an error then, so that only the commit can notice: nothing of a
// window whose records may come from two topics is committed.
func TestNothingIsCommittedOfATopicThatHasChanged(t *testing.T) {
	topic, store := &fickle{ids: true}, &memstore.Store{}
	topic.write(5)
	s, err := Open(t.Context(), Options{Pipeline: "test", Shards: 1, Dir: "state", fs: vfs.NewMem(), Store: store,
		Writer: "test", Topics: Topics{Nodes: nodesTopic}, Window: wide, Inputs: topic, backoff: time.Microsecond,
		Clock: func() time.Time { return time.Unix(1, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := topic.read(s, 0, map[string]bool{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	topic.id++
	topic.write(5)
	if _, err := s.Commit(t.Context()); !errors.Is(err, ErrInputReplaced) {
		t.Errorf("the commit ends with %v, want ErrInputReplaced", err)
	}
	if head, err := commitlog.Head(t.Context(), store, 0); head != nil || err != nil {
		t.Errorf("manifest %+v, %v, want none", head, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever happens to a topic between two runs of a shard, or while it reads: a run that ends well has
// committed every record that the topic holds, and has named as lost those that it has not seen and
// the topic no longer holds. Everything else is refused. With the loss accepted, the next run is
// well.
func TestNoRecordIsMissedInSilence(t *testing.T) {
	rounds, refused, told := roundsOf(40), 0, 0
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		topic := &fickle{ids: seed%2 == 0}
		store, fs, clock := &memstore.Store{}, vfs.NewMem(), time.Unix(1, 0)
		consumed := map[string]bool{} // and committed
		open := func(accept bool) (*Shard, error) {
			opts := Options{Pipeline: "test", Shards: 1, Dir: "state", fs: fs, Store: store, Writer: "test",
				Topics: Topics{Nodes: nodesTopic}, Window: wide, Inputs: topic, backoff: time.Microsecond,
				Clock: func() time.Time { clock = clock.Add(time.Minute); return clock }}
			if accept {
				all := map[string]bool{nodesTopic: true}
				opts.Accept = Accept{Replaced: all, Lost: all}
			}
			return Open(t.Context(), opts)
		}
		unread := false // a record was deleted before it was read
		happen := func(kinds int) {
			switch n := rng.IntN(kinds); {
			case n < 3:
				topic.write(rng.IntN(6))
			case n == 3: // created again
				topic.id++
				topic.records, topic.floor = nil, 0
				topic.write(rng.IntN(20))
			case n == 4: // forgets the newest
				topic.records = topic.records[:max(topic.floor, topic.end()-int64(1+rng.IntN(4)))]
				topic.write(rng.IntN(8))
			default: // deletes the oldest, read or not
				topic.write(rng.IntN(8))
				for n := rng.Int64N(max(1, topic.end()-topic.floor)); n > 0; n-- {
					unread = unread || !consumed[topic.records[topic.floor]]
					topic.floor++
				}
			}
		}
		// once runs the shard to the end of the topic, to which something may happen before it commits.
		once := func(accept bool, meanwhile func()) error {
			s, err := open(accept)
			if err != nil {
				return err
			}
			defer s.Close()
			now := map[string]bool{}
			meanwhile() // before it reads
			batch, err := topic.read(s, s.Next()[nodesTopic], now)
			if err != nil {
				return s.unreadable(t.Context(), err)
			}
			if err := s.Apply(t.Context(), batch); err != nil {
				return err
			}
			meanwhile() // before it commits
			if _, err := s.Commit(t.Context()); err != nil {
				return err
			}
			maps.Copy(consumed, now)
			if lost := s.head != nil && len(s.head.Lost) > 0; lost != (unread && !accept) {
				t.Fatalf("seed %d: records were deleted unread: %t; the manifest says so: %t", seed, unread, lost)
			}
			if unread {
				told++
			}
			unread = unread && !accept
			return nil
		}
		nothing := func() {}
		for range 12 {
			before := len(consumed)
			err := once(false, func() {
				if topic.ids && rng.IntN(3) == 0 {
					happen(4)
				}
			})
			for range 2 { // what happened while the shard was reading shows in the next run
				if errors.Is(err, ErrInputReplaced) {
					refused++
					if len(consumed) != before {
						t.Fatalf("seed %d: a run that is refused has committed", seed)
					}
					err = once(true, nothing)
				}
				if err == nil {
					before = len(consumed)
					err = once(false, nothing)
				}
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, record := range topic.records[topic.floor:] {
				if !consumed[record] {
					t.Fatalf("seed %d: %s is not read, and nobody says so", seed, record)
				}
			}
			happen(6)
		}
	}
	t.Logf("%d runs refused, %d manifests with losses", refused, told)
	if refused < rounds || told < rounds/2 {
		t.Error("too little has happened")
	}
}
