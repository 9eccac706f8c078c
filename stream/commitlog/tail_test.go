package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
)

// after returns what a tail yields, as "from-to".
func after(t *testing.T, tail *Tail, seq int64) (found []string) {
	t.Helper()
	for s, err := range tail.SegmentsAfter(t.Context(), seq) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%d-%d", s.From, s.To))
	}
	return found
}

func commitWindows(t *testing.T, store sink.Store, from, to int64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		commitWindow(t, store, seq, []rows.Row{{NodeID: fmt.Sprint("n", seq), Text: "text"}})
	}
}

func TestTailFindsWhatFollows(t *testing.T) {
	store := &countingStore{Store: &memstore.Store{}}
	tail := &Tail{Store: store}
	for _, step := range []struct {
		commit, after int64
		want          []string
		reads         int64
	}{
		{0, 0, nil, 2},                           // the first manifest, the boundary
		{0, 0, nil, 1},                           // the first manifest
		{3, 0, []string{"1-1", "2-2", "3-3"}, 5}, // and manifest 4, and the boundary
		{3, 3, nil, 1},
		{4, 3, []string{"4-4"}, 3},
		{64, 4, nil, 0}, // more than it reads one by one
		{64, 64, nil, 1},
	} {
		commitWindows(t, store.Store, int64(len(manifestNumbers(t, store.Store)))+1, step.commit)
		store.reads.Store(0)
		got := after(t, tail, step.after)
		if step.commit == 64 && step.after == 4 {
			if len(got) != 60 || got[59] != "64-64" {
				t.Errorf("after 4: %v", got)
			}
			continue
		}
		if !slices.Equal(got, step.want) || store.reads.Load() != step.reads {
			t.Errorf("after %d of %d: %v in %d requests, want %v in %d", step.after, step.commit, got, store.reads.Load(),
				step.want, step.reads)
		}
	}
}

// What the process has committed itself is not read.
func TestTailOfKnownManifests(t *testing.T) {
	store := &countingStore{Store: &memstore.Store{}}
	commitWindows(t, store.Store, 1, 5)
	var recent Recent
	tail := &Tail{Store: store, Known: recent.LookupFor(0)}
	for seq := int64(3); seq <= 4; seq++ {
		m, err := ReadManifest(t.Context(), store.Store, 0, seq)
		if err != nil {
			t.Fatal(err)
		}
		recent.Add(m)
	}
	store.reads.Store(0)
	if got := after(t, tail, 2); !slices.Equal(got, []string{"3-3", "4-4"}) || store.reads.Load() != 0 {
		t.Errorf("after 2: %v in %d requests, want manifests 3 and 4 in none", got, store.reads.Load())
	}
	if got := after(t, tail, 4); !slices.Equal(got, []string{"5-5"}) {
		t.Errorf("after 4: %v, want manifest 5 from the store", got)
	}
	if got := after(t, tail, 0); !slices.Equal(got, []string{"1-1", "2-2", "3-3", "4-4", "5-5"}) {
		t.Errorf("after 0: %v", got)
	}
}

func TestRecentIsBounded(t *testing.T) {
	var recent Recent
	for seq := int64(1); seq <= 1000; seq++ {
		if seq < 400 || seq > 600 { // another process had the shard
			recent.Add(&Manifest{Shard: 3, Seq: seq})
		}
		if n := len(recent.shards[3]); n > recentManifests {
			t.Fatalf("%d manifests are remembered", n)
		}
	}
	known := recent.LookupFor(3)
	if known(1000) == nil || known(1000-recentManifests+1) == nil || known(399) != nil ||
		recent.LookupFor(2)(1000) != nil {
		t.Error("not the last manifests are remembered")
	}
}

// An object under a number behind the boundary is not believed, and the tail goes on from the blocks.
func TestTailBehindTheBoundary(t *testing.T) {
	store := &memstore.Store{}
	commitWindows(t, store, 1, 70)
	late, err := ReadManifest(t.Context(), store, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	tail := &Tail{Store: store}
	if got := after(t, tail, 70); got != nil {
		t.Fatalf("after the head: %v", got)
	}
	putCheckpoint(t, store, 1, 66)
	putCheckpoint(t, store, 2, 66)
	c := NewCompactor(CompactorOptions{Store: store})
	if _, err := c.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fold(t.Context(), FoldOptions{Keep: 70}); err != nil {
		t.Fatal(err)
	}
	if numbers := manifestNumbers(t, store); numbers[0] != 65 {
		t.Fatalf("the log begins at manifest %d, want it folded", numbers[0])
	}
	late.Writer = "a zombie"
	data, err := late.Encode("")
	if err == nil {
		err = store.Create(t.Context(), ManifestKey(0, 64), data)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1-64", "65-65", "66-66", "67-67", "68-68", "69-69", "70-70"}
	if got := after(t, tail, 63); !slices.Equal(got, want) {
		t.Errorf("after 63, with a zombie's manifest 64: %v, want %v", got, want)
	}
	// Manifest 10 is not there. Sooner or later the tail finds out why.
	for range tailPolls {
		if got := after(t, tail, 9); got != nil {
			if !slices.Equal(got, want) {
				t.Errorf("after 9: %v, want %v", got, want)
			}
			return
		}
	}
	t.Error("the tail does not notice that the boundary has passed it")
}

func TestTailStopsAtDamage(t *testing.T) {
	store := &memstore.Store{}
	commitWindows(t, store, 1, 3)
	if err := sink.PutBytes(t.Context(), store, ManifestKey(0, 2), []byte("{")); err != nil {
		t.Fatal(err)
	}
	for _, err := range (&Tail{Store: store}).SegmentsAfter(t.Context(), 0) {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%v, want ErrDamaged before anything is yielded", err)
		}
	}
}
