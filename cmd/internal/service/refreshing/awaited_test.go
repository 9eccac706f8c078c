package refreshing

import (
	"context"
	"testing"
)

// busy is a backlog whose producers never pause: with every look, each partition has more records, of which the last
// ones are not committed.
type busy struct {
	end, open map[source]int64
}

func (b *busy) Uncommitted(_ context.Context, each func(string, int, int64, int64)) (all int64, err error) {
	for s := range b.end {
		b.end[s] += 10
		each(s.of, s.partition, b.end[s], b.open[s])
		all += b.open[s]
	}
	return all, nil
}

func TestAFirstGenerationDoesNotWaitForProducersToPause(t *testing.T) {
	slow := source{"edges", 1}
	b := &busy{map[source]int64{{"nodes", 0}: 0, slow: 1000}, map[source]int64{{"nodes", 0}: 3, slow: 1000}}
	var a awaited
	for look := range 20 {
		if done, err := a.committed(t.Context(), b, 0); done || err != nil {
			t.Fatalf("look %d: %t, %v while a partition is not read", look, done, err)
		}
	}
	b.open[slow] = 5
	looks := 0
	for done := false; !done; looks++ {
		if looks > 10 {
			t.Fatal("it waits although all that was sent before is committed")
		}
		var err error
		if done, err = a.committed(t.Context(), b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if looks < roundsToCommit {
		t.Errorf("after %d looks: what is copied, or mirrored, may not be committed", looks)
	}
	if done, _ := a.committed(t.Context(), b, 1); done {
		t.Error("of another generation, the backlog of before counts")
	}
	b.open = map[source]int64{}
	if done, _ := a.committed(t.Context(), b, 1); !done {
		t.Error("an empty backlog is waited for")
	}
}
