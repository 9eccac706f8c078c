package publish

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
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
			row := rows.Row{NodeID: fmt.Sprint("n", seq%(11-seq/75)), Text: text, Deleted: text == "", EventTime: seq}
			if !row.Deleted {
				row.Attributes = fmt.Sprintf(`{"price":%d}`, seq)
			}
			var alone []rows.Attributes // of nodes that are never deleted
			if at := seq % 7; seq > 20 && at >= 1 && at <= 4 && row.NodeID != fmt.Sprint("n", at) {
				alone = append(alone, rows.Attributes{NodeID: fmt.Sprint("n", at), EventTime: seq,
					Attributes: fmt.Sprintf(`{"price":%d.5,"stock":1}`, seq)})
			}
			commitRows(t, store, seq, []rows.Row{row}, alone)
		}
	}
	for _, from := range []commitlog.Published{{}, {Generation: 1, Seq: 30}, {Generation: 2, Seq: 110},
		{Generation: 2, Seq: 149}} {
		t.Run(fmt.Sprintf("g%d at %d", from.Generation, from.Seq), func(t *testing.T) {
			run := func(merge bool) ([]string, map[string]string) {
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
					if removed, err := c.Remove(t.Context(), cut); err != nil || removed.Objects < 64 {
						t.Fatalf("removed %+v, %v", removed, err)
					}
				}
				model := generationAt(t, store, 2, cut, embedded("n1", 100, 207), embedded("n5", 93, 207))
				model.Attributes = []string{"price"}
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
				attributes := map[string]string{}
				for _, one := range to.all {
					if a, ok := one.(embedding.Attributes); ok {
						attributes[a.NodeID] = a.Attributes
					}
				}
				return to.newest(), attributes
			}
			got, gotAttributes := run(true)
			want, wantAttributes := run(false)
			if !slices.Equal(got, want) || !maps.Equal(gotAttributes, wantAttributes) {
				t.Errorf("got  %v, %v\nwant %v, %v", got, gotAttributes, want, wantAttributes)
			}
		})
	}
}
