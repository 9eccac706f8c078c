package publish

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/sink/embedding"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
)

// A follower that has lost its cursor, or was away for long, finds rows merged and their parts
// gone. What it publishes ends up the same.
func TestFollowerReadsMergedRows(t *testing.T) {
	race.SkipComputing(t)
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

// A follower that falls behind without a failure reads blocks. Attributes that changed alone come behind the row of
// their node, unless the row is the newer one.
func TestAttributesOfMergedRows(t *testing.T) {
	store, to := &memstore.Store{}, &topic{}
	model := generationAt(t, store, 1, 0)
	model.Attributes = []string{"price"}
	f := follower(store, to, func() *Model { return model })
	price := func(seq int) string { return fmt.Sprintf(`{"price":%d}`, seq) }
	row := func(id string, seq int) rows.Row {
		return rows.Row{NodeID: id, Text: "text", EventTime: int64(seq), Attributes: price(seq)}
	}
	commitRows(t, store, 1, []rows.Row{row("a", 1), row("b", 1), row("c", 1)}, nil)
	catchUp(t, f)
	for seq := 2; seq <= 64; seq++ {
		var changed []rows.Row
		var alone []rows.Attributes
		switch seq {
		case 20, 30:
			alone = []rows.Attributes{{NodeID: "a", Attributes: price(seq)}, {NodeID: "c", Attributes: price(seq)}}
		case 25:
			changed = []rows.Row{row("b", seq), row("c", seq)}
		case 40:
			changed = []rows.Row{row("a", seq)}
		case 50:
			changed = []rows.Row{{NodeID: "b", Deleted: true, EventTime: 50}}
		}
		commitRows(t, store, int64(seq), changed, alone)
	}
	c := commitlog.NewCompactor(commitlog.CompactorOptions{Store: store, Shard: shard, Grace: -1})
	if n, err := c.Merge(t.Context()); err != nil || n == 0 {
		t.Fatalf("merged %d blocks, %v", n, err)
	}
	catchUp(t, f)
	got := map[string]string{}
	for _, one := range to.all {
		if a, ok := one.(embedding.Attributes); ok {
			got[a.NodeID] = a.Attributes
		}
	}
	if want := map[string]string{"a": price(40), "b": "", "c": price(30)}; !maps.Equal(got, want) {
		t.Errorf("the topic ends with the attributes %v, want %v", got, want)
	}
}
