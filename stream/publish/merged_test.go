package publish

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"giantstream/sink/memstore"
	"giantstream/stream/commitlog"
)

// A follower that has lost its cursor, or was away for long, finds rows merged and their parts
// gone. What it publishes ends up the same.
func TestFollowerReadsMergedRows(t *testing.T) {
	const windows, cut = 150, 100 // of a kept generation
	write := func(store *memstore.Store) {
		for seq := int64(1); seq <= windows; seq++ {
			text := fmt.Sprint("text ", seq)
			if seq == 70 || seq == 120 {
				text = "" // n0 is deleted before the cut, n10 after it
			}
			commit(t, store, seq, [2]string{fmt.Sprint("n", seq%(11-seq/75)), text})
		}
	}
	for _, from := range []commitlog.Published{{}, {Generation: 1, Seq: 30}, {Generation: 2, Seq: 110},
		{Generation: 2, Seq: 149}} {
		t.Run(fmt.Sprintf("g%d at %d", from.Generation, from.Seq), func(t *testing.T) {
			run := func(merge bool) []string {
				store := &memstore.Store{}
				write(store)
				moveTo(t, store, from)
				if merge {
					now := time.Unix(1, 0)
					c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: store, Shard: shard,
						Clock: func() time.Time { return now }})
					if n, err := c.Merge(t.Context()); err != nil || n != 2 {
						t.Fatalf("merged %d blocks, %v", n, err)
					}
					now = now.Add(time.Hour)
					if removed, err := c.Remove(t.Context(), cut); err != nil || removed.Objects != 64 {
						t.Fatalf("removed %+v, %v", removed, err)
					}
				}
				model := generationAt(t, store, 2, cut, embedded("n1", 100, 207), embedded("n5", 93, 207))
				to := &topic{}
				f := follower(store, to, func() *Model { return model })
				for more := true; more; {
					var err error
					if more, err = f.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if f.cursor.Generation != 2 || f.cursor.Seq != windows {
					t.Errorf("it ends at %+v", f.cursor)
				}
				return to.newest()
			}
			if got, want := run(true), run(false); !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}
